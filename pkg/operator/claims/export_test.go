package claims

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"time"

	"github.com/enipool/enipool/pkg/topology"
)

// Checked decides by what has changed, and compares that with what a decision about everything says.
type Checked struct {
	last map[string]Orders

	Quiet, Busy int // claims, over all decisions
}

// Decide returns what follows, and what differs, "" for nothing.
func (c *Checked) Decide(k *Known, now time.Time, settled bool) (steps Steps, bad string) {
	plain := k.copied()
	want := plain.Decide(now, settled)
	steps, differ := k.DecideChanged(now, settled)
	defer func() { c.last = steps.Nodes }()
	c.Quiet, c.Busy = c.Quiet+len(k.quiet.claims), c.Busy+len(k.quiet.busy.claims)
	if !reflect.DeepEqual(steps, want) {
		return steps, fmt.Sprintf("by what has changed %+v\nand by everything %+v", steps, want)
	}
	if !reflect.DeepEqual(k.memory, plain.memory) || !reflect.DeepEqual(k.moving, plain.moving) {
		return steps, fmt.Sprintf("remembered by what has changed %+v, %+v\nand by everything %+v, %+v", k.memory, k.moving, plain.memory, plain.moving)
	}
	changed := map[string]bool{}
	for _, name := range differ {
		changed[name] = true
	}
	for _, orders := range []map[string]Orders{c.last, steps.Nodes} {
		for name := range orders {
			was, before := c.last[name]
			if is, after := steps.Nodes[name]; !changed[name] && (before != after || !reflect.DeepEqual(was, is)) {
				return steps, fmt.Sprintf("the orders of %s are others, and nobody is told: %+v, before %+v", name, is, was)
			}
		}
	}
	return steps, k.checkIndexes()
}

// copied returns a copy whose memory is its own.
func (k *Known) copied() *Known {
	c := *k
	c.elastic, c.seen, c.freed, c.asked, c.refused = maps.Clone(k.elastic), maps.Clone(k.seen), maps.Clone(k.freed), maps.Clone(k.asked), maps.Clone(k.refused)
	c.wanted, c.read, c.creating = maps.Clone(k.wanted), maps.Clone(k.read), maps.Clone(k.creating)
	return &c
}

// checkIndexes compares what is kept from decision to decision with what it is made of.
func (k *Known) checkIndexes() string {
	open, beside := map[netip.Addr]int{}, map[netip.Addr]int{}
	for _, p := range k.pods {
		for _, at := range p.shown() {
			beside[at]++
		}
	}
	for _, n := range k.nodes {
		for at := range n.Open {
			open[at]++
			beside[at]++
		}
		for at := range n.Quarantined {
			beside[at]++
		}
		for _, r := range n.Reserved {
			beside[r.Addr]++
		}
		for _, e := range n.ENIs {
			for _, at := range e.Primaries {
				beside[at]++
			}
		}
	}
	named := map[Name]map[netip.Addr]bool{}
	for at, c := range k.claims {
		of := Name{c.Namespace, c.Pod}
		if named[of] == nil {
			named[of] = map[netip.Addr]bool{}
		}
		named[of][at] = true
	}
	for of, want := range named {
		got := map[netip.Addr]bool{}
		for _, at := range k.index.Named(of.Namespace, of.Name) {
			got[at] = true
		}
		if !maps.Equal(got, want) {
			return fmt.Sprintf("%v has the claims %v, and not %v", of, want, got)
		}
	}
	cluster, large := k.cluster(), k.largeCluster()
	for name, of := range k.topologies {
		if a, b := cluster.Room(of), large.Room(of); a != b {
			return fmt.Sprintf("%s has room for %d, or %d", name, a, b)
		}
	}
	if !maps.Equal(open, k.open) || !maps.Equal(beside, k.beside) {
		return fmt.Sprintf("open are %v, counted as %v; beside %v, counted as %v", open, k.open, beside, k.beside)
	}
	return ""
}

// Status of a claim as it is known, for tests.
func (k *Known) Status(at netip.Addr) topology.Status { return k.claims[at].Status }
