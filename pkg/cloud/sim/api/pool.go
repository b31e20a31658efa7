package api

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// The lengths of delegated prefixes.
const (
	blockV4 = 28
	blockV6 = 80
)

// endless is how many free addresses no subnet is ever filled by hand.
const endless = 1 << 20

// foreign owns what others of the VPC have.
const foreign = "foreign"

// pool is the addresses of one family in a subnet.
type pool struct {
	net      netip.Prefix
	bits     int // of a block
	reserved map[netip.Addr]bool
	size     int // addresses that can be given out

	used   map[netip.Addr]string   // the owner of each single address
	blocks map[netip.Prefix]string // the owner of each block
	inside map[netip.Prefix]int    // single and reserved addresses of each block
	next   netip.Addr              // all below were given out one by one, or skipped
	freed  []netip.Addr            // free ones below next, in the order of giving back
	others []netip.Addr            // the foreign ones
	lost   int                     // foreign ones of an endless subnet, it does not matter which
}

func newPool(net netip.Prefix, r Reserve, reserved []netip.Addr) (*pool, error) {
	if net != net.Masked() || net.Addr().BitLen()-net.Bits() < 3 {
		return nil, fmt.Errorf("%s is no network of at least 8 addresses", net)
	}
	p := &pool{net: net, bits: blockV4, reserved: map[netip.Addr]bool{}, used: map[netip.Addr]string{},
		blocks: map[netip.Prefix]string{}, inside: map[netip.Prefix]int{}, next: net.Addr()}
	if net.Addr().Is6() {
		p.bits = blockV6
	}
	for a, i := net.Addr(), 0; i < r.First; a, i = a.Next(), i+1 {
		p.reserved[a] = true
	}
	for a, i := lastOf(net), 0; i < r.Last; a, i = a.Prev(), i+1 {
		p.reserved[a] = true
	}
	for _, a := range reserved {
		if net.Contains(a) {
			p.reserved[a] = true
		}
	}
	for a := range p.reserved {
		p.inside[p.block(a)]++
	}
	p.size = 1<<min(net.Addr().BitLen()-net.Bits(), 62) - len(p.reserved)
	return p, nil
}

// lastOf returns the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// block returns the block that an address lies in.
func (p *pool) block(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, p.bits).Masked() }

func (p *pool) perBlock() int { return 1 << (p.net.Addr().BitLen() - p.bits) }

func (p *pool) free() int {
	return max(p.size-len(p.used)-p.lost-len(p.blocks)*p.perBlock(), 0)
}

func (p *pool) isFree(a netip.Addr) bool {
	return p.net.Contains(a) && !p.reserved[a] && p.used[a] == "" && p.blocks[p.block(a)] == ""
}

// take gives a single address out; false if there is none.
func (p *pool) take(order sim.Reuse, owner string) (netip.Addr, bool) {
	if p.free() <= 0 {
		return netip.Addr{}, false
	}
	p.skip()
	a := p.next
	if i := p.choose(order); i >= 0 {
		a = p.freed[i]
	}
	if !a.IsValid() {
		return a, false
	}
	p.use(a, owner)
	return a, true
}

// skip moves next to an address that is free, or beyond all of them.
func (p *pool) skip() {
	for p.next.IsValid() && !p.isFree(p.next) {
		if p.next.Is6() && p.blocks[p.block(p.next)] != "" {
			p.next = lastOf(p.block(p.next))
		}
		p.next = p.next.Next()
		if !p.net.Contains(p.next) {
			p.next = netip.Addr{}
		}
	}
}

// choose returns which of freed comes next, -1 for next; see sim.Reuse.
func (p *pool) choose(order sim.Reuse) int {
	last := len(p.freed) - 1
	switch {
	case last < 0:
		return -1
	case order == sim.ReuseLatest, last == 0 && !p.next.IsValid():
		return last
	case order == sim.ReuseOldest:
		if p.next.IsValid() {
			return -1
		}
		return 0
	case last == 0:
		return -1
	}
	lowest := 0
	for i, a := range p.freed[:last] {
		if a.Less(p.freed[lowest]) {
			lowest = i
		}
	}
	return lowest
}

// use notes that a free address is the owner's.
func (p *pool) use(a netip.Addr, owner string) {
	p.used[a] = owner
	p.inside[p.block(a)]++
	if i := slices.Index(p.freed, a); i >= 0 {
		p.freed = slices.Delete(p.freed, i, i+1)
	}
}

// give takes an address back.
func (p *pool) give(a netip.Addr) {
	delete(p.used, a)
	p.leave(p.block(a))
	if !p.next.IsValid() || a.Less(p.next) {
		p.freed = append(p.freed, a)
	}
}

func (p *pool) leave(b netip.Prefix) {
	if p.inside[b]--; p.inside[b] == 0 {
		delete(p.inside, b)
	}
}

// wholeBlock returns the lowest block of which every address is free.
func (p *pool) wholeBlock() (netip.Prefix, bool) {
	if p.net.Bits() > p.bits || p.free() < p.perBlock() {
		return netip.Prefix{}, false
	}
	for b := p.block(p.net.Addr()); p.net.Contains(b.Addr()); b = p.block(lastOf(b).Next()) {
		if p.inside[b] == 0 && p.blocks[b] == "" {
			return b, true
		}
		if !lastOf(b).Next().IsValid() {
			break
		}
	}
	return netip.Prefix{}, false
}

// useBlock notes that a whole block is the owner's.
func (p *pool) useBlock(b netip.Prefix, owner string) {
	p.blocks[b] = owner
	p.freed = slices.DeleteFunc(p.freed, b.Contains)
}

// giveBlock takes a block back. The addresses of an IPv6 one come no more one by
// one: there are others enough.
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

// leaveFree lets others take or give back addresses until n are free, as far as
// they can.
func (p *pool) leaveFree(n int) {
	if p.size > endless {
		p.lost = max(0, p.lost+p.free()-n)
		return
	}
	for p.free() > n {
		a, _ := p.take(sim.ReuseOldest, foreign)
		p.others = append(p.others, a)
	}
	for p.free() < n && len(p.others) > 0 {
		last := len(p.others) - 1
		p.give(p.others[last])
		p.others = p.others[:last]
	}
}

// fragment lets others take one address of each whole block.
func (p *pool) fragment() {
	if p.size > endless {
		return
	}
	for b, ok := p.wholeBlock(); ok; b, ok = p.wholeBlock() {
		p.use(lastOf(b), foreign)
		p.others = append(p.others, lastOf(b))
	}
}

// subnet is a Subnet with what is left of it.
type subnet struct {
	Subnet
	pools map[eni.Family]*pool
	seen  history[int] // its free IPv4 addresses
}

// free returns the free IPv4 addresses, those of IPv6 in a subnet without.
func (s *subnet) free() int {
	if p := s.pools[eni.IPv4]; p != nil {
		return p.free()
	}
	return s.pools[eni.IPv6].free()
}
