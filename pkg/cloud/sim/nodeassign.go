package sim

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// has finds an ENI of the node.
func (h hand) has(id string) (Interface, bool) {
	i, err := h.Interface(id)
	return i, err == nil && (i.At(h.m.Name) || i.Attachment == nil && h.made(i))
}

// assign is AssignAddresses.
func (h hand) assign(r request, fault Fault) (reply, error) {
	i, ok := h.has(r.ENI)
	if !ok || i.Status != InUse {
		return reply{}, failed(cloud.ErrNotFound, r.ENI, "the node has no such ENI")
	}
	count, size := r.Count, size(h.m.Limits, r.Family)
	if count%size == 0 {
		count = fault.some(count/size) * size
	} else {
		count = fault.some(count)
	}
	addrs, err := h.put(i, r.Family, count)
	if err == nil {
		err = fault.partial(i.ID)
	}
	return reply{Addresses: addrs}, err
}

// put gives the ENI up to count addresses more: as many blocks as fit into that and the
// subnet has, then single ones. Fewer come with the reason.
func (h hand) put(i Interface, f eni.Family, count int) ([]netip.Addr, error) {
	if count <= 0 {
		return nil, nil
	}
	s, err := h.Subnet(i.Subnet)
	if err != nil || !slices.Contains(families(s), f) {
		return nil, failed(cloud.ErrSubnetFull, i.Subnet, "it has no %s", f)
	}
	if i.Attachment != nil && i.Attachment.Index == 0 && h.m.Limits.NoPrimary {
		return nil, failed(cloud.ErrLimit, i.ID, "the primary ENI gets no addresses for pods here")
	}
	b, places := h.m.Limits.Block(f), slots(h.m.Limits, f)-i.Slots(f)
	var addrs []netip.Addr
	for ; b.Size > 1 && places > 0 && count-len(addrs) >= b.Size && err == nil; places-- {
		var more []netip.Addr
		if more, err = h.take(i.ID, f, 1, b.Size); ReasonOf(err) == NoBlock {
			err = nil
			break
		}
		addrs = append(addrs, more...)
	}
	if s, _ = h.Subnet(i.Subnet); err == nil {
		single := min(count-len(addrs), places, s.free(f))
		var more []netip.Addr
		if more, err = h.take(i.ID, f, single, 0); ReasonOf(err) == SubnetFull {
			err = nil
		}
		addrs, places = append(addrs, more...), places-len(more)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	switch {
	case err != nil:
		return addrs, h.a.inCloudsTerms(err, i.ID)
	case len(addrs) == count:
		return addrs, nil
	case places <= 0:
		return addrs, failed(cloud.ErrLimit, i.ID, "it may have %d %s addresses besides the primary%s", allPlaces(h.m.Limits, f), f, orBlocks(b))
	}
	return addrs, failed(cloud.ErrSubnetFull, s.ID, "%d of %d addresses were left", len(addrs), count)
}

// free is how many addresses of the family are left.
func (s Subnet) free(f eni.Family) int {
	if f == eni.IPv4 {
		return s.Free
	}
	return s.Free6
}

// take assigns n single addresses or, where a size of them is given, n blocks. It
// returns those that pods may have.
func (h hand) take(id string, f eni.Family, n, size int) ([]netip.Addr, error) {
	var w Wish
	switch {
	case n <= 0:
		return nil, nil
	case f == eni.IPv4 && size > 0:
		w.BlocksV4 = n
	case f == eni.IPv4:
		w.CountV4 = n
	case size > 0:
		w.BlocksV6 = n
	default:
		w.CountV6 = n
	}
	got, err := h.Assign(id, w)
	addrs := slices.Concat(got.V4, got.V6)
	for _, p := range got.Prefixes {
		addrs = append(addrs, forPods(p, size)...)
	}
	return addrs, err
}

func orBlocks(b eni.Block) string {
	if b.Size <= 1 {
		return ""
	}
	return fmt.Sprintf(", or blocks of %d in their place", b.Size)
}

// unassign is UnassignAddresses. Primary addresses are among what an ENI does not
// have: they stay.
func (h hand) unassign(r request, fault Fault) error {
	i, ok := h.has(r.ENI)
	if !ok {
		return nil
	}
	units, part := h.units(i, r.Addresses)
	if part.IsValid() {
		return failed(cloud.ErrForbidden, i.ID, "block %s goes as a whole", part)
	}
	if fault.Partial {
		fault.Err = cloud.ErrUnknown
	}
	var g Got
	for _, u := range units[:fault.some(len(units))] {
		g.V4, g.V6, g.Prefixes = append(g.V4, u.V4...), append(g.V6, u.V6...), append(g.Prefixes, u.Prefixes...)
	}
	if err := h.Unassign(i.ID, g); err != nil {
		return failed(cloud.ErrUnknown, i.ID, "%v", err)
	}
	return fault.partial(i.ID)
}

// units parts addresses into what goes together: blocks, and single addresses; one that
// the ENI does not have is a unit of nothing. It returns a block of which the addresses
// are only a part.
func (h hand) units(i Interface, addrs []netip.Addr) (units []Got, part netip.Prefix) {
	named, counted := map[netip.Prefix]int{}, map[netip.Addr]bool{}
	for _, addr := range addrs {
		at := slices.IndexFunc(i.Prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
		twice := counted[addr]
		counted[addr] = true
		switch {
		case at >= 0:
			p := i.Prefixes[at]
			if named[p] == 0 {
				units = append(units, Got{Prefixes: []netip.Prefix{p}})
			}
			if !twice && slices.Contains(forPods(p, h.m.Limits.Block(eni.FamilyOf(addr)).Size), addr) {
				named[p]++
			}
		case !twice && slices.Contains(i.V4, addr):
			units = append(units, Got{V4: []netip.Addr{addr}})
		case !twice && slices.Contains(i.V6, addr) && !(i.First6 && addr == i.V6[0]):
			units = append(units, Got{V6: []netip.Addr{addr}})
		default:
			units = append(units, Got{})
		}
	}
	for _, p := range i.Prefixes {
		if n := named[p]; n > 0 && n < h.m.Limits.Block(eni.FamilyOf(p.Addr())).Size {
			return nil, p
		}
	}
	return units, netip.Prefix{}
}

// remove is DeleteInterface.
func (h hand) remove(id string) error {
	i, err := h.Interface(id)
	switch {
	case err != nil:
		return nil
	case !h.made(i):
		return failed(cloud.ErrForbidden, id, "it was not made by this node")
	}
	if err := h.destroy(id); err != nil {
		return failed(cloud.ErrUnknown, id, "%v", err)
	}
	return nil
}

// some is how many of n addresses a Partial fault of a Node's call leaves.
func (f Fault) some(n int) int {
	if f.Partial && f.Err != nil {
		return n / 2
	}
	return f.half(n)
}

// partial is the error of a half-done call, nil if it shall have none.
func (f Fault) partial(object string) error {
	if !f.Partial || f.Err == nil {
		return nil
	}
	return &cloud.Error{Kind: f.Err, Object: object, Detail: "a simulated fault after a part of the addresses", RetryAfter: f.RetryAfter}
}
