package engine

import (
	"context"
	"errors"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// finish does what is missing before pods can use an ENI: fill and attach, in the cloud's order.
func (c *creation) finish(ctx context.Context, on *nic) (*nic, error) {
	// A full ENI that is still pending is attached all the same: attachAt repeats what is refused
	// because of its state.
	if on.raw.State == driver.Pending && !(c.t.FillsFirst && c.isFull(on)) {
		now, err := c.awaitState(ctx, on.ID, "made", func(now *nic) bool { return now != nil && now.raw.State != driver.Pending })
		if err != nil {
			return nil, err
		}
		on = now
	}
	if !c.t.FillsFirst {
		joined, err := c.attachAndBind(ctx, on)
		if err != nil {
			return nil, err
		}
		if err := c.electPrimaryV6(ctx, joined); err != nil {
			return nil, err
		}
		return joined, c.fillAll(ctx, joined)
	}
	if err := c.fillAll(ctx, on); err != nil {
		return nil, err
	}
	return c.attachAndBind(ctx, on)
}

// isFull tells whether the ENI has all addresses that were asked for.
func (c *creation) isFull(on *nic) bool {
	has, _ := c.currentAddresses(*on)
	return len(ofFamily(has, eni.IPv4)) >= c.asked.V4 && len(ofFamily(has, eni.IPv6)) >= c.asked.V6
}

// fillAll puts the addresses of both families that are missing.
func (c *creation) fillAll(ctx context.Context, on *nic) error {
	if err := c.fillFamily(ctx, on, eni.IPv4, c.asked.V4); err != nil {
		return err
	}
	return c.fillFamily(ctx, on, eni.IPv6, c.asked.V6)
}

// fillFamily assigns the addresses of a family that are missing. Fewer are fine if the subnet has
// no more, but with none of a family the ENI is of no use. The requests' tokens are derived from
// the intent's, so that a repetition does not add to what an earlier attempt has assigned.
func (c *creation) fillFamily(ctx context.Context, on *nic, f eni.Family, want int) error {
	on.Addresses, on.blocks = c.currentAddresses(*on)
	have := len(ofFamily(on.Addresses, f))
	if want <= have {
		return nil
	}
	got, err := c.assignCount(ctx, c.self, *on, f, want-have, func(offset, count int) string {
		return derivedToken(c.asked.Token, "fill", on.ID, f, have+offset, count)
	})
	if err == nil && !c.isNew && c.t.AssignTokens {
		got, err = c.confirmAssigned(ctx, on, f, got)
	}
	on.Addresses, on.blocks = c.currentAddresses(*on)
	full := errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrLimit)
	if full && have+len(got) > 0 {
		return nil
	}
	return err
}

// confirmAssigned makes sure that the ENI has the addresses that an answer names. To a token
// that an earlier attempt has used, the cloud repeats its answer of then, and addresses in it may
// have been unassigned since. Those that describes do not show are replaced by others.
func (c *creation) confirmAssigned(ctx context.Context, on *nic, family eni.Family, got []netip.Addr) ([]netip.Addr, error) {
	for w := c.pausesFor(c.t.Times.Settle); ; {
		now, err := c.describeENI(ctx, c.self, on.ID)
		var gone []netip.Addr
		if err == nil && now != nil {
			if gone = minus(got, now.Addresses); len(gone) == 0 {
				return got, nil
			}
		}
		more, ended := w.next(ctx)
		switch {
		case ended != nil:
			return got, ended
		case more:
			continue
		case err != nil || now == nil:
			return got, errorf(cloud.ErrUnknown, "nothing shows what ENI %s got: %v", on.ID, err)
		}
		// With a token of its own the next request is no repetition.
		c.noteDeed(on.ID, gone, nil, unassigned)
		on.Addresses, on.blocks = c.currentAddresses(*now)
		others, err := c.assignCount(ctx, c.self, *on, family, len(gone), func(int, int) string { return c.o.Token() })
		return union(minus(got, gone), others), err
	}
}

// electPrimaryV6 makes the lowest IPv6 address of an attached ENI its primary one and writes it
// into the mark, for clouds that have no primary IPv6 addresses. It comes before the ENI is filled,
// so no pod can have that address.
func (c *creation) electPrimaryV6(ctx context.Context, on *nic) error {
	if !c.t.MarksV6 || !c.hasV6() || on.V6.IsValid() {
		return nil
	}
	six := union(ofFamily(on.raw.Singles, eni.IPv6))
	if len(six) == 0 { // somebody has taken the one that it was made with
		var err error
		if six, err = c.assignFirstV6(ctx, on); err != nil {
			return err
		}
	}
	mark := on.raw.Mark
	mark.V6 = six[0]
	if err := c.repeatThrottled(ctx, func() error { return c.d.Rewrite(ctx, on.ID, mark, c.o.Token()) }); err != nil {
		return err
	}
	on.raw.Mark = mark
	net, err := netOf(c.in, six[0])
	if err != nil {
		return errorf(cloud.ErrUnknown, "ENI %s: %v", on.ID, err)
	}
	on.V6 = net
	on.raw.Singles = minus(on.raw.Singles, []netip.Addr{six[0]})
	on.Addresses = union(on.Addresses, six[1:])
	c.noteSeen(*on, c.clock.Now()) // no describe that runs shows it yet
	return nil
}

// assignFirstV6 assigns an IPv6 address to an ENI that has none. Each attempt has a token of its
// own: if an earlier one has succeeded, describes show its address.
func (c *creation) assignFirstV6(ctx context.Context, on *nic) (six []netip.Addr, err error) {
	err = c.repeatThrottled(ctx, func() error {
		got, err := c.d.Assign(ctx, driver.Assign{On: on.raw, Family: eni.IPv6, Count: driver.Count{Singles: 1}, Token: c.o.Token()})
		six = union(ofFamily(got.Addresses, eni.IPv6))
		return err
	})
	if err == nil && len(six) == 0 {
		err = errorf(cloud.ErrUnknown, "ENI %s gets no IPv6 address", on.ID)
	}
	return six, err
}

// attachAndBind attaches the ENI, unless it is attached, and binds it to the end of its instance.
// Binding is the last request, and is made each time: it fails if a describe has shown an
// attachment that no longer exists.
func (c *creation) attachAndBind(ctx context.Context, on *nic) (*nic, error) {
	known, mine, dead, tried := on.rank() > 0, "", "", c.clock.Now()
	until := c.clock.Now().Add(c.t.Times.Wait)
	for ; c.clock.Now().Before(until); known = false {
		if !known {
			var err error
			if mine, err = c.attachAtFree(ctx, on.ID); err != nil {
				return nil, err
			}
			tried = c.clock.Now()
		}
		now, err := c.awaitState(ctx, on.ID, "attached", func(now *nic) bool {
			there := now != nil && now.attached() && (dead == "" || now.raw.Attachment != dead) && c.isMine(now, mine)
			// An ENI that was in use may have been on its way off: that it is loose is
			// believed when describes have had the time to show an attachment.
			believed := known || c.clock.Now().Sub(tried) >= c.t.Times.Settle
			return there || mine == "" && now != nil && now.rank() == 0 && believed
		})
		if err != nil {
			return nil, err
		}
		if now.attached() {
			err := c.bindAttachment(ctx, now)
			if !errors.Is(err, cloud.ErrNotFound) {
				now.Addresses, now.blocks = c.currentAddresses(*now)
				return now, err
			}
			dead = now.raw.Attachment
		}
		// It is not attached, or on its way off, or a describe shows what was before.
		if err := c.clock.Wait(ctx, c.t.Times.Poll); err != nil {
			return nil, errorf(cloud.ErrUnknown, "given up before ENI %s was attached: %v", on.ID, err)
		}
	}
	return nil, errorf(cloud.ErrUnknown, "ENI %s is not attached after %s", on.ID, c.t.Times.Wait)
}

// isMine tells whether the attachment that is shown is the one that this call has made. If it has
// made none, or the cloud names none, it is any that no call has ended.
func (c *creation) isMine(now *nic, mine string) bool {
	if mine != "" {
		return now.raw.Attachment == mine
	}
	return !c.hasLeft(*now)
}

// bindAttachment makes the cloud delete the ENI with its instance, if it does not by itself.
func (c *creation) bindAttachment(ctx context.Context, on *nic) error {
	if !c.t.Binds {
		return nil
	}
	err := c.repeatThrottled(ctx, func() error { return c.d.Bind(ctx, on.ID, on.raw.Attachment) })
	if err == nil {
		c.noteBound(on.ID, on.raw.Attachment)
	}
	return err
}

// awaitState waits until describes show the ENI as is wants it, and returns it. is gets nil for an
// ENI that is not shown. A describe that is refused for its rate does not end the wait.
func (c *creation) awaitState(ctx context.Context, id, what string, is func(*nic) bool) (*nic, error) {
	w := c.pausesFor(c.t.Times.Wait)
	w.pause = max(w.pause, c.t.Times.Usual*3/4)
	for {
		now, err := c.describeENI(ctx, c.self, id)
		switch {
		case err != nil && !errors.Is(err, cloud.ErrThrottled):
			return nil, halfDone(err)
		case err == nil && is(now):
			return now, nil
		}
		if more, ended := w.next(ctx); ended != nil {
			return nil, errorf(cloud.ErrUnknown, "given up before ENI %s was %s", id, what)
		} else if !more {
			return nil, errorf(cloud.ErrUnknown, "ENI %s is not %s after %s", id, what, c.t.Times.Wait)
		}
	}
}
