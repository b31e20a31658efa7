package claims

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/topology"
)

// Where each ENI of a node is full and it can have no more, an address of the pool that no pod uses may leave its place to one of a topology. The node's
// agent says how many it could do without, and releases one as for pods of other nodes that wait. Until the topology's address is there nothing else gets
// the place: see Orders.Yield.

// carriers returns the ENIs of a node that can have addresses of a subnet: those in the subnet first. Where the cloud carries
// addresses across subnets the others can too, as long as the subnet is one of the node's zone.
func (d *decision) carriers(n Node, subnet string) (list []ENI) {
	for _, e := range n.ENIs {
		if e.Subnet == subnet {
			list = append(list, e)
		}
	}
	if !n.Crosses || !d.isIn(subnet, n.Zone) {
		return list
	}
	for _, e := range n.ENIs {
		if e.Subnet != subnet {
			list = append(list, e)
		}
	}
	return list
}

// isIn tells whether a subnet is known to lie in a zone.
func (k *Known) isIn(subnet, zone string) bool {
	return slices.ContainsFunc(k.subnets, func(s topology.Subnet) bool { return s.ID == subnet && s.Zone == zone })
}

// demand is a place that a pod needs.
type demand struct{ node, uid string }

// awaitPlace returns what a pod waits for whose node has no ENI that can carry an address of any of these subnets, the most wanted first. An idle
// address of the pool leaves its place where one can.
func (d *decision) awaitPlace(node Node, pod Pod, subnets []string, none topology.Wait) topology.Wait {
	o := d.of(node.Name)
	switch {
	case o.Make.Subnet != "" || !node.Full || !node.Serves:
		return node.explained(none)
	case d.yields[demand{node.Name, pod.UID}]: // of its other family: a place has room for both
		return yielding(node, none)
	}
	if node.Crosses { // a place on any of its ENIs would do
		subnets = append(slices.Clone(subnets), slices.Sorted(maps.Keys(node.Yields))...)
	}
	for _, id := range subnets {
		if node.Yields[id] > o.Yield[id] {
			if o.Yield == nil {
				o.Yield = map[string]int{}
			}
			o.Yield[id]++
			d.yields[demand{node.Name, pod.UID}] = true
			return yielding(node, none)
		}
	}
	none = node.explained(none)
	return topology.Wait{Cause: topology.NoPlace, Until: none.Until,
		Message: fmt.Sprintf("%s: it can have no more ENIs, and none has an idle address that could make room (%d places are kept for topologies: pool.topologyPlaces of its agent.yaml)", none.Message, node.Places)}
}

// explained returns why a pod waits with why no ENI of another subnet serves it, where that could be.
func (n Node) explained(none topology.Wait) topology.Wait {
	if n.NoCross != "" && none.Cause == topology.NoSlot {
		none.Message += " (" + n.NoCross + ")"
	}
	return none
}

func yielding(n Node, none topology.Wait) topology.Wait {
	return topology.Wait{Cause: topology.Moving, Until: none.Until, Message: fmt.Sprintf("%s: an idle address of %s makes room", none.Message, n.Name)}
}

// promise takes places for the addresses of claims that are to come to a node and are not ordered yet: the objects are being made and written first, and
// without that the pool would have the place by then.
func (d *decision) promise() {
	for _, at := range d.busyClaims() {
		d.promiseFor(at, d.claims[at].Claim)
	}
	for _, at := range slices.SortedFunc(maps.Keys(d.creating), netip.Addr.Compare) {
		d.promiseFor(at, d.creating[at])
	}
}

func (d *decision) promiseFor(at netip.Addr, c topology.Claim) {
	p, is := d.pods[Name{c.Namespace, c.Pod}]
	n, known := d.nodes[p.Node]
	if is && known && !p.Ended && p.Topology == c.Topology && c.Phase != topology.Releasing && !d.targets[at] && !n.Open[at] && !slices.Contains(d.where[at], n.Name) {
		d.freeENI(n, c)
	}
}

// tellPromised says which places are taken on which ENI: one of each family shares one.
func (d *decision) tellPromised() {
	if len(d.room) == 0 {
		return // nearly always
	}
	for _, n := range d.nodes {
		for _, e := range n.ENIs {
			most := 0
			for _, f := range d.families {
				most = max(most, d.room[place{e.ID, f}])
			}
			if most == 0 {
				continue
			}
			o := d.of(n.Name)
			if o.Promised == nil {
				o.Promised = map[string]int{}
			}
			o.Promised[e.ID] = most
		}
	}
}
