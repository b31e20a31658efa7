package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// level is how things stand on a node at one moment.
type level struct {
	used    int
	waiting int
	have    int // addresses, without those that are on their way back
	enis    int
	target  int
	why     string
}

// moment is how things stand on all nodes.
type moment struct {
	at     time.Duration // since the timeline began
	levels []level
}

// timeline records the nodes every readEvery, and whether the ENI order holds.
type timeline struct {
	nodes []*labNode
	began time.Time
	stop  context.CancelFunc
	work  sync.WaitGroup

	moments []moment
	states  []ipam.State
	broken  error
}

// readEvery is the time between two moments.
const readEvery = 20 * time.Millisecond

// watchNodes starts a timeline. Its end must be called.
func watchNodes(ctx context.Context, nodes []*labNode) *timeline {
	t := &timeline{nodes: nodes, began: time.Now(), states: make([]ipam.State, len(nodes))}
	ctx, t.stop = context.WithCancel(ctx)
	tick := time.NewTicker(readEvery)
	t.work.Go(func() {
		defer tick.Stop()
		for {
			t.takeMoment(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return t
}

// takeMoment records one moment. If a cache can't be read just then, there is none.
func (t *timeline) takeMoment(ctx context.Context) {
	now := moment{at: time.Since(t.began)}
	for i, n := range t.nodes {
		state, err := n.nodeState(ctx)
		if err != nil {
			return
		}
		pending, _ := n.cache.PendingADDs(nodecache.SinceBoot())
		c, s := state.Count(nodecache.SinceBoot(), nil), n.status()
		now.levels = append(now.levels, level{used: c.Used, waiting: len(pending), have: c.Total - c.Releasing,
			enis: len(state.ENIs), target: s.Target, why: s.Reason})
		if err := checkENIOrder(t.states[i], state); err != nil && t.broken == nil {
			t.broken = err
		}
		t.states[i] = state
	}
	t.moments = append(t.moments, now)
}

// end ends the timeline. Its error is that of checkENIOrder.
func (t *timeline) end() error {
	t.stop()
	t.work.Wait()
	return t.broken
}

// rowsApart is how close two rows of the printed timeline may be.
const rowsApart = 100 * time.Millisecond

// pickRows picks the moments that are worth a row, the first and the last among them:
// something changed but for the pods that come and go one by one.
func pickRows(all []moment) []moment {
	var list []moment
	for i, now := range all {
		switch last := len(list) - 1; {
		case last < 0:
			list = append(list, now)
		case isAlike(list[last], now) && (i < len(all)-1 || slices.Equal(list[last].levels, now.levels)):
		case last > 0 && now.at-list[last].at < rowsApart:
			list[last] = now
		default:
			list = append(list, now)
		}
	}
	return list
}

func isAlike(a, b moment) bool {
	for i := range a.levels {
		x, y := a.levels[i], b.levels[i]
		if (x.waiting > 0) != (y.waiting > 0) || x.have != y.have || x.enis != y.enis || x.target != y.target || x.holdReason() != y.holdReason() {
			return false
		}
	}
	return true
}

// holdReason returns why the target is higher than it had to be. Other reasons are those
// of one tick.
func (l level) holdReason() string {
	if strings.HasPrefix(l.why, "hold") {
		return l.why
	}
	return ""
}

// print prints the timeline, the nodes side by side.
func (t *timeline) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\t")
	for _, n := range t.nodes {
		fmt.Fprintf(table, "| %s pods\twaiting\taddresses\tENIs\ttarget\twhy\t", n.name)
	}
	fmt.Fprintln(table)
	for _, r := range pickRows(t.moments) {
		fmt.Fprintf(table, "%.1f s\t", r.at.Seconds())
		for _, l := range r.levels {
			waiting := strconv.Itoa(l.waiting)
			if l.waiting == 0 {
				waiting = "-"
			}
			fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%d\t%s\t", l.used, waiting, l.have, l.enis, l.target, l.why)
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}

// lastServed returns how long after start, a time since boot, the last of the
// pods that are there now got its address.
func lastServed(state ipam.State, start time.Duration) time.Duration {
	var last time.Duration
	for _, a := range state.Addresses {
		if a.State == eni.Used {
			last = max(last, a.Since-start)
		}
	}
	return last
}
