package sim

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// delegated is a block of addresses that an ENI has as a whole, a delegated prefix.
// The first Size of its addresses are shown, and those alone are counted.
type delegated struct {
	Prefix netip.Prefix
	Size   int
}

// addrs returns those that are shown.
func (d delegated) addrs() []netip.Addr {
	list := make([]netip.Addr, 0, d.Size)
	for a := d.Prefix.Addr(); len(list) < d.Size; a = a.Next() {
		list = append(list, a)
	}
	return list
}

func validBlock(f eni.Family, b eni.Block) error {
	if b == (eni.Block{}) {
		return nil
	}
	if host := f.Bits() - b.Bits; b.Bits < 1 || host < 0 || b.Size < 1 || host < 31 && b.Size > 1<<host {
		return fmt.Errorf("a block of %d %s addresses that share %d bits can't be", b.Size, f, b.Bits)
	}
	return nil
}

// mostBlocks is how many blocks of a subnet are looked at.
const mostBlocks = 1 << 16

// takeBlock gives a whole block out: from the end of the range on, for single addresses
// come from its beginning, and round and round, but for ReuseLatest.
func (p *pool) takeBlock(b eni.Block, order Reuse) (delegated, bool) {
	bits := b.Bits - p.net.Bits()
	if p.Fragmented || p.free() < b.Size || bits < 1 {
		return delegated{}, false
	}
	n := min(1<<min(bits, 30), mostBlocks)
	freed := map[netip.Addr]bool{}
	for _, a := range p.Freed {
		freed[a] = true
	}
	for i := range n {
		if order != ReuseLatest {
			i = (i + p.Turn) % n
		}
		d := delegated{p.block(n-1-i, b.Bits), b.Size}
		if p.whole(d, freed) {
			p.Turn = (i + 1) % n
			p.delegate(d)
			return d, true
		}
	}
	return delegated{}, false
}

// block returns the i-th block of the range.
func (p *pool) block(i, bits int) netip.Prefix {
	b := p.net.Addr().AsSlice()
	for at := bits - 1; i > 0; at, i = at-1, i>>1 {
		if i&1 == 1 {
			b[at/8] |= 0x80 >> (at % 8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(a, bits)
}

// whole tells whether nobody has an address of the block, and all can be given out.
func (p *pool) whole(d delegated, freed map[netip.Addr]bool) bool {
	for a := range p.reserved {
		if d.Prefix.Contains(a) {
			return false
		}
	}
	if slices.ContainsFunc(p.Blocks, func(other delegated) bool { return other.Prefix.Overlaps(d.Prefix) }) {
		return false
	}
	for a := d.Prefix.Addr(); d.Prefix.Contains(a) && (!p.Next.IsValid() || a.Less(p.Next)); a = a.Next() {
		if !freed[a] {
			return false
		}
	}
	return true
}

func (p *pool) delegate(d delegated) {
	p.Freed = slices.DeleteFunc(p.Freed, d.Prefix.Contains)
	p.Blocks = append(p.Blocks, d)
	p.used += d.Size
	if p.Next.IsValid() {
		p.Next = p.from(p.Next)
	}
}

// giveBlock takes a block back. What lies before the next address that nobody ever had
// is freed one by one.
func (p *pool) giveBlock(d delegated) {
	p.used -= d.Size
	p.Blocks = slices.DeleteFunc(p.Blocks, func(other delegated) bool { return other == d })
	for a := d.Prefix.Addr(); d.Prefix.Contains(a) && (!p.Next.IsValid() || a.Less(p.Next)); a = a.Next() {
		p.Freed = append(p.Freed, a)
	}
}

// blockOf returns the index of the block that the address is of, -1 if there is none.
func (p *pool) blockOf(a netip.Addr) int {
	return slices.IndexFunc(p.Blocks, func(d delegated) bool { return d.Prefix.Contains(a) })
}

func (p *pool) delegated(a netip.Addr) bool { return p.blockOf(a) >= 0 }

// inBlocks returns how many of the addresses in use are in blocks.
func (p *pool) inBlocks() int {
	n := 0
	for _, d := range p.Blocks {
		n += d.Size
	}
	return n
}

// Fragment lets others have an address in each block of the subnet that is whole, so
// that it gives single addresses alone, or gives them back. How many they have is
// SetForeign's matter.
func (a *Account) Fragment(subnet string, broken bool) error {
	a.lock()
	defer a.mu.Unlock()
	s := a.subnets[subnet]
	if s == nil {
		return fmt.Errorf("fragment: there is no subnet %q", subnet)
	}
	for _, f := range s.families() {
		s.pool(f).Fragmented = broken
	}
	return nil
}

// block returns the ENI's block that has the address.
func (n *nic) block(a netip.Addr) (delegated, bool) {
	at := slices.IndexFunc(n.Blocks, func(d delegated) bool { return d.Prefix.Contains(a) })
	if at < 0 {
		return delegated{}, false
	}
	return n.Blocks[at], true
}

// places returns how much of the ENI's limit is taken: a block as much as an address.
func (n *nic) places(f eni.Family) int {
	taken := n.count(f)
	for _, d := range n.Blocks {
		if eni.FamilyOf(d.Prefix.Addr()) == f {
			taken -= d.Size - 1
		}
	}
	return taken
}

// allPlaces returns how much of it there is.
func allPlaces(l eni.Limits, f eni.Family) int { return l.PerENI(f) / size(l, f) }

func size(l eni.Limits, f eni.Family) int { return max(l.Block(f).Size, 1) }

// units parts addresses into what goes together: whole blocks of the ENI, and single
// addresses.
func (n *nic) units(addrs []netip.Addr) [][]netip.Addr {
	var units [][]netip.Addr
	at := map[netip.Prefix]int{}
	for _, a := range addrs {
		d, in := n.block(a)
		if !in {
			units = append(units, []netip.Addr{a})
			continue
		}
		i, known := at[d.Prefix]
		if !known {
			i = len(units)
			at[d.Prefix] = i
			units = append(units, nil)
		}
		units[i] = append(units[i], a)
	}
	return units
}

// partOf returns a block of which the addresses are only a part.
func (n *nic) partOf(addrs []netip.Addr) (delegated, bool) {
	asked := map[netip.Addr]bool{}
	for _, a := range addrs {
		asked[a] = true
	}
	for _, d := range n.Blocks {
		named := 0
		for _, a := range d.addrs() {
			if asked[a] {
				named++
			}
		}
		if named > 0 && named < d.Size {
			return d, true
		}
	}
	return delegated{}, false
}

// delegated counts the blocks that ENIs have, by the pool that has given them.
func (a *Account) delegated(bad complain) map[*pool]int {
	count := map[*pool]int{}
	for _, n := range a.enis {
		for _, d := range n.Blocks {
			p := a.subnets[n.Subnet].pool(eni.FamilyOf(d.Prefix.Addr()))
			if count[p]++; p == nil || !slices.Contains(p.Blocks, d) {
				bad("ENI %s has block %s, which subnet %s has not given", n.ID, d.Prefix, n.Subnet)
			}
		}
	}
	return count
}

// check tells whether the ENI has all of its blocks, as its node's limits have them.
func (n *nic) check(l eni.Limits, bad complain) {
	for _, d := range n.Blocks {
		if b := l.Block(eni.FamilyOf(d.Prefix.Addr())); d.Prefix.Bits() != b.Bits || d.Size != b.Size || d.Prefix != d.Prefix.Masked() {
			bad("ENI %s has block %s of %d addresses, its node's are %+v", n.ID, d.Prefix, d.Size, b)
		}
		for _, a := range d.addrs() {
			if !slices.Contains(n.Addresses, a) {
				bad("ENI %s has block %s without %s", n.ID, d.Prefix, a)
			}
		}
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if n.places(f) > allPlaces(l, f) || n.Net(f).IsValid() && most(l, f) == 0 {
			bad("ENI %s has %d %s addresses, it may have %d%s", n.ID, n.count(f), f, allPlaces(l, f), orBlocks(l.Block(f)))
		}
	}
}
