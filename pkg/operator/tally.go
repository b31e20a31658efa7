package operator

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/pool"
)

// portion is what nodes have of a subnet.
type portion struct {
	interfaces, addresses int // that they have, primary addresses among them
	owed                  int // addresses that their ENIs are still to get
}

// tally is what all nodes together have of each subnet. What one node has follows from its object and is exchanged as a whole, so no event
// that gets lost makes it wrong; and a node that changes costs what it has itself, however many others there are.
type tally map[string]portion

// exchange replaces what a node has.
func (y tally) exchange(m *member, now map[string]portion) {
	for id, was := range m.has {
		all := y[id]
		y[id] = portion{all.interfaces - was.interfaces, all.addresses - was.addresses, all.owed - was.owed}
	}
	for id, is := range now {
		all := y[id]
		y[id] = portion{all.interfaces + is.interfaces, all.addresses + is.addresses, all.owed + is.owed}
	}
	m.has = now
}

// targetsIn returns how much the ENIs of all nodes in a subnet are still to get.
func (y tally) targetsIn(id string) []placement.Target {
	if owed := y[id].owed; owed > 0 {
		return []placement.Target{{Target: owed}}
	}
	return nil
}

// portions returns what the node has of each subnet, by its object: ENIs of a burstable pool are to be full, and what has left its place to an address of a
// topology is to be there again when that goes. lies, if it is there, tells the subnet of an address that is not of its ENI's.
func (m *member) portions(lies func(netip.Addr) string) map[string]portion {
	if m.network == nil {
		return nil
	}
	has := map[string]portion{}
	for _, e := range m.network.Status.ENIs {
		p := has[e.Subnet]
		p.interfaces++
		p.addresses += 1 + len(e.Addresses)
		has[e.Subnet] = p
	}
	if lies != nil {
		m.countCrossed(has, lies)
	}
	for id, n := range m.owedPlaces() {
		p := has[id]
		p.owed += n
		has[id] = p
	}
	spec, l := m.view.Spec, m.view.Status.Limits
	if !m.isKnown() || spec.Pool.Mode != pool.Burstable || spec.Pool.Partial || len(spec.Families) == 0 {
		return has
	}
	for _, e := range m.view.Status.ENIs {
		if e.State == order.Attached && e.Index >= spec.Pool.FirstIndex(l) {
			p := has[e.Subnet]
			p.owed += max(0, l.PerENI(spec.Families[0])-len(order.Addresses(l, e.Addresses...)))
			has[e.Subnet] = p
		}
	}
	return has
}

// countCrossed counts the addresses of other subnets than their ENIs' where they are.
func (m *member) countCrossed(has map[string]portion, lies func(netip.Addr) string) {
	for _, e := range m.view.Status.ENIs {
		for _, p := range e.Addresses {
			id := lies(p.Addr())
			if e.HasInSubnet(p.Addr()) || id == "" || id == e.Subnet {
				continue
			}
			from, to := has[e.Subnet], has[id]
			from.addresses, to.addresses = from.addresses-1, to.addresses+1
			has[e.Subnet], has[id] = from, to
		}
	}
}
