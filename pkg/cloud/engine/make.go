package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// find returns the ENI of the token, which it makes if there is none. It looks for one
// unless there surely is none.
func (c *creation) find(ctx context.Context) (made *nic, err error) {
	isNew, before := c.begin(c.w.Token)
	if !isNew {
		if made, err = c.earlier(ctx, before); err != nil || made != nil {
			return made, err
		}
	}
	made, err = c.make(ctx)
	if isNew && (errors.Is(err, cloud.ErrThrottled) || isFinal(err)) {
		c.unbegun(c.w.Token)
	}
	if !isNew && isFinal(err) {
		// An earlier request may have made one that describes don't show yet, and that
		// even is why the cloud has no room for another.
		before, wrong := c.appears(ctx, "")
		if wrong != nil {
			return nil, halfDone(wrong)
		}
		if before != nil {
			return before, nil
		}
		c.unbegun(c.w.Token)
	}
	return made, err
}

// earlier returns what earlier calls have made with the token, if describes show it. What an
// earlier process began they may not show yet: a request of this one may be refused although
// there is an ENI. That nobody may look says nothing of what there is, if an earlier call may
// have made it: that is before. Nor does an answer that can't be right: the ENI is there,
// unless another instance has it.
func (c *creation) earlier(ctx context.Context, before bool) (*nic, error) {
	for {
		asked := c.clock.Now()
		raw, err := c.rawByToken(ctx, c.self, c.w.Token)
		switch {
		case err != nil && before:
			return nil, halfDoneIf(isFinal(err), err)
		case err != nil:
			c.unbegun(c.w.Token)
			return nil, err
		case len(raw) > 0:
			made, err := c.pick(ctx, c.self, raw, asked)
			return made, halfDoneIf(isFinal(err) && !c.isElsewhere(raw), err)
		case !c.wasBegun(c.w.Token) || !c.mayLack(""):
			return nil, nil
		}
		if err := c.grow(ctx, ""); err != nil {
			return nil, halfDone(err)
		}
	}
}

// isElsewhere tells whether another instance has what was made: nothing of it comes here.
func (c *creation) isElsewhere(raw []driver.Interface) bool {
	return !slices.ContainsFunc(raw, func(i driver.Interface) bool { return i.Instance == "" || i.Instance == c.self.Instance })
}

// isFinal tells whether a request was refused for good: asking again does not help.
func isFinal(err error) bool {
	if err == nil {
		return false
	}
	switch cloud.Kind(err) {
	case cloud.ErrLimit, cloud.ErrForbidden, cloud.ErrSubnetFull, cloud.ErrNotFound:
		return true
	}
	return false
}

// make makes the ENI. A cloud that remembers a token whose ENI was undone answers with
// that: it never appears, and then the next try has another token. An ENI that describes
// show late looks the same, so that much time passes before another is made.
func (c *creation) make(ctx context.Context) (*nic, error) {
	home, err := c.findHome(ctx)
	if err != nil {
		return nil, err
	}
	for {
		it, first, err := c.intentOf(c.w.Token)
		if err != nil {
			return nil, err
		}
		id := it.named
		if it.missing.IsZero() { // else it was asked for, and where tokens are forgotten another request makes another one
			raw, err := c.requestWhatThereIs(ctx, home, it)
			reused := driver.Reason(err) == driver.TokenReused
			switch {
			case err != nil && !reused:
				return nil, err
			case err == nil && raw.ID == "":
				return nil, because(cloud.ErrUnknown, "the answer has no ENI")
			case err == nil && raw.MAC != "":
				made, err := c.readAnswer(ctx, raw, it)
				c.isNew = first && err == nil && sameSecond(made.raw.Mark.Asked, it.asked)
				return made, err
			}
			if id, first = raw.ID, first && !reused; err == nil {
				c.keepMark(id, c.mark(it))
			}
		}
		made, wrong := c.appears(ctx, id)
		switch {
		case wrong != nil:
			return nil, halfDone(wrong)
		case made != nil:
			c.isNew = first && sameSecond(made.raw.Mark.Asked, it.asked)
			return made, nil
		case !c.isMissing(c.w.Token, id):
			return nil, because(cloud.ErrUnknown, "the ENI that was made does not show yet")
		case c.isThere(ctx, id):
			return nil, because(cloud.ErrUnknown, "ENI %s was made and somebody has given it another mark since: delete it, and another one is made", id)
		}
		c.again(c.w.Token) // of what the token made before nothing is left
	}
}

// isThere tells whether an ENI that was made still is, whoever it is marked for: in doubt it is.
// Nobody would find it again if another one were made in its place.
func (c *creation) isThere(ctx context.Context, id string) bool {
	if id == "" {
		return false
	}
	raw, err := c.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
	return err != nil || len(raw) > 0
}

// sameSecond tells whether two marks are of one try: some clouds keep seconds.
func sameSecond(a, b time.Time) bool { return a.Unix() == b.Unix() }

// requestWhatThereIs is request, with fewer addresses where the subnet has not as many: what
// there is comes later. A request that may have made the ENI is repeated as it was. A later
// process, which does not know that there were fewer, asks for all with the same token: the
// cloud refuses that as other parameters.
func (c *creation) requestWhatThereIs(ctx context.Context, home home, it intent) (raw driver.Interface, err error) {
	few := it.few
	if !few {
		raw, err = c.request(ctx, home, it, c.w.V4, c.w.V6)
		few = errors.Is(err, cloud.ErrSubnetFull) && c.t.CreateFills && (c.w.V4 > 1 || c.w.V6 > 1)
	}
	if !few {
		return raw, err
	}
	c.fewerFor(c.w.Token)
	return c.request(ctx, home, it, min(c.w.V4, 1), min(c.w.V6, 1))
}

// request makes the call with as many addresses as one call may give.
func (c *creation) request(ctx context.Context, home home, it intent, v4, v6 int) (driver.Interface, error) {
	r := driver.Create{
		Self: c.self, Subnet: c.w.Subnet, Groups: c.o.SecurityGroups, Tags: c.o.Tags, Mark: c.mark(it),
		IPv6: c.hasV6(), Named6: c.limits.V6Block.Size == 0,
		Token: derived(c.w.Token, "create", c.self.Instance, c.w.Subnet, c.w.V4, c.w.V6, it.try), // not of v4 and v6: one ENI for both
	}
	if len(r.Groups) == 0 {
		r.Groups = home.groups
	}
	if c.t.CreateFills {
		r.V4, r.V6 = c.split(eni.IPv4, v4), c.split(eni.IPv6, v6)
	}
	return c.d.Create(ctx, r)
}

// split is how n addresses are asked for in one call: as blocks, or as single ones. What
// of blocks does not come in the same call comes later.
func (c *creation) split(f eni.Family, n int) driver.Count {
	switch size := c.limits.Block(f).Size; {
	case size <= 1 || n < size:
		return driver.Count{Singles: n}
	case f == eni.IPv6:
		return driver.Count{} // EC2 takes no prefix beside the ENI's own address
	default:
		return driver.Count{Blocks: n / size}
	}
}

func (c *creation) mark(it intent) driver.Mark {
	return driver.Mark{Instance: c.self.Instance, Token: c.w.Token, Asked: it.asked, Cluster: c.o.Cluster, Index: it.index}
}

// derived is the token of a step of what an intent's token is for: the same in each
// attempt, also of a later process.
func derived(token string, step ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", token, fmt.Sprintln(step...)))
	return hex.EncodeToString(sum[:])
}

// readAnswer takes the answer for what it is: of an ENI that can't be right nothing is left.
func (c *creation) readAnswer(ctx context.Context, raw driver.Interface, it intent) (*nic, error) {
	if raw.Mark.Token == "" {
		raw.Mark = c.mark(it) // some show it later
	}
	made, err := c.pick(ctx, c.self, []driver.Interface{raw}, c.clock.Now())
	if err == nil && made.Subnet != c.w.Subnet {
		err = because(cloud.ErrForbidden, "it lies in subnet %s", made.Subnet)
	}
	if err != nil && !errors.Is(err, cloud.ErrForbidden) {
		return nil, halfDone(err)
	}
	if err != nil {
		return nil, c.undo(ctx, raw.ID, because(cloud.ErrForbidden, "%s made an ENI that can't be right: %s", c.t.Name, detail(err)))
	}
	return made, nil
}

// appears waits until the ENI is shown with its token, by its ID or, where that is not
// known, by its mark. It returns nil for one that never is.
func (c *creation) appears(ctx context.Context, id string) (*nic, error) {
	for w := c.wait(c.t.Times.Settle); ; {
		made, err := c.byIDOrToken(ctx, id)
		if made != nil || err != nil && !passes(err) {
			return made, err
		}
		if more, ended := w.next(ctx); ended != nil {
			return nil, ended
		} else if !more {
			return nil, err
		}
	}
}

// byIDOrToken returns what describes show of the ENI, by its token where its ID is not known.
func (c *creation) byIDOrToken(ctx context.Context, id string) (*nic, error) {
	if id == "" {
		return c.byToken(ctx, c.self, c.w.Token)
	}
	made, err := c.one(ctx, c.self, id)
	if err == nil && made != nil && made.Token != c.w.Token {
		return nil, because(cloud.ErrUnknown, "the ENI that was made is not ours")
	}
	return made, err
}
