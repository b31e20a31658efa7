package sim

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// AddressRequest asks for addresses and prefixes: some by name, and numbers of any others.
type AddressRequest struct {
	V4, V6             []netip.Addr
	Prefixes           []netip.Prefix
	CountV4, CountV6   int    // addresses
	BlocksV4, BlocksV6 int    // prefixes
	Reassign           bool   // addresses by name may be taken from other ENIs
	Subnet             string // that those by name lie in, "": the ENI's
}

// Got is what came of an AddressRequest.
type Got struct {
	V4, V6   []netip.Addr
	Prefixes []netip.Prefix
}

// halved returns the half of the request that a Partial fault leaves, else all of it.
func (r AddressRequest) halved(f Fault) AddressRequest {
	r.V4, r.V6 = r.V4[:f.half(len(r.V4))], r.V6[:f.half(len(r.V6))]
	r.Prefixes = r.Prefixes[:f.half(len(r.Prefixes))]
	r.CountV4, r.CountV6 = f.half(r.CountV4), f.half(r.CountV6)
	r.BlocksV4, r.BlocksV6 = f.half(r.BlocksV4), f.half(r.BlocksV6)
	return r
}

// slots returns how many slots of the family it asks for.
func (r AddressRequest) slots(f eni.Family) int {
	n := len(r.V4) + r.CountV4 + r.BlocksV4
	if f == eni.IPv6 {
		n = len(r.V6) + r.CountV6 + r.BlocksV6
	}
	for _, p := range r.Prefixes {
		if eni.FamilyOf(p.Addr()) == f {
			n++
		}
	}
	return n
}

func (r AddressRequest) hasPrefixes(f eni.Family) bool {
	if f == eni.IPv4 && r.BlocksV4 > 0 || f == eni.IPv6 && r.BlocksV6 > 0 {
		return true
	}
	return slices.ContainsFunc(r.Prefixes, func(p netip.Prefix) bool { return eni.FamilyOf(p.Addr()) == f })
}

// Assign puts all that is asked for on the ENI, or nothing. What the ENI has already is in Got
// too, and takes no second slot.
func (tx *Tx) Assign(id string, asked AddressRequest) (Got, error) {
	account := tx.a
	nic, err := account.findNIC(id)
	if err != nil {
		return Got{}, err
	}
	asked = asked.halved(tx.fault)
	had := Got{V4: intersect(asked.V4, nic.V4), V6: intersect(asked.V6, nic.V6), Prefixes: intersect(asked.Prefixes, nic.Prefixes)}
	asked.V4, asked.V6, asked.Prefixes = without(asked.V4, had.V4), without(asked.V6, had.V6), without(asked.Prefixes, had.Prefixes)
	// Taken from others first: allocate refuses an address that somebody has.
	if asked.Reassign {
		if err := account.takeAway(nic, asked); err != nil {
			return Got{}, err
		}
	}
	got, err := account.allocate(nic, asked)
	if err != nil {
		return Got{}, err
	}
	if err := account.deliver(nic, got); err != nil {
		account.giveBack(nic, got)
		return Got{}, fail(Unavailable, id, "%v", err)
	}
	nic.V4 = slices.Concat(nic.V4, got.V4)
	nic.V6 = slices.Concat(nic.V6, got.V6)
	nic.Prefixes = slices.Concat(nic.Prefixes, got.Prefixes)
	account.noteChanged(nic)
	if asked.Subnet != "" {
		account.noteChangedSubnet(account.subnets[asked.Subnet])
	}
	return Got{V4: slices.Concat(had.V4, got.V4), V6: slices.Concat(had.V6, got.V6),
		Prefixes: slices.Concat(had.Prefixes, got.Prefixes)}, nil
}

// takeAway takes the addresses by name from the ENIs that have them as secondary ones, if n has
// slots for them.
func (a *Account) takeAway(n *nic, asked AddressRequest) error {
	named := slices.Concat(asked.V4, asked.V6)
	for _, other := range a.byID {
		if slices.Contains(named, other.Primary) {
			return fail(AddressInUse, other.Primary.String(), "it is the primary of %s", other.ID)
		}
	}
	// Checked before anything is taken: a request that is refused changes nothing.
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if err := a.mayHave(n, f, asked); asked.slots(f) > 0 && err != nil {
			return err
		}
	}
	for _, other := range a.byID {
		g := Got{V4: intersect(other.V4, asked.V4), V6: intersect(other.V6, asked.V6)}
		if len(g.V4)+len(g.V6) == 0 {
			continue
		}
		if err := a.unassignFrom(other, g); err != nil {
			return err
		}
	}
	return nil
}

// Unassign takes addresses and prefixes from the ENI, all of them or none. A primary address, and
// one that it does not have, is an error, as with EC2.
func (tx *Tx) Unassign(id string, got Got) error {
	nic, err := tx.a.findNIC(id)
	if err != nil {
		return err
	}
	for _, addr := range slices.Concat(got.V4, got.V6) {
		if addr == nic.Primary || nic.First6 && addr == nic.V6[0] {
			return fail(PrimaryAddress, addr.String(), "it stays as long as the interface")
		}
	}
	for _, lack := range [][]string{
		texts(without(got.V4, nic.V4)), texts(without(got.V6, nic.V6)), texts(without(got.Prefixes, nic.Prefixes)),
	} {
		if len(lack) > 0 {
			return fail(NoSuchAddress, lack[0], "not on %s", id)
		}
	}
	f := tx.fault
	return tx.a.unassignFrom(nic, Got{V4: got.V4[:f.half(len(got.V4))], V6: got.V6[:f.half(len(got.V6))],
		Prefixes: got.Prefixes[:f.half(len(got.Prefixes))]})
}

// unassignFrom takes what the ENI has from it.
func (a *Account) unassignFrom(n *nic, g Got) error {
	g = Got{V4: intersect(n.V4, g.V4), V6: intersect(n.V6, g.V6), Prefixes: intersect(n.Prefixes, g.Prefixes)}
	if err := a.stopDelivering(n, g); err != nil {
		return fail(Unavailable, n.ID, "%v", err)
	}
	n.V4, n.V6, n.Prefixes = without(n.V4, g.V4), without(n.V6, g.V6), without(n.Prefixes, g.Prefixes)
	a.giveBack(n, g)
	a.noteChanged(n)
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
