package sim

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Reservation is a range of a subnet that is given out by name alone.
type Reservation struct {
	ID, Subnet  string
	Range       netip.Prefix
	Description string
}

// kept owns the free addresses of ranges that are reserved.
const kept = "kept"

// mostKept is how many addresses a reserved range may have here: each is noted.
const mostKept = 1 << 12

// Reserve keeps a range for addresses by name. Those in it that somebody has stay his.
func (tx *Tx) Reserve(r Reservation) (Reservation, error) {
	s := tx.a.subnets[r.Subnet]
	if s == nil {
		return r, fail(NoSuchSubnet, r.Subnet, "")
	}
	p := s.pool(eni.FamilyOf(r.Range.Addr()))
	switch {
	case p == nil || r.Range != r.Range.Masked() || r.Range.Bits() < p.net.Bits() || !p.net.Contains(r.Range.Addr()):
		return r, fail(OutsideSubnet, r.Range.String(), "")
	case r.Range.Addr().BitLen()-r.Range.Bits() > 12:
		return r, fail(NotSupported, r.Range.String(), "a simulated range has at most %d addresses", mostKept)
	}
	for _, other := range s.kept {
		if other.Range.Overlaps(r.Range) {
			return r, fail(Invalid, r.Range.String(), "it overlaps %s, which is reserved", other.Range)
		}
	}
	if slices.ContainsFunc(firstOf(r.Range, mostKept), func(a netip.Addr) bool { return p.blocks[p.block(a)] != "" }) {
		return r, fail(NotSupported, r.Range.String(), "a delegated prefix is in it")
	}
	r.ID = tx.a.id("scr")
	s.kept = append(s.kept, r)
	p.keep(r.Range)
	tx.a.changedSubnet(s)
	return r, nil
}

// Unreserve ends a reservation: what nobody has of it is free for everybody.
func (tx *Tx) Unreserve(id string) (Reservation, error) {
	for _, s := range tx.a.subnets {
		at := slices.IndexFunc(s.kept, func(r Reservation) bool { return r.ID == id })
		if at < 0 {
			continue
		}
		r := s.kept[at]
		s.kept = slices.Delete(s.kept, at, at+1)
		p := s.pool(eni.FamilyOf(r.Range.Addr()))
		p.kept = slices.DeleteFunc(p.kept, func(k netip.Prefix) bool { return k == r.Range })
		for _, a := range firstOf(r.Range, mostKept) {
			if p.used[a] == kept {
				p.give(a)
			}
		}
		tx.a.changedSubnet(s)
		return r, nil
	}
	return Reservation{}, fail(NoSuchReservation, id, "")
}

// Reservations returns those of a subnet in the order in which they were made.
func (tx *Tx) Reservations(subnet string) ([]Reservation, error) {
	s := tx.a.subnets[subnet]
	if s == nil {
		return nil, fail(NoSuchSubnet, subnet, "")
	}
	return slices.Clone(s.kept), nil
}

// keep lets nobody have the free addresses of a range unasked.
func (p *pool) keep(r netip.Prefix) {
	p.kept = append(p.kept, r)
	for _, a := range firstOf(r, mostKept) {
		if p.isFree(a) {
			p.use(a, kept)
		}
	}
}

func (p *pool) keeps(a netip.Addr) bool {
	return slices.ContainsFunc(p.kept, func(r netip.Prefix) bool { return r.Contains(a) })
}

// checkKept looks at what a pool says of its reserved ranges.
func (p *pool) checkKept(bad complain) {
	for a, owner := range p.used {
		if owner == kept && !p.keeps(a) {
			bad("address %s is kept for nobody", a)
		}
	}
	for _, r := range p.kept {
		for _, a := range firstOf(r, mostKept) {
			if p.isFree(a) {
				bad("address %s of the reserved range %s is free for everybody", a, r)
			}
		}
	}
}

// restoreKept puts reserved ranges back, before there are ENIs.
func (s *subnet) restoreKept(list []Reservation) error {
	for _, r := range list {
		p := s.pool(eni.FamilyOf(r.Range.Addr()))
		if p == nil || !r.Range.IsValid() || !p.net.Contains(r.Range.Addr()) {
			return fmt.Errorf("the reserved range %s is not of it", r.Range)
		}
		p.keep(r.Range)
	}
	s.kept = list
	return nil
}
