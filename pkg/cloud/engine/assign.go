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
func (n *Node) AssignAddresses(ctx context.Context, id string, family eni.Family, count int) (addrs []netip.Addr, err error) {
	defer nameError(&err, "AssignAddresses", id)
	self, err := n.findSelf(ctx)
	if err != nil {
		return nil, err
	}
	on, err := n.toFill(ctx, self, id)
	if err != nil {
		return nil, err
	}
	if !on.Net(family).IsValid() {
		return nil, errorf(cloud.ErrForbidden, "this ENI has no %s addresses", family)
	}
	if err := n.mayFill(ctx, on); err != nil || count <= 0 {
		return nil, err
	}
	addrs, err = n.assignCount(ctx, self, on, family, count, func(int, int) string { return n.o.Token() })
	// The ENI was not described before the call. If it is gone, what is known of it must not
	// send the next call there again.
	if driver.Reason(err) == cloud.NoSuchInterface {
		n.forgetENI(id)
	}
	return addrs, err
}

// toFill returns an ENI that is to get addresses. It describes it only if what is known of it
// is not recent: accounts let few describes pass.
func (n *Node) toFill(ctx context.Context, self driver.Self, id string) (nic, error) {
	if on, known := n.lastHere(id, recent); known {
		return on, nil
	}
	now, err := n.describeENIOrLast(ctx, self, id)
	if err != nil {
		return nic{}, err
	}
	if now == nil || now.Index < 0 {
		return nic{}, errorf(cloud.ErrNotFound, "instance %s has no such ENI", self.Instance)
	}
	return *now, nil
}

// mayFill tells why an ENI gets no addresses for pods.
func (n *Node) mayFill(ctx context.Context, on nic) error {
	limits, err := n.knownLimits(ctx)
	if err == nil && on.raw.Primary && limits.NoPrimary {
		err = errorf(cloud.ErrLimit, "pods can't use further addresses of the primary ENI of this instance")
	}
	return err
}

// assignment is one AssignAddresses, or the filling of a new ENI, for one family.
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

// assignCount puts up to count addresses of the family on the ENI: blocks first, then single
// ones. If an answer was lost, what came nevertheless is returned with the error.
func (n *Node) assignCount(ctx context.Context, self driver.Self, on nic, f eni.Family, count int, token func(offset, count int) string) ([]netip.Addr, error) {
	limits, err := n.knownLimits(ctx)
	if err != nil {
		return nil, err
	}
	a := &assignment{Node: n, self: self, on: on, family: f, limits: limits, token: token}
	a.before, _ = n.currentAddresses(on)
	err = a.assignUpTo(ctx, count)
	if errors.Is(err, cloud.ErrUnknown) {
		a.findLostAssignment(ctx)
	}
	return a.got, err
}

// assignUpTo puts as many blocks on the ENI as it has room for, and single addresses for the
// rest. A block and a single address each take one slot of the ENI.
func (a *assignment) assignUpTo(ctx context.Context, count int) error {
	size, most := a.limits.Block(a.family).Size, a.limits.PerENI(a.family)
	if size <= 1 {
		return a.assignSingles(ctx, count)
	}
	has, _ := a.currentAddresses(a.on)
	have := len(ofFamily(has, a.family))
	beyond := errorf(cloud.ErrLimit, "an ENI has at most %d %s addresses here besides its primary one, and this one %d", most, a.family, have)
	if a.family == eni.IPv6 && have+count > most {
		return beyond // the cloud would not refuse: it counts a prefix as one address, and pods use a part of it
	}
	blocks, rest, slots := count/size, count%size, count
	if a.family == eni.IPv4 {
		slots = a.freeSlots()
	}
	missing, err := a.assignBlocks(ctx, min(blocks, slots))
	if err != nil {
		return err
	}
	if missing > 0 {
		if rest = min(rest+missing*size, a.freeSlots()); rest == 0 {
			return errorf(cloud.ErrSubnetFull, "subnet %s has no whole block left, and the ENI no room for single addresses", a.on.Subnet)
		}
		return a.assignSingles(ctx, rest)
	}
	if err := a.assignSingles(ctx, min(rest, max(slots-blocks, 0))); err != nil || blocks+rest <= slots {
		return err
	}
	return beyond
}

// freeSlots returns how many more blocks or single addresses the ENI may get.
func (a *assignment) freeSlots() int {
	has, blocks := a.currentAddresses(a.on)
	used := 0
	for _, b := range blocks {
		if eni.FamilyOf(b.Addr()) == a.family {
			used++
		}
		has = minus(has, addrsWithin(b, has))
	}
	used += len(ofFamily(has, a.family))
	return max(a.limits.PerENI(a.family)/a.limits.Block(a.family).Size-used, 0)
}

// assignBlocks puts up to this many prefixes on the ENI and returns how many of them the subnet
// does not have: it may have free addresses, but no whole block. After a refusal it asks for
// half as many.
func (a *assignment) assignBlocks(ctx context.Context, count int) (missing int, err error) {
	for ask := count; ask > 0; ask = min(ask, count) {
		_, err := a.requestCount(ctx, driver.Count{Blocks: ask})
		switch {
		case err == nil:
			count -= ask
		case errors.Is(err, cloud.ErrSubnetFull):
			ask /= 2
		default:
			return count, err
		}
	}
	return count, nil
}

// assignSingles puts single addresses on the ENI, as many per request as the cloud takes. If
// the cloud refuses because it has fewer, fewer are asked for, until not even one comes.
func (a *assignment) assignSingles(ctx context.Context, count int) error {
	var refused error
	for ask := count; count > 0 && ask > 0; ask = min(ask, count) {
		if a.t.PerCall > 0 {
			ask = min(ask, a.t.PerCall)
		}
		got, err := a.requestCount(ctx, driver.Count{Singles: ask})
		switch {
		case err == nil && got == 0:
			return a.silence(refused)
		case err == nil && a.t.AllOrNothing:
			count -= ask
		case err == nil:
			count -= got
			if refused == nil {
				ask = count
			}
		case !a.isShort(err):
			return err
		default:
			refused = err
			ask = a.nextFewer(ctx, ask, err)
		}
	}
	if count > 0 && (len(a.got) == 0 || errors.Is(refused, cloud.ErrLimit)) {
		return refused
	}
	return nil
}

// silence is what an answer without an address and without an error means: the cloud has no more. Who
// got none at all must be told, or asks again at once, for ever, where the subnet shows some.
func (a *assignment) silence(refused error) error {
	if refused == nil && len(a.got) == 0 {
		return errorf(cloud.ErrSubnetFull, "subnet %s gave none of the %s addresses asked for, and no reason", a.on.Subnet, a.family)
	}
	return refused
}

// isShort tells whether asking for fewer may succeed: the subnet has fewer, or the ENI can carry
// fewer and the number that it can carry was only a rule of thumb.
func (a *assignment) isShort(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrLimit) && a.shape.Guessed
}

// nextFewer returns how many to ask for after a refusal: what is left, if the cloud tells that
// and it is fewer than were asked for, else half.
func (a *assignment) nextFewer(ctx context.Context, ask int, refused error) int {
	half := ask / 2
	if half == 0 {
		return 0
	}
	left := -1
	if errors.Is(refused, cloud.ErrLimit) {
		has, _ := a.currentAddresses(a.on)
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

// requestCount makes the request and notes which addresses are new. Each refusal to believe
// the answer is ErrUnknown, because the cloud has called the request a success.
func (a *assignment) requestCount(ctx context.Context, count driver.Count) (came int, err error) {
	out, err := a.d.Assign(ctx, driver.Assign{On: a.on.raw, Family: a.family, Count: count, Token: a.token(len(a.got), count.Blocks+count.Singles)})
	if err != nil {
		return 0, err
	}
	asked := count.Singles + count.Blocks*a.limits.Block(a.family).Size
	addrs := union(out.Addresses)
	for _, b := range out.Blocks {
		addrs = union(addrs, expandBlock(b, a.limits.V6Block.Size))
	}
	addrs = minus(addrs, []netip.Addr{a.on.V4.Primary.Addr(), a.on.V6.Primary.Addr()})
	// An answer may name all addresses of the ENI. What it had before is only taken out if there
	// are too many: an address of before that others have unassigned meanwhile may come again.
	if len(addrs) > asked {
		addrs = minus(addrs, union(a.before, a.got))
	}
	if len(addrs) == 0 && a.t.AllOrNothing {
		return 0, errorf(cloud.ErrUnknown, "the answer names no new address")
	}
	known, err := a.subnetRanges(ctx, []string{a.on.Subnet})
	if err != nil {
		return 0, halfDone(err)
	}
	for _, addr := range addrs {
		if !mayHave(known[a.on.Subnet], addr) {
			return 0, errorf(cloud.ErrUnknown, "the answer names %s, which is not an address of subnet %s", addr, a.on.Subnet)
		}
	}
	if len(addrs) > asked {
		return 0, errorf(cloud.ErrUnknown, "the answer names %d new addresses in place of %d", len(addrs), asked)
	}
	fresh := minus(addrs, a.got)
	a.noteAssigned(fresh, out.Blocks)
	return len(fresh), nil
}

func (a *assignment) noteAssigned(fresh []netip.Addr, blocks []netip.Prefix) {
	a.got = union(a.got, fresh)
	a.noteDeed(a.on.ID, fresh, blocks, assigned)
}

// findLostAssignment finds the addresses that came although the answer was lost. They may
// include some that an earlier process has assigned, but none that one has unassigned.
func (a *assignment) findLostAssignment(ctx context.Context) {
	if a.waitForEarlierProcess(ctx, a.on.ID) != nil {
		return
	}
	for wait := a.t.Times.Poll; ; wait *= 2 {
		now, err := a.describeENIOrLast(ctx, a.self, a.on.ID)
		if err != nil || now == nil {
			return
		}
		has, blocks := a.currentAddresses(*now) // not what was taken a moment ago and is still shown
		leaving, _ := a.recentDeeds(*now, uncertain)
		fresh := ofFamily(minus(has, union(a.before, a.got, leaving)), a.family)
		if len(fresh) > 0 {
			a.noteAssigned(fresh, blocks)
			return
		}
		if wait >= a.t.Times.Slow || a.clock.Wait(ctx, wait) != nil {
			return
		}
	}
}
