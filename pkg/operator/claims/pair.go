package claims

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/topology"
)

// Where pods have addresses of two families, a pod gets both on one ENI: its routes are those of one. So the first address goes where the second one has
// room, and the second one to where the first one is.

// onENI is a pod on a node.
type onENI struct {
	node string
	pod  Name
}

// partnerENI returns the ENI of a node that has a pod's address of another family, or is to have it, "" if there is none.
func (d *decision) partnerENI(node Node, pod Name, family eni.Family) string {
	if len(d.families) < 2 || pod.Name == "" {
		return ""
	}
	if id := d.placed[onENI{node.Name, pod}]; id != "" {
		return id
	}
	for _, at := range d.claimsOf(pod) {
		if c := d.claims[at]; c.Family() != family && c.Phase != topology.Releasing {
			if id := eniOf(node, at); id != "" {
				return id
			}
		}
	}
	for at, e := range d.elastic {
		if e.Namespace == pod.Namespace && e.Pod == pod.Name && e.node == node.Name && eni.FamilyOf(at) != family {
			if id := eniOf(node, at); id != "" {
				return id
			}
		}
	}
	return ""
}

// partnerSubnet returns the subnet of a pod's address of another family, wherever that is now, "" if it has none: one ENI carries both.
func (d *decision) partnerSubnet(pod Pod, family eni.Family) string {
	if len(d.families) < 2 {
		return ""
	}
	is := func(c topology.Claim) bool {
		return c.Namespace == pod.Namespace && c.Pod == pod.Name.Name && c.Topology == pod.Topology && c.Family() != family && c.Phase != topology.Releasing
	}
	for _, c := range d.claims {
		if is(c.Claim) {
			return c.Subnet
		}
	}
	for _, c := range slices.Concat(d.steps.Creates, slices.Collect(maps.Values(d.creating))) {
		if is(c) {
			return c.Subnet
		}
	}
	for at, e := range d.elastic {
		if e.UID == pod.UID && eni.FamilyOf(at) != family {
			return d.SubnetOf(at)
		}
	}
	return ""
}

// mayCarry tells whether an ENI can have one more address of a family for a pod: not beside another one of the pod's, and not without room for it.
func (d *decision) mayCarry(n Node, e ENI, pod Name, f eni.Family) bool {
	if e.Room[f] <= d.room[place{e.ID, f}] {
		return false
	}
	if partner := d.partnerENI(n, pod, f); partner != "" {
		return e.ID == partner
	}
	return pod.Name == "" || !slices.ContainsFunc(d.families, func(g eni.Family) bool { return e.Room[g] <= d.room[place{e.ID, g}] })
}

// mayShare tells whether a pod can have what is ready on an ENI: beside what it has there already, or with one of each family that is ready there too.
func (d *decision) mayShare(p Pod, n Node, id string, f eni.Family) bool {
	if partner := d.partnerENI(n, p.Name, f); partner != "" {
		return id == partner
	}
	return !slices.ContainsFunc(d.families, func(g eni.Family) bool {
		return g != f && !slices.ContainsFunc(d.readyOn(warmth{n.Name, p.Topology}, g), func(at netip.Addr) bool { return eniOf(n, at) == id })
	})
}

// eniOf returns the ENI of a node that has an address, "" if none has.
func eniOf(n Node, at netip.Addr) string {
	for _, e := range n.ENIs {
		if slices.Contains(e.Addresses, at) {
			return e.ID
		}
	}
	return ""
}
