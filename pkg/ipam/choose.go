package ipam

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// choose returns the positions of the addresses that the ENI would give an owner, one a
// family, or nil if a family has none: of its blocks the fullest that has one free, so
// that the others empty and can be released, and in it the one free the longest. Where
// addresses come one by one it is the one free the longest.
func (s *State) choose(index int, now time.Duration) []int {
	var picks [2]pick // a book has two families at most
	families := s.Settings.Families
	for k := range families {
		picks[k].at, picks[k].best.at = none, none
	}
	for i := range s.Addresses {
		a := &s.Addresses[i]
		if a.ENI != index || a.State == eni.Used || a.State == eni.Releasing || a.State == eni.Held {
			continue
		}
		for k, f := range families {
			if f == a.Family() {
				since, free := s.FreeSince(a, now)
				picks[k].see(i, s.block(a.Addr), since, free)
			}
		}
	}
	var at []int
	for k := range families {
		picks[k].endBlock()
		if picks[k].best.at == none {
			return nil
		}
		at = append(at, picks[k].best.at)
	}
	return at
}

// block returns the block of an address that comes in one, else the zero Prefix.
func (s *State) block(a netip.Addr) netip.Prefix {
	bits := s.Settings.V6Block
	if a.Is4() {
		bits = s.Settings.V4Block
	}
	p, _ := a.Prefix(bits) // it has that many
	return p
}

// none is the position of no address.
const none = -1

// pick goes through the addresses of one ENI and family that nobody has. A block's stand
// beside each other; where they don't, each group counts as a block.
type pick struct {
	choice        // in the block that is gone through
	best   choice // of those before
	block  netip.Prefix
}

// choice is the address of a block that is free the longest.
type choice struct {
	at    int // position, none if all of them cool
	since time.Duration
	idle  int // addresses of the block that nobody has: few where it is full
}

// see notes the address at position i.
func (p *pick) see(i int, block netip.Prefix, since time.Duration, free bool) {
	if block != p.block {
		p.endBlock()
		p.block = block
	}
	p.idle++
	if free && (p.at == none || since < p.since) {
		p.at, p.since = i, since
	}
}

// endBlock compares the block with the best before it: with as many addresses idle the
// earlier one stays.
func (p *pick) endBlock() {
	if p.at != none && (p.best.at == none || p.idle < p.best.idle) {
		p.best = p.choice
	}
	p.choice = choice{at: none}
}
