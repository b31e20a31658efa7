package scale

import (
	"fmt"
	"strings"
	"time"
)

// node is a pool whose cloud delivers what was decided after a time.
type node struct {
	Config
	state  State
	owned  int
	coming []delivery
}

type delivery struct{ at, owned int }

// second is what is seen at a time in seconds since boot.
type second struct {
	Observation
	latency int // of the cloud, in seconds; 0 stands for 1
}

func newNode(c Config, owned int) *node {
	return &node{Config: c, state: New(c, owned, 0), owned: owned}
}

// tick decides once, with the pool that the cloud has delivered until now.
func (n *node) tick(t int, s second) Decision {
	for len(n.coming) > 0 && n.coming[0].at <= t {
		n.owned, n.coming = n.coming[0].owned, n.coming[1:]
	}
	s.Owned = n.owned
	last := n.state.Target
	var d Decision
	n.state, d = n.Decide(n.state, time.Duration(t)*time.Second, s.Observation)
	if d.Target != last {
		n.coming = append(n.coming, delivery{t + max(s.latency, 1), d.Target})
	}
	return d
}

// history runs seconds 1 to last and returns the targets, "t:target" whenever it
// is another one.
func (n *node) history(last int, see func(t int) second) string {
	var b strings.Builder
	before := -1
	for t := 1; t <= last; t++ {
		if d := n.tick(t, see(t)); d.Target != before {
			before = d.Target
			fmt.Fprintf(&b, " %d:%d", t, d.Target)
		}
	}
	return strings.TrimSpace(b.String())
}

// sees is a readable demand on a node that can hold 250.
func sees(demand int) second {
	return second{Observation: Observation{Demand: demand, Most: 250, Valid: true}}
}

// from returns later from that second on and earlier before.
func from(t, at, earlier, later int) int {
	if t >= at {
		return later
	}
	return earlier
}
