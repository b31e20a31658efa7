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

// findOrMake returns the ENI of the token, and makes it if there is none. It describes first,
// unless there surely is none.
func (c *creation) findOrMake(ctx context.Context) (made *nic, err error) {
	isNew, before := c.beginIntent(c.asked.Token)
	if !isNew {
		if made, err = c.findEarlier(ctx, before); err != nil || made != nil {
			return made, err
		}
	}
	made, err = c.makeENI(ctx)
	if isNew && (errors.Is(err, cloud.ErrThrottled) || isFinal(err)) {
		c.forgetBegun(c.asked.Token)
	}
	if !isNew && isFinal(err) {
		// An earlier request may have made one that describes don't show yet, and that
		// even is why the cloud has no room for another.
		before, wrong := c.awaitShown(ctx, "")
		if wrong != nil {
			return nil, halfDone(wrong)
		}
		if before != nil {
			return before, nil
		}
		c.forgetBegun(c.asked.Token)
	}
	return made, err
}

// findEarlier returns what earlier calls have made with the token, nil if describes show nothing.
// before: an earlier call may have made an ENI. Then a describe that is refused, or an answer that
// can't be right, does not prove that there is none, so the error is ErrUnknown.
func (c *creation) findEarlier(ctx context.Context, before bool) (*nic, error) {
	for {
		asked := c.clock.Now()
		raw, err := c.rawByToken(ctx, c.self, c.asked.Token)
		switch {
		case err != nil && before:
			return nil, halfDoneIf(isFinal(err), err)
		case err != nil:
			c.forgetBegun(c.asked.Token)
			return nil, err
		case len(raw) > 0:
			made, err := c.pickENI(ctx, c.self, raw, asked)
			return made, halfDoneIf(isFinal(err) && !c.isElsewhere(raw), err)
		case !c.wasBegun(c.asked.Token) || !c.mayLack(""):
			return nil, nil
		}
		// Describes may not show yet what an earlier process has made. Another request could then
		// be refused, for want of room, and the refusal would look final.
		if err := c.waitForEarlierProcess(ctx, ""); err != nil {
			return nil, halfDone(err)
		}
	}
}

// isElsewhere tells whether other instances have all that was made with the token.
func (c *creation) isElsewhere(raw []driver.Interface) bool {
	return !slices.ContainsFunc(raw, func(i driver.Interface) bool { return i.Instance == "" || i.Instance == c.self.Instance })
}

// isFinal tells whether a request was refused for good: asking again does not help.
func isFinal(err error) bool {
	return err != nil && cloud.MeaningOf(err).Again == cloud.Final
}

// makeENI makes the ENI. A cloud that remembers a token whose ENI was undone answers with that
// ENI, which no describe shows: then the next try has another token. A new ENI that describes show
// late looks the same, so the next try comes only after two minutes (isMissing).
func (c *creation) makeENI(ctx context.Context) (*nic, error) {
	home, err := c.findHome(ctx)
	if err != nil {
		return nil, err
	}
	for {
		it, first, err := c.intentOf(c.asked.Token)
		if err != nil {
			return nil, err
		}
		id := it.named
		if it.missing.IsZero() { // else it was requested before, and a cloud that has forgotten the token would make another
			raw, err := c.requestWhatThereIs(ctx, home, it)
			reused := driver.Reason(err) == cloud.TokenReused
			switch {
			case err != nil && !reused:
				return nil, err
			case err == nil && raw.ID == "":
				return nil, errorf(cloud.ErrUnknown, "the answer has no ENI")
			case err == nil && raw.MAC != "":
				made, err := c.readAnswer(ctx, raw, it)
				c.isNew = first && err == nil && sameSecond(made.raw.Mark.Asked, it.asked)
				return made, err
			}
			if id, first = raw.ID, first && !reused; err == nil {
				c.keepMark(id, c.newMark(it))
			}
		}
		made, wrong := c.awaitShown(ctx, id)
		switch {
		case wrong != nil:
			return nil, halfDone(wrong)
		case made != nil:
			c.isNew = first && sameSecond(made.raw.Mark.Asked, it.asked)
			return made, nil
		case !c.isMissing(c.asked.Token, id):
			return nil, errorf(cloud.ErrUnknown, "the ENI that was made does not show yet")
		case c.isThere(ctx, id):
			return nil, errorf(cloud.ErrUnknown, "ENI %s was made and somebody has given it another mark since: delete it, and another one is made", id)
		}
		c.beginNextTry(c.asked.Token) // of what the token made before nothing is left
	}
}

// isThere tells whether an ENI still exists, whatever its mark says now. In doubt it does: if
// another one were made in its place, nobody would find it again.
func (c *creation) isThere(ctx context.Context, id string) bool {
	if id == "" {
		return false
	}
	raw, err := c.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
	return err != nil || len(raw) > 0
}

// sameSecond tells whether two marks are of the same try. Some clouds only store seconds.
func sameSecond(a, b time.Time) bool { return a.Unix() == b.Unix() }

// requestWhatThereIs is requestCreate, with one address of each family if the subnet has not as
// many as were asked for; fillFamily adds the others that there are. A request that may have made the
// ENI is repeated as it was. A later process does not know that it asked for fewer: it asks for
// all with the same token, and the cloud refuses that as other parameters (TokenReused).
func (c *creation) requestWhatThereIs(ctx context.Context, home home, it intent) (raw driver.Interface, err error) {
	few := it.few
	if !few {
		raw, err = c.requestCreate(ctx, home, it, c.asked.V4, c.asked.V6)
		few = errors.Is(err, cloud.ErrSubnetFull) && c.t.CreateFills && (c.asked.V4 > 1 || c.asked.V6 > 1)
	}
	if !few {
		return raw, err
	}
	c.noteFewer(c.asked.Token)
	return c.requestCreate(ctx, home, it, min(c.asked.V4, 1), min(c.asked.V6, 1))
}

// requestCreate makes the request, with as many of the addresses as one request can hold.
func (c *creation) requestCreate(ctx context.Context, home home, it intent, v4, v6 int) (driver.Interface, error) {
	request := driver.Create{
		Self: c.self, Subnet: c.asked.Subnet, Groups: c.o.SecurityGroups, Tags: c.o.Tags, Mark: c.newMark(it),
		IPv6: c.hasV6(), Named6: c.limits.V6Block.Size == 0,
		Token: derivedToken(c.asked.Token, "create", c.self.Instance, c.asked.Subnet, c.asked.V4, c.asked.V6, it.try), // not of v4 and v6: one ENI for both
	}
	if len(request.Groups) == 0 {
		request.Groups = home.groups
	}
	if c.t.CreateFills {
		request.V4, request.V6 = c.splitCount(eni.IPv4, v4), c.splitCount(eni.IPv6, v6)
	}
	return c.d.Create(ctx, request)
}

// splitCount returns how to ask for n addresses when the ENI is made: as blocks, or as single ones.
// Addresses that do not fill a block are assigned later.
func (c *creation) splitCount(f eni.Family, n int) driver.Count {
	switch size := c.limits.Block(f).Size; {
	case size <= 1 || n < size:
		return driver.Count{Singles: n}
	case f == eni.IPv6:
		return driver.Count{} // EC2 takes no prefix beside the ENI's own address
	default:
		return driver.Count{Blocks: n / size}
	}
}

func (c *creation) newMark(it intent) driver.Mark {
	return driver.Mark{Instance: c.self.Instance, Token: c.asked.Token, Asked: it.asked, Cluster: c.o.Cluster, Index: it.index}
}

// derivedToken makes the request token of a step of an intent. It is the same in each attempt,
// also of a later process.
func derivedToken(token string, step ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", token, fmt.Sprintln(step...)))
	return hex.EncodeToString(sum[:])
}

// readAnswer reads the ENI in the answer to a creation. One that can't be right is undone.
func (c *creation) readAnswer(ctx context.Context, raw driver.Interface, it intent) (*nic, error) {
	if raw.Mark.Token == "" {
		raw.Mark = c.newMark(it) // some show it later
	}
	made, err := c.pickENI(ctx, c.self, []driver.Interface{raw}, c.clock.Now())
	if err == nil && made.Subnet != c.asked.Subnet {
		err = errorf(cloud.ErrForbidden, "it lies in subnet %s", made.Subnet)
	}
	if err != nil && !errors.Is(err, cloud.ErrForbidden) {
		return nil, halfDone(err)
	}
	if err != nil {
		return nil, c.undo(ctx, raw.ID, errorf(cloud.ErrForbidden, "%s made an ENI that can't be right: %s", c.t.Name, detailOf(err)))
	}
	return made, nil
}

// awaitShown waits until describes show the ENI with its token, at most for the consistency
// window. id is "" if it is not known. It returns nil for an ENI that is not shown.
func (c *creation) awaitShown(ctx context.Context, id string) (*nic, error) {
	for w := c.pausesFor(c.t.Times.Settle); ; {
		made, err := c.describeByIDOrToken(ctx, id)
		if made != nil || err != nil && !mayPass(err) {
			return made, err
		}
		if more, ended := w.next(ctx); ended != nil {
			return nil, ended
		} else if !more {
			return nil, err
		}
	}
}

// describeByIDOrToken returns what a describe shows of the ENI, by its token if its ID is not known.
func (c *creation) describeByIDOrToken(ctx context.Context, id string) (*nic, error) {
	if id == "" {
		return c.describeByToken(ctx, c.self, c.asked.Token)
	}
	made, err := c.describeENI(ctx, c.self, id)
	if err == nil && made != nil && made.Token != c.asked.Token {
		return nil, errorf(cloud.ErrUnknown, "the ENI that was made has another mark")
	}
	return made, err
}
