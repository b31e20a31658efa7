package engine

import (
	"context"
	"errors"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// creation is a CreateInterface under way.
type creation struct {
	*Node
	self   driver.Self
	w      cloud.Create
	limits eni.Limits
	in     driver.Subnet // that the ENI lies in
	isNew  bool          // this call has made the ENI
	joined bool          // this call has attached it: no pod could use it before
}

// CreateInterface implements cloud.Cloud. The ENI carries the token in its mark, by which
// a later call finds it and does what is missing.
func (n *Node) CreateInterface(ctx context.Context, w cloud.Create) (ready cloud.Interface, err error) {
	defer nameError(&err, "CreateInterface", w.Subnet)
	c, err := n.wish(ctx, w)
	if err != nil {
		return cloud.Interface{}, err
	}
	refusal := c.refusal()
	if refusal != nil && !n.mayBeMade(w.Token) {
		return cloud.Interface{}, refusal
	}
	defer func() {
		if err != nil && !errors.Is(err, cloud.ErrThrottled) {
			n.doubt()
		}
	}()
	var made *nic
	if refusal == nil {
		made, err = c.find(ctx)
	} else {
		made, err = c.findRefused(ctx, refusal)
	}
	if err == nil {
		made, err = c.asItIs(ctx, made)
	}
	if err != nil {
		return cloud.Interface{}, c.leaveAlone(ctx, err)
	}
	used := !c.isNew && c.wasReady(made)
	on, err := c.finish(ctx, made)
	switch {
	case driver.Reason(err) == driver.NotForPods:
		return cloud.Interface{}, c.leaveAlone(ctx, err)
	case err != nil && (used || !c.isNew && !c.joined && c.isReady(ctx, made.ID)):
		return cloud.Interface{}, halfDone(err)
	case err != nil:
		return cloud.Interface{}, c.undo(ctx, made.ID, err)
	}
	n.keepMark(on.ID, on.raw.Mark)
	n.made(w.Token, *on)
	on.Partial = partial(on.blocks)
	return n.forCallers(*on), nil
}

// wish finds out what there is to know of what is asked for. That the cloud refuses to tell
// says nothing of an ENI that an earlier call may have made.
func (n *Node) wish(ctx context.Context, w cloud.Create) (c *creation, err error) {
	c = &creation{Node: n, w: w}
	if !validToken(w.Token) {
		return c, because(cloud.ErrForbidden, "the token must have 1 to 64 visible ASCII characters")
	}
	defer func() { err = halfDoneIf(isFinal(err) && n.mayBeMade(w.Token), err) }()
	if c.self, err = n.whoami(ctx); err != nil {
		return c, err
	}
	if c.limits, err = n.knownLimits(ctx); err != nil {
		return c, err
	}
	known, err := n.ranges(ctx, []string{w.Subnet})
	c.in = known[w.Subnet]
	return c, err
}

// refusal tells why there can't be such an ENI, as far as is known without asking for it.
func (c *creation) refusal() error {
	v4, v6 := c.limits.PerENI(eni.IPv4), c.limits.PerENI(eni.IPv6)
	switch {
	case c.limits.ENIs < 2 || c.t.OneNIC:
		return because(cloud.ErrLimit, "the instance may have its primary ENI alone")
	case c.w.V4 > v4 || c.w.V6 > v6:
		return because(cloud.ErrLimit, "an ENI has at most %d IPv4 and %d IPv6 addresses here besides its primary ones", v4, v6)
	case c.in.ID == "" || c.in.Wrong != "":
		return because(cloud.ErrNotFound, "%s shows no such subnet", c.t.Name)
	case c.w.V6 > 0 && !c.hasV6():
		return because(cloud.ErrForbidden, "ENIs in this subnet have no IPv6")
	}
	return nil
}

// findRefused is find of a call that is refused before it asks for anything. An earlier one may
// have asked, when limits were higher or the subnet was shown: the refusal is final when
// describes have had the time to show the ENI, and nothing is left of it.
func (c *creation) findRefused(ctx context.Context, refusal error) (*nic, error) {
	made, err := c.earlier(ctx, true)
	if err == nil && made == nil {
		if made, err = c.appears(ctx, ""); err != nil {
			err = halfDone(err)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case made == nil:
		c.unbegun(c.w.Token)
		return nil, refusal
	case made.Index >= 0 && len(made.Addresses) > 0:
		c.w.V4, c.w.V6 = 0, 0 // pods may use it: it is done with what it has
		return made, nil
	case c.wasReady(made) || c.isReady(ctx, made.ID):
		return nil, halfDone(refusal)
	}
	return nil, c.undo(ctx, made.ID, refusal)
}

// hasV6 tells whether the ENI gets an IPv6 address.
func (c *creation) hasV6() bool { return (c.o.IPv6 || c.w.V6 > 0) && c.in.V6.IsValid() }

// validToken tells whether the token can be a word of a mark.
func validToken(token string) bool {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return len(token) >= 1 && len(token) <= 64
}

// asItIs returns the ENI of an earlier process as it is when describes show what that did
// last: it may have begun to undo it.
func (c *creation) asItIs(ctx context.Context, made *nic) (*nic, error) {
	c.keepMark(made.ID, made.raw.Mark)
	if c.isNew {
		c.noteMade(made.ID)
	}
	if !c.mayLack(made.ID) {
		return made, nil
	}
	if err := c.grow(ctx, made.ID); err != nil {
		return nil, halfDone(err)
	}
	now, err := c.one(ctx, c.self, made.ID)
	if err != nil {
		return nil, halfDone(err)
	}
	if now == nil { // it is gone, as the next step will find, or this process has just made it
		return made, nil
	}
	return now, nil
}

// wasReady tells whether pods may use an ENI of an earlier call, as far as is known: it is
// attached with addresses, or was.
func (c *creation) wasReady(made *nic) bool {
	before, seen := c.lastSeen(made.ID, forgetAfter)
	return made.Index >= 0 && len(made.Addresses) > 0 || seen && len(before.Addresses) > 0
}

// isReady is wasReady when describes show what was when this call began: until then an ENI
// that pods use may be shown attached nowhere. In doubt they may.
func (c *creation) isReady(ctx context.Context, id string) bool {
	for w := c.wait(c.t.Times.Settle); ; {
		now, err := c.one(ctx, c.self, id)
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

// leaveAlone is what becomes of an ENI that somebody tags as not for pods while it is made:
// what this process has made, and no pod can have, it takes away. Else the ENI stays as it is,
// and the error is final: the token is of no more use. Other errors stay what they are.
func (c *creation) leaveAlone(ctx context.Context, err error) error {
	e, is := errors.AsType[*driver.Error](err)
	if !is || e.Why != driver.NotForPods {
		return err
	}
	final := *e
	final.Kind = cloud.ErrForbidden
	c.mu.Lock()
	id := ""
	for known, m := range c.memory.marks {
		if m.Token == c.w.Token && c.memory.mine[known] {
			id = known
		}
	}
	c.mu.Unlock()
	before, seen := c.lastSeen(id, forgetAfter)
	if id == "" || !c.isNew && seen && len(before.Addresses) > 0 {
		return &final
	}
	return c.undo(ctx, id, &final)
}

// undo leaves nothing of an ENI where a later step was refused for good, so that the
// error is the whole truth. Where asking again may do, or the outcome is not known,
// the ENI waits for the next call with its token.
func (c *creation) undo(ctx context.Context, id string, cause error) error {
	if !isFinal(cause) {
		return halfDone(cause)
	}
	if err := c.remove(ctx, c.self, id, nil); err != nil {
		return halfDone(errors.Join(cause, err))
	}
	c.again(c.w.Token)
	if driver.Reason(cause) == driver.NoSuchInterface {
		return halfDone(cause) // the same call makes another one
	}
	return cause
}
