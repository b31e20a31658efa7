package sim

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// assign is AssignAddresses.
func (a *Account) assign(m *machine, r request, fault Fault) (reply, error) {
	n := a.enis[r.ENI]
	if n == nil || n.Node != m.Name || n.Index < 0 {
		return reply{}, fail(cloud.ErrNotFound, r.ENI, "the node has no such ENI")
	}
	addrs, err := a.put(n, r.Family, fault.half(r.Count))
	if err == nil {
		err = fault.partial(n.ID)
	}
	return reply{Addresses: addrs}, err
}

// put gives the ENI up to count addresses more. Fewer come with the reason.
func (a *Account) put(n *nic, f eni.Family, count int) ([]netip.Addr, error) {
	if count <= 0 {
		return nil, nil
	}
	s := a.subnets[n.Subnet]
	if s.pool(f) == nil {
		return nil, fail(cloud.ErrSubnetFull, s.ID, "it has no %s", f)
	}
	limit := a.machines[n.Node].Limits.PerENI(f)
	var addrs []netip.Addr
	for range min(count, limit-n.count(f)) {
		addr, ok := s.pool(f).take(a.o.Reuse)
		if !ok {
			break
		}
		addrs = append(addrs, addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	if err := a.route(n, addrs); err != nil {
		s.giveAll(addrs)
		return nil, fail(cloud.ErrUnavailable, n.ID, "%v", err)
	}
	for _, addr := range addrs {
		a.owner[addr] = n
	}
	if len(addrs) > 0 {
		n.Addresses = append(slices.Clone(n.Addresses), addrs...)
		slices.SortFunc(n.Addresses, netip.Addr.Compare)
		a.changed(n)
	}
	switch {
	case len(addrs) == count:
		return addrs, nil
	case n.count(f) >= limit:
		return addrs, fail(cloud.ErrLimit, n.ID, "it may have %d %s addresses besides the primary", limit, f)
	}
	return addrs, fail(cloud.ErrSubnetFull, s.ID, "%d of %d addresses were left", len(addrs), count)
}

// unassign is UnassignAddresses. Primary addresses are among what an ENI does not
// have: they stay.
func (a *Account) unassign(m *machine, r request, fault Fault) error {
	n := a.enis[r.ENI]
	if n == nil || n.Node != m.Name {
		return nil
	}
	if fault.Partial {
		fault.Err = cloud.ErrUnknown
	}
	if err := a.drop(n, r.Addresses[:fault.half(len(r.Addresses))]); err != nil {
		return fail(cloud.ErrUnknown, n.ID, "%v", err)
	}
	return fault.partial(n.ID)
}

// drop takes those of the addresses that are the ENI's secondary ones from it.
func (a *Account) drop(n *nic, addrs []netip.Addr) error {
	var gone, kept []netip.Addr
	for _, addr := range n.Addresses {
		if slices.Contains(addrs, addr) {
			gone = append(gone, addr)
		} else {
			kept = append(kept, addr)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := a.unroute(n, gone); err != nil {
		return err
	}
	for _, addr := range gone {
		delete(a.owner, addr)
	}
	a.subnets[n.Subnet].giveAll(gone)
	n.Addresses = kept
	a.changed(n)
	return nil
}

// remove is DeleteInterface.
func (a *Account) remove(m *machine, id string) error {
	n := a.enis[id]
	switch {
	case n == nil:
		return nil
	case n.Node != m.Name || !n.Ours:
		return fail(cloud.ErrForbidden, id, "it was not made by this node")
	}
	if err := a.destroy(n); err != nil {
		return fail(cloud.ErrUnknown, id, "%v", err)
	}
	return nil
}

// destroy detaches and deletes the ENI.
func (a *Account) destroy(n *nic) error {
	if err := a.unplug(n); err != nil {
		return err
	}
	delete(a.enis, n.ID)
	m := a.machines[n.Node]
	m.enis = slices.DeleteFunc(slices.Clone(m.enis), func(other *nic) bool { return other == n })
	for _, addr := range n.all() {
		delete(a.owner, addr)
	}
	a.giveBack(n)
	a.changed(n)
	return nil
}

// add puts a new ENI into the account.
func (a *Account) add(n *nic) {
	a.enis[n.ID] = n
	m := a.machines[n.Node]
	m.enis = append(m.enis, n)
	for _, addr := range n.all() {
		a.owner[addr] = n
	}
	a.changed(n)
}

// giveBack returns all of the ENI's addresses to its subnet.
func (a *Account) giveBack(n *nic) { a.subnets[n.Subnet].giveAll(n.all()) }

func (s *subnet) giveAll(addrs []netip.Addr) {
	for _, addr := range addrs {
		s.pool(eni.FamilyOf(addr)).give(addr)
	}
}

// all returns the primary and the secondary addresses.
func (n *nic) all() []netip.Addr {
	var addrs []netip.Addr
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if net := n.Net(f); net.IsValid() {
			addrs = append(addrs, net.Primary.Addr())
		}
	}
	return append(addrs, n.Addresses...)
}

// count returns how many secondary addresses of the family the ENI has.
func (n *nic) count(f eni.Family) int {
	count := 0
	for _, addr := range n.Addresses {
		if eni.FamilyOf(addr) == f {
			count++
		}
	}
	return count
}
