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

// mostAddresses is what counts as endless, such as a /64.
const mostAddresses = 1 << 40

// pool is the addresses of one family in a subnet. Its exported fields are what
// a saved account keeps of it.
type pool struct {
	Next    netip.Addr   // the lowest that nobody ever had; invalid if there is none
	Freed   []netip.Addr // had and given back, in the order of giving back
	Foreign int          // others have so many, it does not matter which

	Blocks     []delegated // that ENIs have
	Turn       int         // where the search for the next block begins, from the end
	Fragmented bool        // no block is whole

	net      netip.Prefix
	reserved map[netip.Addr]bool
	size     int // addresses that can be given out
	used     int
}

func newPool(net netip.Prefix, reserved []netip.Addr) (*pool, error) {
	if net != net.Masked() || net.Addr().BitLen()-net.Bits() < 2 {
		return nil, fmt.Errorf("%s is no network of at least 4 addresses", net)
	}
	p := &pool{net: net, reserved: map[netip.Addr]bool{net.Addr(): true}}
	for _, a := range reserved {
		if net.Contains(a) {
			p.reserved[a] = true
		}
	}
	p.size = 1<<min(net.Addr().BitLen()-net.Bits(), 40) - len(p.reserved)
	p.Next = p.from(net.Addr())
	return p, nil
}

// from returns the first address from a on that is not reserved and in no block.
func (p *pool) from(a netip.Addr) netip.Addr {
	for {
		if at := p.blockOf(a); at >= 0 {
			a = lastOf(p.Blocks[at].Prefix)
		} else if !p.reserved[a] {
			break
		}
		a = a.Next()
	}
	if !p.net.Contains(a) {
		return netip.Addr{}
	}
	return a
}

func (p *pool) free() int { return p.size - p.used - p.Foreign }

// take gives an address out; false if there is none.
func (p *pool) take(order Reuse) (netip.Addr, bool) {
	if p.free() <= 0 {
		return netip.Addr{}, false
	}
	p.used++
	i := p.choose(order)
	if i < 0 {
		a := p.Next
		p.Next = p.from(a.Next())
		return a, true
	}
	a := p.Freed[i]
	if i == 0 {
		p.Freed = p.Freed[1:] // there may be tens of thousands behind it
	} else {
		p.Freed = slices.Delete(p.Freed, i, i+1)
	}
	return a, true
}

// choose returns which of Freed is next, -1 for Next.
func (p *pool) choose(order Reuse) int {
	last := len(p.Freed) - 1
	switch {
	case last < 0:
		return -1
	case order == ReuseLatest, last == 0 && !p.Next.IsValid():
		return last
	case order == ReuseOldest:
		if p.Next.IsValid() {
			return -1
		}
		return 0
	}
	lowest := -1 // every freed one is lower than Next
	for i, a := range p.Freed[:last] {
		if lowest < 0 || a.Less(p.Freed[lowest]) {
			lowest = i
		}
	}
	return lowest
}

// give takes an address back.
func (p *pool) give(a netip.Addr) {
	p.used--
	p.Freed = append(p.Freed, a)
}

// check compares the pool's book with the addresses in use.
func (p *pool) check(used map[netip.Addr]string) error {
	count := 0
	for a := range used {
		if p.net.Contains(a) {
			count++
		}
	}
	if count != p.used || p.Foreign < 0 || p.free() < 0 {
		return fmt.Errorf("%d addresses are used, counted as %d, with %d foreign and %d free", count, p.used, p.Foreign, p.free())
	}
	freed := map[netip.Addr]bool{}
	for _, a := range p.Freed {
		if used[a] != "" || freed[a] || p.reserved[a] || !p.net.Contains(a) || p.delegated(a) {
			return fmt.Errorf("address %s is listed as free", a)
		}
		freed[a] = true
	}
	if p.Next.IsValid() && !p.net.Contains(p.Next) {
		return fmt.Errorf("%s is listed as the next", p.Next)
	}
	if had, single := p.below(p.Next), p.used-p.inBlocks(); had != single+len(p.Freed) {
		return fmt.Errorf("%d addresses lie before the next, %s, but %d are used and %d free", had, p.Next, single, len(p.Freed))
	}
	return nil
}

// below counts the addresses before next that can be given out and are in no block,
// all of them if there is no next.
func (p *pool) below(next netip.Addr) int {
	if !next.IsValid() {
		return p.size - p.inBlocks()
	}
	count := 0
	for a := p.from(p.net.Addr()); a.IsValid() && a.Less(next); a = p.from(a.Next()) {
		count++
	}
	return count
}
