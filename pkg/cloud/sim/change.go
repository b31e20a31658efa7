package sim

import (
	"fmt"
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
	count, size := r.Count, size(m.Limits, r.Family)
	if count%size == 0 {
		count = fault.half(count/size) * size
	} else {
		count = fault.half(count)
	}
	addrs, err := a.put(n, r.Family, count)
	if err == nil {
		err = fault.partial(n.ID)
	}
	return reply{Addresses: addrs}, err
}

// put gives the ENI up to count addresses more: as many blocks as fit into that and the
// subnet has, then single ones. Fewer come with the reason.
func (a *Account) put(n *nic, f eni.Family, count int) ([]netip.Addr, error) {
	if count <= 0 {
		return nil, nil
	}
	s := a.subnets[n.Subnet]
	if s.pool(f) == nil {
		return nil, fail(cloud.ErrSubnetFull, s.ID, "it has no %s", f)
	}
	limits := a.machines[n.Node].Limits
	addrs, blocks := a.take(s, limits.Block(f), f, count, allPlaces(limits, f)-n.places(f))
	if err := a.route(n, addrs); err != nil {
		s.giveAll(addrs, blocks)
		return nil, fail(cloud.ErrUnavailable, n.ID, "%v", err)
	}
	for _, addr := range addrs {
		a.owner[addr] = n
	}
	n.Blocks = append(slices.Clip(n.Blocks), blocks...)
	if len(addrs) > 0 {
		n.Addresses = append(slices.Clone(n.Addresses), addrs...)
		slices.SortFunc(n.Addresses, netip.Addr.Compare)
		a.changed(n)
	}
	switch {
	case len(addrs) == count:
		return addrs, nil
	case n.places(f) >= allPlaces(limits, f):
		return addrs, fail(cloud.ErrLimit, n.ID, "it may have %d %s addresses besides the primary%s", allPlaces(limits, f), f, orBlocks(limits.Block(f)))
	}
	return addrs, fail(cloud.ErrSubnetFull, s.ID, "%d of %d addresses were left", len(addrs), count)
}

func orBlocks(b eni.Block) string {
	if b.Size <= 1 {
		return ""
	}
	return fmt.Sprintf(", or blocks of %d in their place", b.Size)
}

// take takes up to count addresses from the subnet, in at most so many blocks and single
// addresses.
func (a *Account) take(s *subnet, b eni.Block, f eni.Family, count, places int) (addrs []netip.Addr, blocks []delegated) {
	p := s.pool(f)
	for ; b.Size > 1 && places > 0 && count-len(addrs) >= b.Size; places-- {
		d, ok := p.takeBlock(b, a.o.Reuse)
		if !ok {
			break
		}
		addrs, blocks = append(addrs, d.addrs()...), append(blocks, d)
	}
	for ; places > 0 && len(addrs) < count; places-- {
		addr, ok := p.take(a.o.Reuse)
		if !ok {
			break
		}
		addrs = append(addrs, addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs, blocks
}

// unassign is UnassignAddresses. Primary addresses are among what an ENI does not
// have: they stay.
func (a *Account) unassign(m *machine, r request, fault Fault) error {
	n := a.enis[r.ENI]
	if n == nil || n.Node != m.Name {
		return nil
	}
	if d, part := n.partOf(r.Addresses); part {
		return fail(cloud.ErrForbidden, n.ID, "block %s goes as a whole", d.Prefix)
	}
	if fault.Partial {
		fault.Err = cloud.ErrUnknown
	}
	units := n.units(r.Addresses)
	if err := a.drop(n, slices.Concat(units[:fault.half(len(units))]...)); err != nil {
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
	var blocks []delegated
	for _, addr := range gone {
		delete(a.owner, addr)
		if d, in := n.block(addr); in && !slices.Contains(blocks, d) {
			blocks = append(blocks, d)
		}
	}
	a.subnets[n.Subnet].giveAll(gone, blocks)
	n.Addresses = kept
	n.Blocks = slices.DeleteFunc(slices.Clone(n.Blocks), func(d delegated) bool { return slices.Contains(blocks, d) })
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
func (a *Account) giveBack(n *nic) { a.subnets[n.Subnet].giveAll(n.all(), n.Blocks) }

// giveAll takes addresses back, those of blocks as blocks.
func (s *subnet) giveAll(addrs []netip.Addr, blocks []delegated) {
	for _, addr := range addrs {
		if !slices.ContainsFunc(blocks, func(d delegated) bool { return d.Prefix.Contains(addr) }) {
			s.pool(eni.FamilyOf(addr)).give(addr)
		}
	}
	for _, d := range blocks {
		s.pool(eni.FamilyOf(d.Prefix.Addr())).giveBlock(d)
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
