package sim

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Wish is for addresses and prefixes: some by name, and so many of any.
type Wish struct {
	V4, V6             []netip.Addr
	Prefixes           []netip.Prefix
	CountV4, CountV6   int    // addresses
	BlocksV4, BlocksV6 int    // prefixes
	Reassign           bool   // addresses by name may be taken from other ENIs
	Subnet             string // that those by name lie in, "": the ENI's
}

// Got is what came of a Wish.
type Got struct {
	V4, V6   []netip.Addr
	Prefixes []netip.Prefix
}

// cut halves the wish for a fault that leaves half.
func (w Wish) cut(f Fault) Wish {
	w.V4, w.V6 = w.V4[:f.half(len(w.V4))], w.V6[:f.half(len(w.V6))]
	w.Prefixes = w.Prefixes[:f.half(len(w.Prefixes))]
	w.CountV4, w.CountV6 = f.half(w.CountV4), f.half(w.CountV6)
	w.BlocksV4, w.BlocksV6 = f.half(w.BlocksV4), f.half(w.BlocksV6)
	return w
}

// slots returns how many slots of the family the wish wants.
func (w Wish) slots(f eni.Family) int {
	n := len(w.V4) + w.CountV4 + w.BlocksV4
	if f == eni.IPv6 {
		n = len(w.V6) + w.CountV6 + w.BlocksV6
	}
	for _, p := range w.Prefixes {
		if eni.FamilyOf(p.Addr()) == f {
			n++
		}
	}
	return n
}

func (w Wish) prefixes(f eni.Family) bool {
	if f == eni.IPv4 && w.BlocksV4 > 0 || f == eni.IPv6 && w.BlocksV6 > 0 {
		return true
	}
	return slices.ContainsFunc(w.Prefixes, func(p netip.Prefix) bool { return eni.FamilyOf(p.Addr()) == f })
}

// Assign puts all that is wished for on the ENI, or nothing. What it has already
// is among what it got, and takes no slot again.
func (tx *Tx) Assign(id string, w Wish) (Got, error) {
	a := tx.a
	n, err := a.nic(id)
	if err != nil {
		return Got{}, err
	}
	w = w.cut(tx.fault)
	had := Got{V4: intersect(w.V4, n.V4), V6: intersect(w.V6, n.V6), Prefixes: intersect(w.Prefixes, n.Prefixes)}
	w.V4, w.V6, w.Prefixes = without(w.V4, had.V4), without(w.V6, had.V6), without(w.Prefixes, had.Prefixes)
	if w.Reassign {
		if err := a.takeAway(n, w); err != nil {
			return Got{}, err
		}
	}
	got, err := a.reserve(n, w)
	if err != nil {
		return Got{}, err
	}
	if err := a.route(n, got); err != nil {
		a.giveBack(n, got)
		return Got{}, fail(Unavailable, id, "%v", err)
	}
	n.V4 = slices.Concat(n.V4, got.V4)
	n.V6 = slices.Concat(n.V6, got.V6)
	n.Prefixes = slices.Concat(n.Prefixes, got.Prefixes)
	a.changed(n)
	if w.Subnet != "" {
		a.changedSubnet(a.subnets[w.Subnet])
	}
	return Got{V4: slices.Concat(had.V4, got.V4), V6: slices.Concat(had.V6, got.V6),
		Prefixes: slices.Concat(had.Prefixes, got.Prefixes)}, nil
}

// takeAway takes the addresses by name from the ENIs that have them as secondary
// ones, if there are slots for them on n.
func (a *Account) takeAway(n *nic, w Wish) error {
	wanted := slices.Concat(w.V4, w.V6)
	for _, other := range a.byID {
		if slices.Contains(wanted, other.Primary) {
			return fail(AddressInUse, other.Primary.String(), "it is the primary of %s", other.ID)
		}
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if err := a.mayHave(n, f, w); w.slots(f) > 0 && err != nil {
			return err
		}
	}
	for _, other := range a.byID {
		g := Got{V4: intersect(other.V4, w.V4), V6: intersect(other.V6, w.V6)}
		if len(g.V4)+len(g.V6) == 0 {
			continue
		}
		if err := a.unassign(other, g); err != nil {
			return err
		}
	}
	return nil
}

// Unassign takes addresses and prefixes from the ENI, all of them or none: the
// primary address stays, and what it does not have is an error.
func (tx *Tx) Unassign(id string, g Got) error {
	n, err := tx.a.nic(id)
	if err != nil {
		return err
	}
	for _, addr := range slices.Concat(g.V4, g.V6) {
		if addr == n.Primary || n.First6 && addr == n.V6[0] {
			return fail(PrimaryAddress, addr.String(), "it stays as long as the interface")
		}
	}
	for _, lack := range [][]string{
		texts(without(g.V4, n.V4)), texts(without(g.V6, n.V6)), texts(without(g.Prefixes, n.Prefixes)),
	} {
		if len(lack) > 0 {
			return fail(NoSuchAddress, lack[0], "not on %s", id)
		}
	}
	f := tx.fault
	return tx.a.unassign(n, Got{V4: g.V4[:f.half(len(g.V4))], V6: g.V6[:f.half(len(g.V6))],
		Prefixes: g.Prefixes[:f.half(len(g.Prefixes))]})
}

// unassign takes what the ENI has from it.
func (a *Account) unassign(n *nic, g Got) error {
	g = Got{V4: intersect(n.V4, g.V4), V6: intersect(n.V6, g.V6), Prefixes: intersect(n.Prefixes, g.Prefixes)}
	if err := a.unroute(n, g); err != nil {
		return fail(Unavailable, n.ID, "%v", err)
	}
	n.V4, n.V6, n.Prefixes = without(n.V4, g.V4), without(n.V6, g.V6), without(n.Prefixes, g.Prefixes)
	a.giveBack(n, g)
	a.changed(n)
	return nil
}

// intersect returns those of list that are in other.
func intersect[T comparable](list, other []T) []T {
	var both []T
	for _, v := range list {
		if slices.Contains(other, v) {
			both = append(both, v)
		}
	}
	return both
}

// without returns those of list that are not in gone.
func without[T comparable](list, gone []T) []T {
	var kept []T
	for _, v := range list {
		if !slices.Contains(gone, v) {
			kept = append(kept, v)
		}
	}
	return kept
}

func texts[T interface{ String() string }](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}
