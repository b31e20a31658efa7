package engine

import (
	"context"
	"errors"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// creation is one CreateInterface.
type creation struct {
	*Node
	self   driver.Self
	asked  cloud.Create
	limits eni.Limits
	in     driver.Subnet // that the ENI lies in
	isNew  bool          // this call has made the ENI
	joined bool          // this call has attached it: no pod could use it before
}

// CreateInterface implements cloud.Cloud. The ENI has the token in its mark, by which a later
// call finds it and does what is missing.
func (n *Node) CreateInterface(ctx context.Context, asked cloud.Create) (ready cloud.Interface, err error) {
	defer nameError(&err, "CreateInterface", asked.Subnet)
	making, err := n.newCreation(ctx, asked)
	if err != nil {
		return cloud.Interface{}, err
	}
	refusal := making.whyImpossible()
	if refusal != nil && !n.mayBeMade(asked.Token) {
		return cloud.Interface{}, refusal
	}
	defer func() {
		if err != nil && !errors.Is(err, cloud.ErrThrottled) {
			n.expectUnattached()
		}
	}()
	var made *nic
	if refusal == nil {
		made, err = making.findOrMake(ctx)
	} else {
		made, err = making.findRefused(ctx, refusal)
	}
	if err == nil {
		made, err = making.afterEarlierProcess(ctx, made)
	}
	if err != nil {
		return cloud.Interface{}, making.afterNotForPods(ctx, err)
	}
	// An ENI of an earlier call that is attached with addresses may have pods already, whatever
	// fails now. It is never undone; the error says that the outcome is unknown.
	used := !making.isNew && making.wasReady(made)
	on, err := making.finish(ctx, made)
	switch {
	case driver.Reason(err) == cloud.NotForPods:
		return cloud.Interface{}, making.afterNotForPods(ctx, err)
	case err != nil && (used || !making.isNew && !making.joined && making.isReady(ctx, made.ID)):
		return cloud.Interface{}, halfDone(err)
	case err != nil:
		return cloud.Interface{}, making.undo(ctx, made.ID, err)
	}
	n.keepMark(on.ID, on.raw.Mark)
	n.noteReady(asked.Token, *on)
	on.Partial = partialBlocks(on.blocks)
	return n.forCallers(*on), nil
}

// newCreation finds out what is needed before any change: the instance, its limits, the subnet.
// If the cloud refuses to tell that, an ENI that an earlier call with the token may have made is
// there nevertheless: hence ErrUnknown.
func (n *Node) newCreation(ctx context.Context, asked cloud.Create) (making *creation, err error) {
	making = &creation{Node: n, asked: asked}
	if !driver.ValidToken(asked.Token) {
		return making, errorf(cloud.ErrForbidden, "the token must have 1 to 64 visible ASCII characters")
	}
	defer func() { err = halfDoneIf(isFinal(err) && n.mayBeMade(asked.Token), err) }()
	if making.self, err = n.findSelf(ctx); err != nil {
		return making, err
	}
	if making.limits, err = n.knownLimits(ctx); err != nil {
		return making, err
	}
	known, err := n.subnetRanges(ctx, []string{asked.Subnet})
	making.in = known[asked.Subnet]
	return making, err
}

// whyImpossible tells why there can't be such an ENI, as far as is known without a request for it.
func (c *creation) whyImpossible() error {
	v4, v6 := c.limits.PerENI(eni.IPv4), c.limits.PerENI(eni.IPv6)
	switch {
	case c.limits.ENIs < 2 || c.t.OneNIC:
		return errorf(cloud.ErrLimit, "the instance may have its primary ENI alone")
	case c.asked.V4 > v4 || c.asked.V6 > v6:
		return errorf(cloud.ErrLimit, "an ENI has at most %d IPv4 and %d IPv6 addresses here besides its primary ones", v4, v6)
	case c.in.ID == "" || c.in.Wrong != "":
		return &driver.Error{Kind: cloud.ErrNotFound, Why: cloud.NoSuchSubnet, Detail: c.t.Name + " shows no such subnet"}
	case c.asked.V6 > 0 && !c.hasV6():
		return errorf(cloud.ErrForbidden, "ENIs in this subnet have no IPv6")
	}
	return nil
}

// findRefused is findOrMake of a call that whyImpossible refuses. An earlier call may have made
// the ENI, when limits were higher or the subnet was shown. So the refusal is final only after
// describes have had the time to show such an ENI, and after it was undone.
func (c *creation) findRefused(ctx context.Context, refusal error) (*nic, error) {
	made, err := c.findEarlier(ctx, true)
	if err == nil && made == nil {
		if made, err = c.awaitShown(ctx, ""); err != nil {
			err = halfDone(err)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case made == nil:
		c.forgetBegun(c.asked.Token)
		return nil, refusal
	case made.Index >= 0 && len(made.Addresses) > 0:
		c.asked.V4, c.asked.V6 = 0, 0 // pods may use it: it is done with what it has
		return made, nil
	case c.wasReady(made) || c.isReady(ctx, made.ID):
		return nil, halfDone(refusal)
	}
	return nil, c.undo(ctx, made.ID, refusal)
}

// hasV6 tells whether the ENI gets an IPv6 address.
func (c *creation) hasV6() bool { return (c.o.IPv6 || c.asked.V6 > 0) && c.in.V6.IsValid() }

// afterEarlierProcess returns the ENI as it is when describes show all that an earlier process
// has done to it, which may have begun to undo it.
func (c *creation) afterEarlierProcess(ctx context.Context, made *nic) (*nic, error) {
	c.keepMark(made.ID, made.raw.Mark)
	if c.isNew {
		c.noteMade(made.ID)
	}
	if !c.mayLack(made.ID) {
		return made, nil
	}
	if err := c.waitForEarlierProcess(ctx, made.ID); err != nil {
		return nil, halfDone(err)
	}
	now, err := c.describeENI(ctx, c.self, made.ID)
	if err != nil {
		return nil, halfDone(err)
	}
	if now == nil { // it is gone, as the next step will find, or this process has just made it
		return made, nil
	}
	return now, nil
}

// wasReady tells whether pods may use an ENI of an earlier call, as far as is known now: it is
// attached with addresses, or was a short while ago.
func (c *creation) wasReady(made *nic) bool {
	before, seen := c.lastSeen(made.ID, forgetAfter)
	return made.Index >= 0 && len(made.Addresses) > 0 || seen && len(before.Addresses) > 0
}

// isReady is wasReady by describes of the whole consistency window: before its end they may show
// an ENI that pods use as attached nowhere. In doubt it is ready.
func (c *creation) isReady(ctx context.Context, id string) bool {
	for w := c.pausesFor(c.t.Times.Settle); ; {
		now, err := c.describeENI(ctx, c.self, id)
		if now != nil && c.wasReady(now) {
			return true
		}
		if more, ended := w.next(ctx); ended != nil {
			return true
		} else if !more {
			return err != nil
		}
	}
}

// afterNotForPods deals with an ENI that somebody has tagged as not for pods while it is made.
// It is undone if this process has made it and no pod can have an address of it. Else it stays as
// it is. Either way the error is final: no call can finish the ENI of this token. Other errors are
// returned as they are.
func (c *creation) afterNotForPods(ctx context.Context, err error) error {
	e, is := errors.AsType[*driver.Error](err)
	if !is || e.Why != cloud.NotForPods {
		return err
	}
	final := *e
	final.Kind = cloud.ErrForbidden
	c.mu.Lock()
	id := ""
	for known, m := range c.memory.marks {
		if m.Token == c.asked.Token && c.memory.mine[known] {
			id = known
		}
	}
	c.mu.Unlock()
	// The describe that showed the tag returned no nic, so what the ENI had comes from memory.
	before, seen := c.lastSeen(id, forgetAfter)
	if id == "" || !c.isNew && seen && len(before.Addresses) > 0 {
		return &final
	}
	return c.undo(ctx, id, &final)
}

// undo removes an ENI of which a later step was refused for good, so that nothing is left after
// the error. If another call may succeed, or the outcome is unknown, the ENI stays for the next
// call with its token.
func (c *creation) undo(ctx context.Context, id string, cause error) error {
	if !isFinal(cause) {
		return halfDone(cause)
	}
	if err := c.removeENI(ctx, c.self, id, nil); err != nil {
		return halfDone(errors.Join(cause, err))
	}
	c.beginNextTry(c.asked.Token)
	if driver.Reason(cause) == cloud.NoSuchInterface {
		return halfDone(cause) // the same call makes another one
	}
	return cause
}
