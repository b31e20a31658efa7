package engine

import (
	"context"
	"errors"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// finish does what an ENI lacks before pods can use it.
func (c *creation) finish(ctx context.Context, on *nic) (*nic, error) {
	if on.raw.State == driver.Pending && !(c.t.FillsFirst && c.isFull(on)) {
		now, err := c.await(ctx, on.ID, "made", func(now *nic) bool { return now != nil && now.raw.State != driver.Pending })
		if err != nil {
			return nil, err
		}
		on = now
	}
	if !c.t.FillsFirst {
		joined, err := c.join(ctx, on)
		if err != nil {
			return nil, err
		}
		if err := c.elect(ctx, joined); err != nil {
			return nil, err
		}
		return joined, c.fillAll(ctx, joined)
	}
	if err := c.fillAll(ctx, on); err != nil {
		return nil, err
	}
	return c.join(ctx, on)
}

// isFull tells whether there is nothing to fill.
func (c *creation) isFull(on *nic) bool {
	has, _ := c.truth(*on)
	return len(ofFamily(has, eni.IPv4)) >= c.w.V4 && len(ofFamily(has, eni.IPv6)) >= c.w.V6
}

// fillAll puts the addresses of both families that are missing.
func (c *creation) fillAll(ctx context.Context, on *nic) error {
	if err := c.fill(ctx, on, eni.IPv4, c.w.V4); err != nil {
		return err
	}
	return c.fill(ctx, on, eni.IPv6, c.w.V6)
}

// fill puts the addresses that are missing. Fewer are fine where the subnet has no more;
// with none of a family that pods want the ENI is of no use. The tokens come from the
// intent's, so that what an earlier attempt has put does not come twice.
func (c *creation) fill(ctx context.Context, on *nic, f eni.Family, want int) error {
	on.Addresses, on.blocks = c.truth(*on)
	have := len(ofFamily(on.Addresses, f))
	if want <= have {
		return nil
	}
	got, err := c.assign(ctx, c.self, *on, f, want-have, func(offset, count int) string {
		return derived(c.w.Token, "fill", on.ID, f, have+offset, count)
	})
	if err == nil && !c.isNew && c.t.AssignTokens {
		got, err = c.believe(ctx, on, f, got)
	}
	on.Addresses, on.blocks = c.truth(*on)
	full := errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrLimit)
	if full && have+len(got) > 0 {
		return nil
	}
	return err
}

// believe sees to it that the ENI has the addresses that an answer names. To a token that an
// earlier attempt has used the cloud answers as it did then, and they may have gone since:
// in place of those that describes do not show others are asked for.
func (c *creation) believe(ctx context.Context, on *nic, f eni.Family, got []netip.Addr) ([]netip.Addr, error) {
	for w := c.wait(c.t.Times.Settle); ; {
		now, err := c.one(ctx, c.self, on.ID)
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
			return got, because(cloud.ErrUnknown, "nothing shows what ENI %s got: %v", on.ID, err)
		}
		c.note(on.ID, gone, nil, taken)
		on.Addresses, on.blocks = c.truth(*now)
		others, err := c.assign(ctx, c.self, *on, f, len(gone), func(int, int) string { return c.o.Token() })
		return union(minus(got, gone), others), err
	}
}

// elect makes the lowest IPv6 address of an attached ENI its primary one and writes that
// down, where the cloud does not tell. It comes before any other address, so there is one
// to choose from.
func (c *creation) elect(ctx context.Context, on *nic) error {
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
	if err := c.insist(ctx, func() error { return c.d.Rewrite(ctx, on.ID, mark, c.o.Token()) }); err != nil {
		return err
	}
	on.raw.Mark = mark
	net, err := netOf(c.in, six[0])
	if err != nil {
		return because(cloud.ErrUnknown, "ENI %s: %v", on.ID, err)
	}
	on.V6 = net
	on.raw.Singles = minus(on.raw.Singles, []netip.Addr{six[0]})
	on.Addresses = union(on.Addresses, six[1:])
	c.saw(*on, c.clock.Now()) // no describe that runs shows it yet
	return nil
}

// assignFirstV6 puts an IPv6 address on an ENI that has none. Each attempt asks anew: of what an
// earlier one has put, describes tell.
func (c *creation) assignFirstV6(ctx context.Context, on *nic) (six []netip.Addr, err error) {
	err = c.insist(ctx, func() error {
		got, err := c.d.Assign(ctx, driver.Assign{On: on.raw, Family: eni.IPv6, Count: driver.Count{Singles: 1}, Token: c.o.Token()})
		six = union(ofFamily(got.Addresses, eni.IPv6))
		return err
	})
	if err == nil && len(six) == 0 {
		err = because(cloud.ErrUnknown, "ENI %s gets no IPv6 address", on.ID)
	}
	return six, err
}

// join attaches the ENI, unless it is, and lets it go with the instance. That is said
// last, and each time, since it tells whether the ENI is attached at all: a describe may
// show an attachment that is no more.
func (c *creation) join(ctx context.Context, on *nic) (*nic, error) {
	known, mine, dead, tried := on.rank() > 0, "", "", c.clock.Now()
	until := c.clock.Now().Add(c.t.Times.Wait)
	for ; c.clock.Now().Before(until); known = false {
		if !known {
			var err error
			if mine, err = c.attach(ctx, on.ID); err != nil {
				return nil, err
			}
			tried = c.clock.Now()
		}
		now, err := c.await(ctx, on.ID, "attached", func(now *nic) bool {
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
			err := c.bind(ctx, now)
			if !errors.Is(err, cloud.ErrNotFound) {
				now.Addresses, now.blocks = c.truth(*now)
				return now, err
			}
			dead = now.raw.Attachment
		}
		// It is not attached, or on its way off, or a describe shows what was before.
		if err := c.clock.Wait(ctx, c.t.Times.Poll); err != nil {
			return nil, because(cloud.ErrUnknown, "given up before ENI %s was attached: %v", on.ID, err)
		}
	}
	return nil, because(cloud.ErrUnknown, "ENI %s is not attached after %s", on.ID, c.t.Times.Wait)
}

// isMine tells whether the attachment that is shown is the one that this call made or, where
// it made none or the cloud names none, one that no call has ended.
func (c *creation) isMine(now *nic, mine string) bool {
	if mine != "" {
		return now.raw.Attachment == mine
	}
	return !c.hasLeft(*now)
}

// bind lets the ENI go with its instance, where the cloud does not by itself.
func (c *creation) bind(ctx context.Context, on *nic) error {
	if !c.t.Binds {
		return nil
	}
	err := c.insist(ctx, func() error { return c.d.Bind(ctx, on.ID, on.raw.Attachment) })
	if err == nil {
		c.noteBound(on.ID, on.raw.Attachment)
	}
	return err
}

// await waits until describes show the ENI as it is to be, nil if it is gone. A look that
// the cloud refuses for its rate is no reason to end: the next one comes.
func (c *creation) await(ctx context.Context, id, what string, is func(*nic) bool) (*nic, error) {
	w := c.wait(c.t.Times.Wait)
	w.pause = max(w.pause, c.t.Times.Usual*3/4)
	for {
		now, err := c.one(ctx, c.self, id)
		switch {
		case err != nil && !errors.Is(err, cloud.ErrThrottled):
			return nil, halfDone(err)
		case err == nil && is(now):
			return now, nil
		}
		if more, ended := w.next(ctx); ended != nil {
			return nil, because(cloud.ErrUnknown, "given up before ENI %s was %s", id, what)
		} else if !more {
			return nil, because(cloud.ErrUnknown, "ENI %s is not %s after %s", id, what, c.t.Times.Wait)
		}
	}
}
