package claims

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
)

// reserve says what each node's status keeps for whom.
func (d *decision) reserve() {
	for _, at := range d.busyClaims() {
		c, on := d.claims[at], d.where[at]
		if c.Phase == topology.OnItsWay && d.nodes[c.To].Open[at] && !slices.Contains(on, c.To) { // the call is under way
			d.keep(c.To, order.Reserved{Addr: at, Topology: c.Topology, Namespace: c.Namespace, Pod: c.Pod, UID: c.PodUID})
		}
		if d.leaves[at] {
			continue
		}
		if len(on) > 1 || d.isLate(c.Claim) { // no pod gets it where it is accepted that it leaves
			on = slices.DeleteFunc(slices.Clone(on), func(node string) bool { return d.nodes[node].Releasing[at] })
		}
		for _, node := range on {
			d.keep(node, keptFor(c.Claim, len(on) > 1))
		}
	}
	for _, name := range d.busyNodes() {
		if len(d.nodes[name].Reserved) > 0 {
			d.of(name) // what is not kept any more goes
		}
	}
	for name, o := range d.orders {
		for _, addrs := range append(slices.Collect(maps.Values(o.Assign)), o.moved()...) { // before the call: whatever shows it first, it is nobody else's
			for _, at := range addrs {
				if c, is := d.claims[at]; is {
					d.keep(name, order.Reserved{Addr: at, Topology: c.Topology, Namespace: c.Namespace, Pod: c.Pod, UID: c.PodUID})
				}
			}
		}
	}
	for _, o := range d.orders {
		slices.SortFunc(o.Reserved, func(a, b order.Reserved) int { return a.Addr.Compare(b.Addr) })
		o.Reserved = slices.CompactFunc(o.Reserved, func(a, b order.Reserved) bool { return a.Addr == b.Addr })
		for _, addrs := range o.Assign {
			slices.SortFunc(addrs, netip.Addr.Compare)
		}
	}
}

// keptFor returns for whom the address of a claim is kept where it is: for the pod that has it or is to have it, or for the next one of the name. While more nodes
// than one have it, it is for whichever pod of the name there is. One that ends is for nobody new.
func keptFor(c topology.Claim, unclear bool) order.Reserved {
	r := order.Reserved{Addr: c.Addr, Topology: c.Topology, Namespace: c.Namespace, Pod: c.Pod}
	switch {
	case c.Phase == topology.Releasing && c.PodUID == "":
		return order.Reserved{Addr: c.Addr}
	case !unclear && (c.Serves() || c.Phase == topology.OnItsWay):
		r.UID = c.PodUID
	}
	return r
}

func (d *decision) keep(node string, r order.Reserved) {
	o := d.of(node)
	o.Reserved = append(o.Reserved, r)
}

// Basis is what a node's status keeps addresses by.
type Basis struct {
	Orders
	Decided bool // it was decided about the node in this term
	Crosses bool // ENIs carry addresses of other subnets
	Claimed func(netip.Addr) bool
}

// Keep returns what a node's status keeps for pods of topologies; ordered is the status without what a describe has just shown. An address that was kept or
// has a claim, and that the decision did not know to be here, is nobody's until it is decided again: else any pod could have it. Before the first
// decision of a term the object says what the leader before has decided, and what shows up that this leader has not ordered may be of any claim.
func Keep(view order.View, ordered order.Status, by Basis) []order.Reserved {
	limits, was, reserved := view.Status.Limits, order.Reservations(view.Status.Reserved), slices.Clone(by.Reserved)
	if !by.Decided {
		reserved = slices.Clone(view.Status.Reserved)
	}
	decided, known := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, a := range slices.Concat(order.Addresses(limits, view.Status.Releasing...), by.Seize) {
		decided[a] = true
	}
	for _, r := range reserved {
		decided[r.Addr] = true
	}
	for _, e := range ordered.ENIs {
		for _, a := range order.Addresses(limits, e.Addresses...) {
			known[a] = true
		}
	}
	for _, e := range view.Status.ENIs {
		for _, a := range order.Addresses(limits, e.Addresses...) {
			claimed := by.Claimed(a)
			before, kept := was[a]
			if claimed {
				before.Topology = "" // else it would be its next pod's
			}
			// What is of another subnet came for a pod of a topology, and is for no other one.
			crossed := by.Crosses && !e.HasInSubnet(a)
			if (claimed || kept || crossed || !by.Decided && !known[a]) && !decided[a] {
				reserved = append(reserved, order.Reserved{Addr: a, Topology: before.Topology})
			}
		}
	}
	return reserved
}
