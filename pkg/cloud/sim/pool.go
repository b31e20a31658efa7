package sim

import (
	"fmt"
	"net/netip"
	"slices"
)

// Reuse is which of the free addresses of a subnet is given out next. Clouds give
// an address that was just taken from one node to another within seconds.
type Reuse uint8

// The orders. ReuseLowest gives the lowest free address, but the most recently
// freed one only where there is no other. ReuseLatest gives the most recently
// freed one first, which is the hardest for who does not keep count. ReuseOldest
// gives those that nobody ever had, then the one that is free for the longest.
const (
	ReuseLowest Reuse = iota
	ReuseLatest
	ReuseOldest
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

	used    map[netip.Addr]string   // the owner of each single address
	blocks  map[netip.Prefix]string // the owner of each block
	inside  map[netip.Prefix]int    // single and reserved addresses of each block
	next    netip.Addr              // all below were given out one by one, or skipped
	freed   []netip.Addr            // free ones below next, in the order of giving back
	others  []netip.Addr            // the foreign ones
	foreign int                     // others have so many more, it does not matter which

	kept []netip.Prefix // ranges that are given out by name alone

	turn       int  // where the search for the next block begins, from the end
	fragmented bool // no block is whole
}

func newPool(net netip.Prefix, bits int, r Reserve, reserved []netip.Addr) (*pool, error) {
	if net != net.Masked() || net.Addr().BitLen()-net.Bits() < 2 {
		return nil, fmt.Errorf("%s is no network of at least 4 addresses", net)
	}
	p := &pool{net: net, bits: bits, reserved: map[netip.Addr]bool{}, used: map[netip.Addr]string{},
		blocks: map[netip.Prefix]string{}, inside: map[netip.Prefix]int{}, next: net.Addr()}
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

func (p *pool) free() int {
	return max(p.size-len(p.used)-p.foreign-len(p.blocks)*p.perBlock(), 0)
}

func (p *pool) isFree(a netip.Addr) bool {
	return p.net.Contains(a) && !p.reserved[a] && p.used[a] == "" && (len(p.blocks) == 0 || p.blocks[p.block(a)] == "")
}

// take gives a single address out; false if there is none.
func (p *pool) take(order Reuse, owner string) (netip.Addr, bool) {
	if p.free() <= 0 {
		return netip.Addr{}, false
	}
	p.skip()
	i, a := p.choose(order), p.next
	switch {
	case i == 0:
		a = p.freed[0]
		p.freed = p.freed[1:] // there may be tens of thousands behind it
	case i > 0:
		a = p.freed[i]
		p.freed = slices.Delete(p.freed, i, i+1)
	case !a.IsValid():
		return a, false
	default:
		p.next = a.Next()
	}
	p.mark(a, owner)
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

// choose returns which of freed comes next, -1 for next; see Reuse.
func (p *pool) choose(order Reuse) int {
	last := len(p.freed) - 1
	switch {
	case last < 0:
		return -1
	case order == ReuseLatest, last == 0 && !p.next.IsValid():
		return last
	case order == ReuseOldest:
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

// use notes that a free address, whichever it is, is the owner's.
func (p *pool) use(a netip.Addr, owner string) {
	p.mark(a, owner)
	if i := slices.Index(p.freed, a); i >= 0 {
		p.freed = slices.Delete(p.freed, i, i+1)
	}
}

func (p *pool) mark(a netip.Addr, owner string) {
	if p.used[a] != kept {
		p.inside[p.block(a)]++
	}
	p.used[a] = owner
}

// give takes an address back.
func (p *pool) give(a netip.Addr) {
	if p.keeps(a) {
		p.used[a] = kept
		return
	}
	delete(p.used, a)
	b := p.block(a)
	if p.inside[b]--; p.inside[b] == 0 {
		delete(p.inside, b)
	}
	if !p.next.IsValid() || a.Less(p.next) {
		p.freed = append(p.freed, a)
	}
}

// leaveFree lets others take or give back addresses until n are free, as far as
// they can.
func (p *pool) leaveFree(n int) {
	if p.size > endless {
		p.foreign = max(0, p.foreign+p.free()-n)
		return
	}
	for p.free() > n {
		a, _ := p.take(ReuseOldest, foreign)
		p.others = append(p.others, a)
	}
	for p.free() < n && len(p.others) > 0 {
		last := len(p.others) - 1
		p.give(p.others[last])
		p.others = p.others[:last]
	}
}

// mayUse tells why an address can't be given to anybody.
func (p *pool) mayUse(a netip.Addr) error {
	switch {
	case !p.net.Contains(a):
		return fail(OutsideSubnet, a.String(), "")
	case p.reserved[a]:
		return fail(ReservedAddress, a.String(), "")
	case !p.isFree(a) && p.used[a] != kept:
		return fail(AddressInUse, a.String(), "")
	}
	return nil
}
