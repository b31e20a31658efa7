package claims

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
)

// Most claims of a large cluster are quiet: their pods run where their addresses are, or there is no pod, and nothing is to be done for them. All that such
// a claim does to a decision is what its node's status keeps for it. So that is remembered, and only the others are decided about: those of which
// something has changed, those whose time has come, and those that something is under way for.

// quiet is what is quiet, and what is not.
type quiet struct {
	claims  map[netip.Addr]quietClaim
	on      map[string]map[netip.Addr]order.Reserved // by node: what its status keeps for them
	served  map[servedPod]int                        // pods that they serve
	ends    map[netip.Addr]time.Time                 // when those end that have a time
	free    int                                      // those that end with their StatefulSet
	settled bool                                     // see Decide

	busy   marks             // what is not quiet, or has yet to be looked at
	orders map[string]Orders // of each node, as far as they follow from quiet claims
	differ map[string]bool   // nodes whose orders were others than those in the last decision, or are since
}

// marks are claims, pods and nodes.
type marks struct {
	claims map[netip.Addr]bool
	pods   map[Name]bool
	nodes  map[string]bool
}

// quietClaim is what a quiet claim does to a decision.
type quietClaim struct {
	pod  Name
	node string         // that keeps its address, "" for none
	keep order.Reserved // there
	end  time.Time      // zero for none
	free bool           // it ends with its StatefulSet
}

func newQuiet() quiet {
	return quiet{claims: map[netip.Addr]quietClaim{}, on: map[string]map[netip.Addr]order.Reserved{}, served: map[servedPod]int{}, ends: map[netip.Addr]time.Time{},
		busy: marks{claims: map[netip.Addr]bool{}, pods: map[Name]bool{}, nodes: map[string]bool{}}, orders: map[string]Orders{}, differ: map[string]bool{}}
}

// DecideChanged says the same as Decide, at a cost that grows with what has changed since the decision before. It returns in order the nodes whose orders
// may be others than by that one.
func (k *Known) DecideChanged(now time.Time, settled bool) (Steps, []string) {
	d := k.newDecision(now, settled)
	if !k.complete || k.lists == 0 {
		return d.steps, nil
	}
	d.quiet, d.open = &k.quiet, k.open
	d.refresh()
	d.decide()
	d.steps.Nodes = maps.Clone(k.quiet.orders)
	for name, o := range d.orders {
		d.steps.Nodes[name] = *o
		k.quiet.differ[name] = true
	}
	differ := slices.Sorted(maps.Keys(k.quiet.differ))
	clear(k.quiet.differ)
	for name := range d.orders {
		k.quiet.differ[name] = true
	}
	return d.steps, differ
}

// refresh takes in what has changed since the decision before.
func (d *decision) refresh() {
	r := d.quiet
	if r.settled != d.settled {
		r.settled = d.settled
		for at := range r.claims {
			r.busy.claims[at] = true
		}
	}
	for at, end := range r.ends {
		if !d.now.Before(end) {
			r.busy.claims[at] = true
		}
	}
	for at := range r.busy.claims {
		d.refreshClaim(at)
	}
	for _, end := range r.ends {
		d.wakeAt(end)
	}
	for of := range r.busy.pods {
		if d.isServed(of) {
			delete(r.busy.pods, of)
		}
	}
	for name := range r.busy.nodes {
		d.refreshNode(name)
	}
	d.steps.Sets = r.free > 0
}

// refreshClaim sees whether a claim is quiet.
func (d *decision) refreshClaim(at netip.Addr) {
	r := d.quiet
	is, rests := d.quietOf(at)
	if _, known := d.claims[at]; rests || !known {
		delete(r.busy.claims, at)
	}
	was, rested := r.claims[at]
	if rests == rested && is == was {
		return
	}
	if rested {
		delete(r.claims, at)
		r.count(was, -1)
	}
	if rests {
		r.claims[at] = is
		r.count(is, 1)
	}
}

// count adds what a quiet claim does, or takes it away by -1.
func (r *quiet) count(is quietClaim, by int) {
	at := is.keep.Addr
	r.busy.pods[is.pod] = true
	if is.free {
		r.free += by
	}
	if is.keep.UID != "" {
		of := servedPod{is.keep.UID, eni.FamilyOf(at)}
		if r.served[of] += by; r.served[of] == 0 {
			delete(r.served, of)
		}
	}
	if delete(r.ends, at); by > 0 && !is.end.IsZero() {
		r.ends[at] = is.end
	}
	if is.node == "" {
		return
	}
	r.busy.nodes[is.node] = true
	if by > 0 && r.on[is.node] == nil {
		r.on[is.node] = map[netip.Addr]order.Reserved{}
	}
	if delete(r.on[is.node], at); by > 0 {
		r.on[is.node][at] = is.keep
	} else if len(r.on[is.node]) == 0 {
		delete(r.on, is.node)
	}
}

// serves tells whether a quiet claim does.
func (r *quiet) serves(of servedPod) bool { return r != nil && r.served[of] > 0 }

// quietOf tells whether a claim is quiet, and what it does then. It is if a decision of it would do nothing else, and goes by nothing that changes
// without a mark.
func (d *decision) quietOf(at netip.Addr) (is quietClaim, rests bool) {
	c, known := d.claims[at]
	on := d.where[at]
	if !known || c.object.DeletionTimestamp != nil || c.object.Status.Message != "" || c.ToENI != "" || len(on) > 1 || d.isRemembered(at, len(on) == 0) {
		return quietClaim{}, false
	}
	of := Name{c.Namespace, c.Pod}
	f := topology.Facts{Pod: d.podFacts(of, at), StatefulSet: d.setFacts(c.Claim), Surplus: d.isSurplus(c.Claim)}
	f.At = d.attachment(at, f.Pod.Node)
	if isFree := c.Phase == topology.Free && f.Pod.Presence == topology.Absent; !isFree && c.Phase != topology.Bound || !f.At.Known || d.nodes[f.At.Node].Releasing[at] {
		return quietClaim{}, false
	}
	if step := topology.Next(c.Claim, f, d.now); step != (topology.Step{Claim: c.Claim}) {
		return quietClaim{}, false
	}
	is = quietClaim{pod: of, node: f.At.Node, keep: order.Reserved{Addr: at, Topology: c.Topology, Namespace: c.Namespace, Pod: c.Pod}}
	if c.Serves() {
		is.keep.UID = c.PodUID
	}
	is.end, _ = c.EndsAt()
	is.free = c.Phase == topology.Free && c.Keep == topology.Fixed
	return is, true
}

// isRemembered tells whether a decision has something to forget of an address, or goes by it.
func (k *Known) isRemembered(at netip.Addr, nowhere bool) bool {
	_, refused := k.refused[at]
	_, asked := k.asked[at]
	_, wanted := k.wanted[at]
	_, left := k.left.at[at]
	return refused || left || asked || nowhere && wanted
}

// isServed tells whether nothing is to be chosen for a pod.
func (d *decision) isServed(of Name) bool {
	p, is := d.pods[of]
	if !is || p.Ended || p.Node == "" {
		return true
	}
	return !slices.ContainsFunc(d.families, func(f eni.Family) bool { return d.quiet.served[servedPod{p.UID, f}] == 0 })
}

// refreshNode sees what a node's status keeps for quiet claims, and whether it says that and no more.
func (d *decision) refreshNode(name string) {
	r := d.quiet
	n, known := d.nodes[name]
	was, before := r.orders[name]
	if !known {
		delete(r.orders, name)
		delete(r.busy.nodes, name)
		if before {
			r.differ[name] = true
		}
		return
	}
	list := r.keptOn(name)
	if slices.Equal(n.Reserved, list) {
		delete(r.busy.nodes, name)
	}
	if before && slices.Equal(was.Reserved, list) {
		return
	}
	if r.orders[name] = (Orders{}); len(list) > 0 {
		o := newOrders()
		o.Reserved = list
		r.orders[name] = *o
	}
	r.differ[name] = true
}

// keptOn returns what a node's status keeps for quiet claims, in order.
func (r *quiet) keptOn(node string) []order.Reserved {
	return slices.SortedFunc(maps.Values(r.on[node]), func(a, b order.Reserved) int { return a.Addr.Compare(b.Addr) })
}
