package simulate

import (
	"fmt"
	"math"
	"time"
)

// Trace is what pods did, as a file says it: see ParseTrace.
type Trace struct {
	Name  string        // what people call it
	Nodes []string      // the nodes it names, sorted; none if it is of any node
	End   time.Duration // when its last line is

	pods [][]Pod // of each of Nodes, or of the one it is of; by Start
}

// MostNodes is how many nodes with their agents are played at most.
const MostNodes = 10_000

const (
	mostNodes    = MostNodes
	mostPods     = 30_000_000 // of a load: half a gigabyte
	longestTrace = 366 * 24 * time.Hour

	forever  = time.Duration(math.MaxInt64) // End of a pod whose end the trace doesn't show
	shortest = time.Millisecond             // that a pod lives: its ADD is before its DEL
)

// Load makes nodes play the trace for duration, or until its last line if that is
// 0. A longer duration leaves its last pods running; a shorter one cuts.
//
// A trace that names nodes is played by them: the argument nodes must be 0 or their
// number, and stagger does nothing. Else every one of nodes (0 is 1) plays all of
// it, node k k*stagger/nodes later than the first: until then it has the pods of
// the trace's first moment.
func (t Trace) Load(nodes int, duration, stagger time.Duration) (Load, error) {
	if nodes == 0 {
		nodes = max(1, len(t.Nodes))
	}
	if duration == 0 {
		duration = t.End
	}
	if err := t.playable(nodes, duration, stagger); err != nil {
		return Load{}, err
	}
	l := Load{Name: t.Name, Duration: duration, Nodes: make([][]Pod, nodes)}
	for k := range l.Nodes {
		if len(t.Nodes) > 0 {
			l.Nodes[k] = shift(t.pods[k], 0, duration)
		} else {
			l.Nodes[k] = shift(t.pods[0], stagger/time.Duration(nodes)*time.Duration(k), duration)
		}
	}
	return l, nil
}

func (t Trace) playable(nodes int, duration, stagger time.Duration) error {
	named, pods := len(t.Nodes), len(t.pods[0])
	switch {
	case nodes < 1 || nodes > mostNodes:
		return fmt.Errorf("nodes: %d: must be 1 to %d", nodes, mostNodes)
	case named > 0 && nodes != named:
		return fmt.Errorf("nodes: %d: must be %d or left out, as %s names its nodes", nodes, named, t.Name)
	case named == 0 && pods > mostPods/nodes:
		return fmt.Errorf("nodes: %d: must be at most %d, as %s has %d pods", nodes, mostPods/pods, t.Name, pods)
	case duration == 0:
		return fmt.Errorf("duration: 0s: must be more, as %s shows one moment only", t.Name)
	case duration < time.Second || duration > longestTrace:
		return fmt.Errorf("duration: %v: must be 1s to %.0fh", duration, longestTrace.Hours())
	case stagger < 0 || stagger > longestTrace:
		return fmt.Errorf("stagger: %v: must be 0s to %.0fh", stagger, longestTrace.Hours())
	}
	return nil
}

// shift returns pods as they are on a node that is late, up to the load's end. The
// pods of the first moment are there as soon as on the others.
func shift(pods []Pod, late, end time.Duration) []Pod {
	var shifted []Pod
	for _, p := range pods {
		if p.Start > 0 {
			p.Start += late
		}
		if p.Start >= end {
			break
		}
		if p.End != forever {
			p.End += late
		}
		p.End = min(p.End, end)
		shifted = append(shifted, p)
	}
	return shifted
}
