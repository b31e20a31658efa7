package sim

import (
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// reserve takes what is wished for from the ENI's subnet, all or nothing.
func (a *Account) reserve(n *nic, w Wish) (got Got, err error) {
	defer func() {
		if err != nil {
			a.giveBack(n, got)
			got = Got{}
		}
	}()
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if w.slots(f) == 0 {
			continue
		}
		if err := a.mayHave(n, f, w); err != nil {
			return got, err
		}
		if err := a.reserveOf(n, f, w, &got); err != nil {
			return got, err
		}
	}
	return got, nil
}

// mayHave checks what the family's slots are limited by.
func (a *Account) mayHave(n *nic, f eni.Family, w Wish) error {
	s := a.subnets[n.Subnet]
	limit := a.o.MaxAddresses
	if m := a.machineOf(n); m != nil {
		t := a.types[m.Type]
		limit = t.slots(f, n.Attachment.Index)
		if limit == 0 || w.prefixes(f) && t.NoPrefix {
			return fail(NotSupported, n.ID, "the instance's type does not support that")
		}
	}
	switch {
	case s.pool(f) == nil:
		return fail(NotSupported, s.ID, "the subnet has no %s", f)
	case n.Slots(f)+w.slots(f) > limit && !a.lifted:
		return fail(AddressLimit, n.ID, "it may have %d of %s", limit, f)
	}
	return nil
}

// slots returns how many slots of the family an ENI at the index has.
func (t Type) slots(f eni.Family, index int) int {
	switch {
	case f == eni.IPv6:
		return t.V6
	case index == 0 && t.PrimaryV4 > 0:
		return t.PrimaryV4
	}
	return t.V4
}

// reserveOf takes what is wished for of one family, those by name first.
func (a *Account) reserveOf(n *nic, f eni.Family, w Wish, got *Got) error {
	s := a.subnets[n.Subnet]
	p := s.pool(f)
	named, list, count, blocks := w.V4, &got.V4, w.CountV4, w.BlocksV4
	if f == eni.IPv6 {
		named, list, count, blocks = w.V6, &got.V6, w.CountV6, w.BlocksV6
	}
	from, err := a.namedOf(n, f, w)
	if err != nil {
		return err
	}
	for _, addr := range named {
		if err := from.mayUse(addr); err != nil {
			return err
		}
		from.use(addr, n.ID)
		*list = append(*list, addr)
	}
	for _, b := range w.Prefixes {
		if eni.FamilyOf(b.Addr()) != f {
			continue
		}
		if err := p.mayUseBlock(b); err != nil {
			return err
		}
		p.useBlock(b, n.ID)
		got.Prefixes = append(got.Prefixes, b)
	}
	for range blocks {
		b, ok := p.wholeBlock(a.o.Reuse)
		if !ok {
			return fail(NoBlock, s.ID, "no /%d is free", p.bits)
		}
		p.useBlock(b, n.ID)
		got.Prefixes = append(got.Prefixes, b)
	}
	for range count {
		addr, ok := p.take(a.o.Reuse, n.ID)
		if !ok {
			return fail(SubnetFull, s.ID, "%d %s addresses were asked for", count, f)
		}
		*list = append(*list, addr)
	}
	return nil
}

// giveBack returns addresses to the subnets that they are of.
func (a *Account) giveBack(n *nic, g Got) {
	s := a.subnets[n.Subnet]
	a.give(n, slices.Concat(g.V4, g.V6))
	for _, b := range g.Prefixes {
		s.pool(eni.FamilyOf(b.Addr())).giveBlock(b)
	}
}
