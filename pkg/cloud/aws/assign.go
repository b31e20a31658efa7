package aws

import (
	"context"
	"errors"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// AssignAddresses implements cloud.Cloud.
func (c *Client) AssignAddresses(ctx context.Context, id string, f eni.Family, n int) (addrs []netip.Addr, err error) {
	defer c.named(&err, "AssignAddresses", id)
	s, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	on, known := c.asSeen(id)
	if !known {
		if on, err = c.attached(ctx, s, id); err != nil {
			return nil, err
		}
	}
	addrs, err = c.assign(ctx, s, on, f, n)
	if isNoENI(err) {
		c.forgetENI(id)
	}
	return addrs, err
}

// attached returns an ENI of the node.
func (c *Client) attached(ctx context.Context, s *session, id string) (*nic, error) {
	on, err := c.byID(ctx, s, id)
	if err != nil {
		return nil, err
	}
	if on == nil || on.Index < 0 {
		return nil, because(cloud.ErrNotFound, "instance %s has no such ENI", s.instance)
	}
	return on, nil
}

// assignment is an AssignAddresses under way.
type assignment struct {
	*Client
	s      *session
	on     *nic
	family eni.Family
	limits eni.Limits
	before []netip.Addr // what the ENI had, also what describes may not show yet
	got    []netip.Addr
}

// assign puts up to n addresses of the family on the ENI: blocks first, then single
// ones. EC2 does all of a request or nothing.
func (c *Client) assign(ctx context.Context, s *session, on *nic, f eni.Family, n int) ([]netip.Addr, error) {
	limits, err := c.knownLimits(ctx)
	if err != nil || n <= 0 {
		return nil, err
	}
	a := &assignment{Client: c, s: s, on: on, family: f, limits: limits}
	a.before, _ = c.truth(on)
	if err := a.ask(ctx, n); err != nil {
		if errors.Is(err, cloud.ErrUnknown) {
			a.settle(ctx)
		}
		return a.got, err
	}
	return a.got, nil
}

// ask asks for as many blocks as the ENI has room for, and for the rest.
func (a *assignment) ask(ctx context.Context, n int) error {
	size, most := max(a.limits.Block(a.family).Size, 1), a.limits.PerENI(a.family)
	has, _ := a.truth(a.on)
	have := len(ofFamily(has, a.family))
	beyond := because(cloud.ErrLimit, "an ENI has at most %d %s addresses here, and this one %d", most, a.family, have)
	if size == 1 {
		return a.singles(ctx, n)
	}
	if a.family == eni.IPv6 && have+n > most {
		return beyond // a prefix has more than EC2 counts
	}
	blocks, rest, slots := n/size, n%size, n
	if a.family == eni.IPv4 {
		slots = a.slots()
	}
	missing, err := a.blocks(ctx, min(blocks, slots))
	if err != nil {
		return err
	}
	if missing > 0 {
		if rest = min(rest+missing*size, a.slots()); rest == 0 {
			return because(cloud.ErrSubnetFull, "subnet %s has no whole block left, and the ENI no room for single addresses", a.on.Subnet)
		}
		return a.singles(ctx, rest)
	}
	if err := a.singles(ctx, min(rest, max(slots-blocks, 0))); err != nil || blocks+rest <= slots {
		return err
	}
	return beyond
}

// slots is how many blocks or single addresses the ENI may still get.
func (a *assignment) slots() int {
	has, blocks := a.truth(a.on)
	used := 0
	for _, b := range blocks {
		if eni.FamilyOf(b.Addr()) == a.family {
			used++
		}
		has = minus(has, within(b, has))
	}
	used += len(ofFamily(has, a.family))
	return max(a.limits.PerENI(a.family)/a.limits.Block(a.family).Size-used, 0)
}

// blocks puts up to n prefixes on the ENI and returns how many did not come because
// the subnet is in pieces. It asks for half as many until there are some.
func (a *assignment) blocks(ctx context.Context, n int) (missing int, err error) {
	for ask := n; ask > 0; ask = min(ask, n) {
		switch err := a.request(ctx, ask, true); {
		case err == nil:
			n -= ask
		case errors.Is(err, cloud.ErrSubnetFull):
			ask /= 2
		default:
			return n, err
		}
	}
	return n, nil
}

// singles puts n single addresses on the ENI or, where the subnet has fewer, those:
// as many as it says that are left or, since that may be old, half as many.
func (a *assignment) singles(ctx context.Context, n int) error {
	for ask := n; ask > 0; ask = min(ask, n) {
		err := a.request(ctx, ask, false)
		if err == nil {
			n -= ask
			continue
		}
		if !errors.Is(err, cloud.ErrSubnetFull) {
			return err
		}
		if ask = a.fewer(ctx, ask); ask == 0 {
			return a.unless(err)
		}
	}
	return nil
}

// fewer is how many to ask for where the subnet has not as many.
func (a *assignment) fewer(ctx context.Context, ask int) int {
	half := ask / 2
	if half == 0 || a.family == eni.IPv6 { // EC2 does not tell how many of those are left
		return half
	}
	all, err := a.describeSubnets(ctx, byIDs("subnet-id", []string{a.on.Subnet}))
	if left := all[a.on.Subnet].Free; err == nil && left < ask {
		return left
	}
	return half
}

// unless: fewer than were asked for are no error where the subnet has no more.
func (a *assignment) unless(err error) error {
	if len(a.got) > 0 {
		return nil
	}
	return err
}
