package engine

import (
	"context"
	"errors"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// AssignAddresses implements cloud.Cloud.
func (n *Node) AssignAddresses(ctx context.Context, id string, f eni.Family, count int) (addrs []netip.Addr, err error) {
	defer nameError(&err, "AssignAddresses", id)
	self, err := n.whoami(ctx)
	if err != nil {
		return nil, err
	}
	on, err := n.toFill(ctx, self, id)
	if err != nil {
		return nil, err
	}
	if !on.Net(f).IsValid() {
		return nil, because(cloud.ErrForbidden, "this ENI has no %s addresses", f)
	}
	if err := n.mayFill(ctx, on); err != nil || count <= 0 {
		return nil, err
	}
	addrs, err = n.assign(ctx, self, on, f, count, func(int, int) string { return n.o.Token() })
	if driver.Reason(err) == driver.NoSuchInterface {
		n.forget(id)
	}
	return addrs, err
}

// toFill returns an ENI that is to get addresses, as it was shown a short while ago.
func (n *Node) toFill(ctx context.Context, self driver.Self, id string) (nic, error) {
	if on, known := n.lastHere(id, recent); known {
		return on, nil
	}
	now, err := n.oneAsSeen(ctx, self, id)
	if err != nil {
		return nic{}, err
	}
	if now == nil || now.Index < 0 {
		return nic{}, because(cloud.ErrNotFound, "instance %s has no such ENI", self.Instance)
	}
	return *now, nil
}

// mayFill tells why an ENI gets no addresses for pods.
func (n *Node) mayFill(ctx context.Context, on nic) error {
	limits, err := n.knownLimits(ctx)
	if err == nil && on.raw.Primary && limits.NoPrimary {
		err = because(cloud.ErrLimit, "pods can't use further addresses of the primary ENI of this instance")
	}
	return err
}

// assignment is an AssignAddresses under way.
type assignment struct {
	*Node
	self   driver.Self
	on     nic
	family eni.Family
	limits eni.Limits
	before []netip.Addr // what the ENI had, also what describes may not show yet
	got    []netip.Addr
	token  func(offset, count int) string
}

// assign puts up to n addresses of the family on the ENI: blocks first, then single ones.
// What came although no good answer did is among what it returns with the error.
func (n *Node) assign(ctx context.Context, self driver.Self, on nic, f eni.Family, count int, token func(offset, count int) string) ([]netip.Addr, error) {
	limits, err := n.knownLimits(ctx)
	if err != nil {
		return nil, err
	}
	a := &assignment{Node: n, self: self, on: on, family: f, limits: limits, token: token}
	a.before, _ = n.truth(on)
	err = a.ask(ctx, count)
	if errors.Is(err, cloud.ErrUnknown) {
		a.settle(ctx)
	}
	return a.got, err
}

// ask asks for as many blocks as the ENI has room for, and for the rest.
func (a *assignment) ask(ctx context.Context, n int) error {
	size, most := a.limits.Block(a.family).Size, a.limits.PerENI(a.family)
	if size <= 1 {
		return a.singles(ctx, n)
	}
	has, _ := a.truth(a.on)
	have := len(ofFamily(has, a.family))
	beyond := because(cloud.ErrLimit, "an ENI has at most %d %s addresses here besides its primary one, and this one %d", most, a.family, have)
	if a.family == eni.IPv6 && have+n > most {
		return beyond // a prefix has more than the cloud counts
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

// blocks puts up to n prefixes on the ENI and returns how many did not come because the
// subnet is in pieces. It asks for half as many until there are some.
func (a *assignment) blocks(ctx context.Context, n int) (missing int, err error) {
	for ask := n; ask > 0; ask = min(ask, n) {
		_, err := a.request(ctx, driver.Count{Blocks: ask})
		switch {
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

// singles puts n single addresses on the ENI, so many a call as the cloud takes. Where
// the cloud refuses because it has fewer, fewer are asked for, until not even one comes.
func (a *assignment) singles(ctx context.Context, n int) error {
	var refused error
	for ask := n; n > 0 && ask > 0; ask = min(ask, n) {
		if a.t.PerCall > 0 {
			ask = min(ask, a.t.PerCall)
		}
		got, err := a.request(ctx, driver.Count{Singles: ask})
		switch {
		case err == nil && got == 0:
			return a.silence(refused)
		case err == nil && a.t.AllOrNothing:
			n -= ask
		case err == nil:
			n -= got
			if refused == nil {
				ask = n
			}
		case !a.isShort(err):
			return err
		default:
			refused = err
			ask = a.fewer(ctx, ask, err)
		}
	}
	if n > 0 && (len(a.got) == 0 || errors.Is(refused, cloud.ErrLimit)) {
		return refused
	}
	return nil
}

// silence is what an answer without an address and without an error means: the cloud has no more. Who
// got none at all must be told, or asks again at once, for ever, where the subnet shows some.
func (a *assignment) silence(refused error) error {
	if refused == nil && len(a.got) == 0 {
		return because(cloud.ErrSubnetFull, "subnet %s gave none of the %s addresses asked for, and no reason", a.on.Subnet, a.family)
	}
	return refused
}

// isShort tells whether asking for fewer may do: the subnet has fewer, or the ENI may
// carry fewer where nobody knows exactly how many.
func (a *assignment) isShort(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrLimit) && a.shape.Guessed
}

// fewer is how many to ask for where that many were refused: what is left, as far as the
// cloud tells, or since that may be old, half as many.
func (a *assignment) fewer(ctx context.Context, ask int, refused error) int {
	half := ask / 2
	if half == 0 {
		return 0
	}
	left := -1
	if errors.Is(refused, cloud.ErrLimit) {
		has, _ := a.truth(a.on)
		left = a.limits.PerENI(a.family) - len(ofFamily(has, a.family))
	} else if a.family == eni.IPv4 { // no subnet tells how many IPv6 addresses are left
		all, err := a.describeSubnets(ctx, driver.SubnetFilter{IDs: []string{a.on.Subnet}})
		if err == nil && len(all) > 0 {
			left = all[0].Free
		}
	}
	if left >= 0 && left < ask && (left > 0 || a.t.AllOrNothing) {
		return left
	}
	return half
}

// request makes the call and takes over what is new. A cloud may answer with all
// addresses of the ENI, or with none.
func (a *assignment) request(ctx context.Context, count driver.Count) (came int, err error) {
	out, err := a.d.Assign(ctx, driver.Assign{On: a.on.raw, Family: a.family, Count: count, Token: a.token(len(a.got), count.Blocks+count.Singles)})
	if err != nil {
		return 0, err
	}
	asked := count.Singles + count.Blocks*a.limits.Block(a.family).Size
	addrs := union(out.Addresses)
	for _, b := range out.Blocks {
		addrs = union(addrs, expand(b, a.limits.V6Block.Size))
	}
	addrs = minus(addrs, []netip.Addr{a.on.V4.Primary.Addr(), a.on.V6.Primary.Addr()})
	if len(addrs) > asked {
		addrs = minus(addrs, union(a.before, a.got))
	}
	if len(addrs) == 0 && a.t.AllOrNothing {
		return 0, because(cloud.ErrUnknown, "the answer names no new address")
	}
	known, err := a.ranges(ctx, []string{a.on.Subnet})
	if err != nil {
		return 0, halfDone(err)
	}
	for _, addr := range addrs {
		if !mayHave(known[a.on.Subnet], addr) {
			return 0, because(cloud.ErrUnknown, "the answer names %s, which is not an address of subnet %s", addr, a.on.Subnet)
		}
	}
	if len(addrs) > asked {
		return 0, because(cloud.ErrUnknown, "the answer names %d new addresses in place of %d", len(addrs), asked)
	}
	fresh := minus(addrs, a.got)
	a.take(fresh, out.Blocks)
	return len(fresh), nil
}

func (a *assignment) take(fresh []netip.Addr, blocks []netip.Prefix) {
	a.got = union(a.got, fresh)
	a.note(a.on.ID, fresh, blocks, put)
}

// settle looks for what came although no good answer did. Of what an earlier process has put
// it may find some, too, but nothing that one has taken.
func (a *assignment) settle(ctx context.Context) {
	if a.grow(ctx, a.on.ID) != nil {
		return
	}
	for wait := a.t.Times.Poll; ; wait *= 2 {
		now, err := a.oneAsSeen(ctx, a.self, a.on.ID)
		if err != nil || now == nil {
			return
		}
		has, blocks := a.truth(*now) // not what was taken a moment ago and is still shown
		leaving, _ := a.lately(*now, unsure)
		fresh := ofFamily(minus(has, union(a.before, a.got, leaving)), a.family)
		if len(fresh) > 0 {
			a.take(fresh, blocks)
			return
		}
		if wait >= a.t.Times.Slow || a.clock.Wait(ctx, wait) != nil {
			return
		}
	}
}
