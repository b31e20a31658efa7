package sim

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// The lengths of delegated prefixes where Options name none: EC2's.
const (
	blockV4 = 28
	blockV6 = 80
)

// mostBlocks is how many blocks of a subnet are looked at.
const mostBlocks = 1 << 16

// blockBits returns how many bits a delegated prefix of the family has.
func (o Options) blockBits(f eni.Family) int {
	if f == eni.IPv4 {
		return cmp.Or(o.BlockV4, blockV4)
	}
	return cmp.Or(o.BlockV6, blockV6)
}

// blockOf returns the block that an address lies in.
func (p *pool) blockOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, p.bits).Masked() }

func (p *pool) perBlock() int { return 1 << (p.net.Addr().BitLen() - p.bits) }

// wholeBlock returns a block of which every address is free. It searches from the end of the
// range, because single addresses come from its beginning. Except for ReuseLatest, each search
// goes on where the last one ended.
func (p *pool) wholeBlock(order Reuse) (netip.Prefix, bool) {
	bits := p.bits - p.net.Bits()
	if p.fragmented || bits < 1 || p.free() < p.perBlock() {
		return netip.Prefix{}, false
	}
	n := min(1<<min(bits, 30), mostBlocks)
	for i := range n {
		if order != ReuseLatest {
			i = (i + p.turn) % n
		}
		if b := p.nthBlock(n - 1 - i); p.inside[b] == 0 && p.blocks[b] == "" {
			p.turn = (i + 1) % n
			return b, true
		}
	}
	return netip.Prefix{}, false
}

// nthBlock returns the i-th block of the range.
func (p *pool) nthBlock(i int) netip.Prefix {
	b := p.net.Addr().AsSlice()
	for at := p.bits - 1; i > 0; at, i = at-1, i>>1 {
		if i&1 == 1 {
			b[at/8] |= 0x80 >> (at % 8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(a, p.bits)
}

// mayUseBlock tells why nobody can have this block, or returns nil.
func (p *pool) mayUseBlock(b netip.Prefix) error {
	switch {
	case b.Bits() != p.bits || b != b.Masked():
		return fail(Invalid, b.String(), "not an aligned /%d", p.bits)
	case !p.net.Contains(b.Addr()) || p.net.Bits() > p.bits:
		return fail(OutsideSubnet, b.String(), "")
	case p.inside[b] > 0 || p.blocks[b] != "" || p.fragmented:
		return fail(AddressInUse, b.String(), "")
	}
	return nil
}

// useBlock notes that the owner has a whole block.
func (p *pool) useBlock(b netip.Prefix, owner string) {
	p.blocks[b] = owner
	p.freed = slices.DeleteFunc(p.freed, b.Contains)
}

// giveBlock makes a block free again. The addresses of an IPv6 block are not listed as free single
// ones, because that list would be endless and a subnet has enough others.
func (p *pool) giveBlock(b netip.Prefix) {
	delete(p.blocks, b)
	if b.Addr().Is6() {
		return
	}
	for a := b.Addr(); b.Contains(a); a = a.Next() {
		if !p.next.IsValid() || a.Less(p.next) {
			p.freed = append(p.freed, a)
		}
	}
}
