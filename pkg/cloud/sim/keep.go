package sim

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Reservation is a range of a subnet whose addresses are assigned only by name.
type Reservation struct {
	ID, Subnet  string
	Range       netip.Prefix
	Description string
}

// reservedOwner is noted as the owner of the free addresses in reserved ranges.
const reservedOwner = "kept"

// mostKept is how many addresses a reserved range may have here: each is noted.
const mostKept = 1 << 12

// Reserve reserves a range for addresses by name. ENIs keep those that they have.
func (tx *Tx) Reserve(asked Reservation) (Reservation, error) {
	sub := tx.a.subnets[asked.Subnet]
	if sub == nil {
		return asked, fail(NoSuchSubnet, asked.Subnet, "")
	}
	pool := sub.pool(eni.FamilyOf(asked.Range.Addr()))
	switch {
	case pool == nil || asked.Range != asked.Range.Masked() || asked.Range.Bits() < pool.net.Bits() || !pool.net.Contains(asked.Range.Addr()):
		return asked, fail(OutsideSubnet, asked.Range.String(), "")
	case asked.Range.Addr().BitLen()-asked.Range.Bits() > 12:
		return asked, fail(NotSupported, asked.Range.String(), "a simulated range has at most %d addresses", mostKept)
	}
	// Overlapping ranges are refused as on EC2. A range with a delegated prefix would need half of the
	// prefix noted as reserved; here that is not supported.
	for _, other := range sub.kept {
		if other.Range.Overlaps(asked.Range) {
			return asked, fail(Invalid, asked.Range.String(), "it overlaps %s, which is reserved", other.Range)
		}
	}
	if slices.ContainsFunc(firstOf(asked.Range, mostKept), func(a netip.Addr) bool { return pool.blocks[pool.blockOf(a)] != "" }) {
		return asked, fail(NotSupported, asked.Range.String(), "a delegated prefix is in it")
	}
	asked.ID = tx.a.newID("scr")
	sub.kept = append(sub.kept, asked)
	pool.reserveRange(asked.Range)
	tx.a.noteChangedSubnet(sub)
	return asked, nil
}

// Unreserve ends a reservation. Its free addresses can be assigned to anybody again.
func (tx *Tx) Unreserve(id string) (Reservation, error) {
	for _, sub := range tx.a.subnets {
		at := slices.IndexFunc(sub.kept, func(r Reservation) bool { return r.ID == id })
		if at < 0 {
			continue
		}
		r := sub.kept[at]
		sub.kept = slices.Delete(sub.kept, at, at+1)
		p := sub.pool(eni.FamilyOf(r.Range.Addr()))
		p.kept = slices.DeleteFunc(p.kept, func(k netip.Prefix) bool { return k == r.Range })
		// After p.kept lacks the range: give would note it as reserved again.
		for _, a := range firstOf(r.Range, mostKept) {
			if p.used[a] == reservedOwner {
				p.give(a)
			}
		}
		tx.a.noteChangedSubnet(sub)
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

// reserveRange notes a range as reserved, and its free addresses as used by reservedOwner.
func (p *pool) reserveRange(r netip.Prefix) {
	p.kept = append(p.kept, r)
	for _, a := range firstOf(r, mostKept) {
		if p.isFree(a) {
			p.use(a, reservedOwner)
		}
	}
}

func (p *pool) isReserved(a netip.Addr) bool {
	return slices.ContainsFunc(p.kept, func(r netip.Prefix) bool { return r.Contains(a) })
}

// keptFree returns how many addresses of reserved ranges nobody has.
func (p *pool) keptFree() (n int) {
	for _, r := range p.kept {
		for _, a := range firstOf(r, mostKept) {
			if p.used[a] == reservedOwner {
				n++
			}
		}
	}
	return n
}

// checkKept checks what a pool has noted about its reserved ranges.
func (p *pool) checkKept(bad complain) {
	for a, owner := range p.used {
		if owner == reservedOwner && !p.isReserved(a) {
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
		p.reserveRange(r.Range)
	}
	s.kept = list
	return nil
}
