package sim

import (
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// allocate takes all that is asked for from the pools of the ENI's subnet, or nothing.
func (a *Account) allocate(nic *nic, asked AddressRequest) (got Got, err error) {
	defer func() {
		if err != nil {
			a.giveBack(nic, got)
			got = Got{}
		}
	}()
	// got has what allocateOf has taken even when it fails: giveBack undoes a half.
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if asked.slots(f) == 0 {
			continue
		}
		if err := a.mayHave(nic, f, asked); err != nil {
			return got, err
		}
		if err := a.allocateOf(nic, f, asked, &got); err != nil {
			return got, err
		}
	}
	return got, nil
}

// mayHave tells why the ENI can't get what is asked for of a family: the instance's type, the
// subnet, or the number of slots.
func (a *Account) mayHave(nic *nic, family eni.Family, asked AddressRequest) error {
	sub := a.subnets[nic.Subnet]
	limit := a.o.MaxAddresses
	if m := a.vmOf(nic); m != nil {
		t := a.types[m.Type]
		limit = t.slots(family, nic.Attachment.Index)
		if limit == 0 || asked.hasPrefixes(family) && t.NoPrefix {
			return fail(NotSupported, nic.ID, "the instance's type does not support that")
		}
	}
	switch {
	case sub.pool(family) == nil:
		return fail(NotSupported, sub.ID, "the subnet has no %s", family)
	case nic.Slots(family)+asked.slots(family) > limit && !a.lifted:
		return fail(AddressLimit, nic.ID, "it may have %d of %s", limit, family)
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

// allocateOf takes what is asked for of one family.
func (a *Account) allocateOf(nic *nic, family eni.Family, asked AddressRequest, got *Got) error {
	sub := a.subnets[nic.Subnet]
	pool := sub.pool(family)
	named, list, count, blocks := asked.V4, &got.V4, asked.CountV4, asked.BlocksV4
	if family == eni.IPv6 {
		named, list, count, blocks = asked.V6, &got.V6, asked.CountV6, asked.BlocksV6
	}
	from, err := a.namedOf(nic, family, asked)
	if err != nil {
		return err
	}
	// Those by name come first: else one of them could be taken as any address.
	for _, addr := range named {
		if err := from.mayUse(addr); err != nil {
			return err
		}
		from.use(addr, nic.ID)
		*list = append(*list, addr)
	}
	for _, b := range asked.Prefixes {
		if eni.FamilyOf(b.Addr()) != family {
			continue
		}
		if err := pool.mayUseBlock(b); err != nil {
			return err
		}
		pool.useBlock(b, nic.ID)
		got.Prefixes = append(got.Prefixes, b)
	}
	for range blocks {
		b, ok := pool.wholeBlock(a.o.Reuse)
		if !ok {
			return fail(NoBlock, sub.ID, "no /%d is free", pool.bits)
		}
		pool.useBlock(b, nic.ID)
		got.Prefixes = append(got.Prefixes, b)
	}
	for range count {
		addr, ok := pool.take(a.o.Reuse, nic.ID)
		if !ok {
			return fail(SubnetFull, sub.ID, "%d %s addresses were asked for", count, family)
		}
		*list = append(*list, addr)
	}
	return nil
}

// giveBack returns addresses and prefixes to their subnets.
func (a *Account) giveBack(n *nic, g Got) {
	s := a.subnets[n.Subnet]
	a.giveAddresses(n, slices.Concat(g.V4, g.V6))
	for _, b := range g.Prefixes {
		s.pool(eni.FamilyOf(b.Addr())).giveBlock(b)
	}
}
