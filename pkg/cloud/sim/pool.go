package sim

import (
	"fmt"
	"net/netip"
	"slices"
)

// Reuse is which of the free addresses of a subnet is given out next. Clouds give
// an address that was just taken from one node to another within seconds.
type Reuse uint8

// The orders. ReuseLowest gives the lowest free address, but the most recently freed one only if
// there is no other. ReuseLatest gives the most recently freed one first, which finds callers that
// take an address for theirs too long. ReuseOldest gives those that nobody ever had, then the one
// that has been free for the longest.
const (
	ReuseLowest Reuse = iota
	ReuseLatest
	ReuseOldest
)

// endless is from how many addresses on a pool counts others' addresses, and does not note which.
const endless = 1 << 20

// unmanagedOwner is noted as the owner of addresses that others of the VPC have.
const unmanagedOwner = "unmanaged"

// pool is the addresses of one family in a subnet.
type pool struct {
	net      netip.Prefix
	bits     int // of a block
	reserved map[netip.Addr]bool
	size     int // addresses that can be given out

	used      map[netip.Addr]string   // the owner of each single address
	blocks    map[netip.Prefix]string // the owner of each block
	inside    map[netip.Prefix]int    // single and reserved addresses of each block
	next      netip.Addr              // all below were given out one by one, or skipped
	freed     []netip.Addr            // free ones below next, in the order of giving back
	others    []netip.Addr            // the unmanaged ones
	unmanaged int                     // how many more others have; which ones is not noted

	kept []netip.Prefix // ranges that are given out by name alone

	turn       int  // where the search for the next block begins, from the end
	fragmented bool // no block is whole
}

func newPool(net netip.Prefix, bits int, r Reserve, reserved []netip.Addr) (*pool, error) {
	if net != net.Masked() || net.Addr().BitLen()-net.Bits() < 2 {
		return nil, fmt.Errorf("%s is no network of at least 4 addresses", net)
	}
	pool := &pool{net: net, bits: bits, reserved: map[netip.Addr]bool{}, used: map[netip.Addr]string{},
		blocks: map[netip.Prefix]string{}, inside: map[netip.Prefix]int{}, next: net.Addr()}
	for a, i := net.Addr(), 0; i < r.First; a, i = a.Next(), i+1 {
		pool.reserved[a] = true
	}
	for a, i := lastOf(net), 0; i < r.Last; a, i = a.Prev(), i+1 {
		pool.reserved[a] = true
	}
	for _, a := range reserved {
		if net.Contains(a) {
			pool.reserved[a] = true
		}
	}
	for a := range pool.reserved {
		pool.inside[pool.blockOf(a)]++
	}
	pool.size = 1<<min(net.Addr().BitLen()-net.Bits(), 62) - len(pool.reserved)
	return pool, nil
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
	return max(p.size-len(p.used)-p.unmanaged-len(p.blocks)*p.perBlock(), 0)
}

func (p *pool) isFree(a netip.Addr) bool {
	return p.net.Contains(a) && !p.reserved[a] && p.used[a] == "" && (len(p.blocks) == 0 || p.blocks[p.blockOf(a)] == "")
}

// take gives the owner a single address, false if there is none.
func (p *pool) take(order Reuse, owner string) (netip.Addr, bool) {
	if p.free() <= 0 {
		return netip.Addr{}, false
	}
	p.skipTaken()
	i, addr := p.chooseFreed(order), p.next
	switch {
	case i == 0:
		addr = p.freed[0]
		p.freed = p.freed[1:] // there may be tens of thousands behind it
	case i > 0:
		addr = p.freed[i]
		p.freed = slices.Delete(p.freed, i, i+1)
	case !addr.IsValid():
		return addr, false
	default:
		p.next = addr.Next()
	}
	p.mark(addr, owner)
	return addr, true
}

// skipTaken moves next to an address that is free, or beyond all of them.
func (p *pool) skipTaken() {
	for p.next.IsValid() && !p.isFree(p.next) {
		if p.next.Is6() && p.blocks[p.blockOf(p.next)] != "" {
			p.next = lastOf(p.blockOf(p.next))
		}
		p.next = p.next.Next()
		if !p.net.Contains(p.next) {
			p.next = netip.Addr{}
		}
	}
}

// chooseFreed returns the index in freed of the address that comes next, -1 if it is p.next. See Reuse.
func (p *pool) chooseFreed(order Reuse) int {
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
	// ReuseLowest, without the most recently freed one: callers learn of a release a little late.
	lowest := 0
	for i, a := range p.freed[:last] {
		if a.Less(p.freed[lowest]) {
			lowest = i
		}
	}
	return lowest
}

// use notes that the owner has this address, which must be free.
func (p *pool) use(a netip.Addr, owner string) {
	p.mark(a, owner)
	if i := slices.Index(p.freed, a); i >= 0 {
		p.freed = slices.Delete(p.freed, i, i+1)
	}
}

func (p *pool) mark(a netip.Addr, owner string) {
	if p.used[a] != reservedOwner {
		p.inside[p.blockOf(a)]++
	}
	p.used[a] = owner
}

// give makes an address free again.
func (p *pool) give(addr netip.Addr) {
	if p.isReserved(addr) {
		p.used[addr] = reservedOwner
		return
	}
	delete(p.used, addr)
	b := p.blockOf(addr)
	if p.inside[b]--; p.inside[b] == 0 {
		delete(p.inside, b)
	}
	if !p.next.IsValid() || addr.Less(p.next) {
		p.freed = append(p.freed, addr)
	}
}

// leaveFree lets others take or release addresses until n are free, as far as that is possible.
func (p *pool) leaveFree(n int) {
	if p.size > endless {
		p.unmanaged = max(0, p.unmanaged+p.free()-n)
		return
	}
	for p.free() > n {
		a, _ := p.take(ReuseOldest, unmanagedOwner)
		p.others = append(p.others, a)
	}
	for p.free() < n && len(p.others) > 0 {
		last := len(p.others) - 1
		p.give(p.others[last])
		p.others = p.others[:last]
	}
}

// mayUse tells why nobody can have this address by name, or returns nil.
func (p *pool) mayUse(a netip.Addr) error {
	switch {
	case !p.net.Contains(a):
		return fail(OutsideSubnet, a.String(), "")
	case p.reserved[a]:
		return fail(ReservedAddress, a.String(), "")
	case !p.isFree(a) && p.used[a] != reservedOwner:
		return fail(AddressInUse, a.String(), "")
	}
	return nil
}
