package simulate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Shape is how large a generated load is.
type Shape struct {
	Nodes    int
	Pods     int           // what a node usually has at once
	Duration time.Duration // how long it is played
	Seed     uint64        // other seeds are other loads of the same kind
}

const (
	mostUsualPods = 1000
	shortestLoad  = time.Minute
	longestLoad   = 31 * 24 * time.Hour
)

// kinds are the loads that can be generated. No node ever has more than twice its usual number
// of pods at once.
var kinds = []struct {
	name, about  string
	play         func(*generator)
	atOnce, cold bool
}{
	{"steady", "all pods run all the time; each is replaced once in three days or so", (*generator).steady, false, false},
	{"burst", "half of the pods run all the time; every few hours as many again or twice that come within seconds and stay some minutes", (*generator).burst, false, false},
	{"rolling-update", "every few hours all pods are replaced, a quarter at a time, new ones before the old ones end", (*generator).rollingUpdate, false, false},
	{"cron", "half of the pods run all the time; jobs of 30 s to 4 min start every five minutes, more of them every hour", (*generator).cron, false, false},
	{"diurnal", "pods come and go one by one as from night, a fifth of them, to noon, all of them, and back", (*generator).diurnal, false, false},
	{"churn", "pods of some minutes come at random, as many at once as is usual on average", (*generator).churn, false, false},
	{"start", "all nodes begin at once, without an address yet, and all of their pods with them", (*generator).atOnce, true, true},
	{"surge", "all pods come at once to nodes that had none for long", (*generator).atOnce, true, false},
}

// Kinds returns the names of the loads that can be generated.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Describe says in a line what a kind of load is like, "" for an unknown kind.
func Describe(kind string) string {
	for _, k := range kinds {
		if k.name == kind {
			return k.about
		}
	}
	return ""
}

// AtOnce tells whether all pods of that kind of load come at its beginning.
func AtOnce(kind string) bool {
	for _, k := range kinds {
		if k.name == kind {
			return k.atOnce
		}
	}
	return false
}

// Generate makes up a load of a kind. A node has the same pods however many nodes
// there are.
func Generate(kind string, s Shape) (Load, error) {
	i := slices.Index(Kinds(), kind)
	if i < 0 {
		return Load{}, fmt.Errorf("load: %q: must be one of %s", kind, strings.Join(Kinds(), ", "))
	}
	if err := s.validate(); err != nil {
		return Load{}, err
	}
	l := Load{Name: kind, Duration: s.Duration, Nodes: make([][]Pod, s.Nodes), AtOnce: kinds[i].atOnce, Cold: kinds[i].cold}
	for k := range l.Nodes {
		g := &generator{rng: rand.New(rand.NewPCG(s.Seed, uint64(k))), usual: s.Pods, end: s.Duration}
		kinds[i].play(g)
		slices.SortFunc(g.pods, func(a, b Pod) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
		if len(g.pods) > mostPods/s.Nodes { // the others have about as many
			return Load{}, fmt.Errorf("nodes: %d: must be at most %d, as a node has %d pods in %v of this load",
				s.Nodes, mostPods/len(g.pods), len(g.pods), s.Duration)
		}
		l.Nodes[k] = g.pods
	}
	return l, nil
}

func (s Shape) validate() error {
	switch {
	case s.Nodes < 1 || s.Nodes > mostNodes:
		return fmt.Errorf("nodes: %d: must be 1 to %d", s.Nodes, mostNodes)
	case s.Pods < 1 || s.Pods > mostUsualPods:
		return fmt.Errorf("pods: %d: must be 1 to %d", s.Pods, mostUsualPods)
	case s.Duration < shortestLoad || s.Duration > longestLoad:
		return fmt.Errorf("duration: %v: must be %.0fm to %.0fh", s.Duration, shortestLoad.Minutes(), longestLoad.Hours())
	}
	return nil
}

// Pods is how many pods the load has.
func (l Load) Pods() int {
	n := 0
	for _, pods := range l.Nodes {
		n += len(pods)
	}
	return n
}

// Peak is the highest number of pods that one node has at once.
func (l Load) Peak() int {
	peak := 0
	for _, pods := range l.Nodes {
		ends := make([]time.Duration, len(pods))
		for i, p := range pods {
			ends[i] = p.End
		}
		slices.Sort(ends)
		gone := 0
		for i, p := range pods {
			for ends[gone] <= p.Start {
				gone++
			}
			peak = max(peak, i+1-gone)
		}
	}
	return peak
}
