package engine

import (
	"context"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// attachAtFree begins to attach the ENI at the lowest free device index, and returns the ID of
// the attachment if this call has made it.
func (c *creation) attachAtFree(ctx context.Context, id string) (attachment string, err error) {
	if c.t.NoIndex {
		return c.attachAt(ctx, id, place{})
	}
	if at, ok := c.reservePlace(id); ok {
		attachment, err := c.attachAt(ctx, id, at)
		if driver.Reason(err) != cloud.IndexTaken {
			c.notePlaceOutcome(id, at, err)
			return attachment, err
		}
		c.noteOccupied(at)
	}
	// The memory was too old, or wrong: somebody else has attached an ENI there. Describes may lag
	// too, so each index that the cloud refuses is followed by the next.
	places, err := c.placesToTry(ctx, id)
	if err != nil {
		return "", halfDone(err)
	}
	for _, at := range places {
		attachment, err := c.attachAt(ctx, id, at)
		if driver.Reason(err) != cloud.IndexTaken {
			c.notePlaceOutcome(id, at, err)
			return attachment, err
		}
	}
	return "", errorf(cloud.ErrLimit, "the instance has an ENI at each of its device indexes")
}

// attachAt makes the request. Not every server of a cloud may know a new ENI yet, and an ENI
// that the cloud refuses to attach may be attached already, by a call whose answer was lost. Both
// show within the consistency window, so a refusal is final only after that.
func (c *creation) attachAt(ctx context.Context, id string, at place) (attachment string, err error) {
	for retry := c.pausesFor(c.t.Times.Settle); ; {
		err = c.repeatThrottled(ctx, func() (err error) {
			attachment, err = c.d.Attach(ctx, driver.Attach{ID: id, Instance: c.self.Instance, Index: at.index, Card: at.card, Token: c.o.Token()})
			return err
		})
		c.joined = c.joined || err == nil
		switch driver.Reason(err) {
		case cloud.InUse:
			return "", nil // as will show
		case cloud.NoSuchInterface, cloud.Busy:
		default:
			return attachment, err
		}
		if more, ended := retry.next(ctx); ended != nil {
			return "", ended
		} else if !more {
			return "", err
		}
		now, wrong := c.describeENI(ctx, c.self, id)
		if wrong == nil && now != nil && (now.raw.State == driver.Attached || now.raw.State == driver.Attaching) {
			return "", nil
		}
	}
}

// allPlaces returns the instance's places for ENIs, first those of the first network card, whose
// index 0 the primary ENI has. On further cards index 0 comes last: AWS recommends it for
// EFA-only interfaces (docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html), but
// a card for one ENI has no other (github.com/aws/aws-parallelcluster/pull/6930).
func (n *Node) allPlaces() (all []place) {
	n.mu.Lock()
	defer n.mu.Unlock()
	cards := n.shape.Cards
	if len(cards) < 2 {
		cards = []int{n.mostENIs()}
	}
	for card, enis := range cards {
		for index := 1; index < enis; index++ {
			all = append(all, place{card, index})
		}
		if card > 0 && enis > 0 {
			all = append(all, place{card, 0})
		}
	}
	return all[:min(len(all), eni.MaxIndex)]
}

// reservePlace returns the lowest place that is free as far as is known, and keeps it from
// other calls of this process. It returns false if what is known is not recent, or no place is free.
func (n *Node) reservePlace(id string) (place, bool) {
	all := n.allPlaces()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !isRecent(n.memory.looked, n.clock.Now()) {
		return place{}, false
	}
	for _, at := range all {
		by, taken := n.memory.occupied[at]
		other, going := n.memory.attaching[at]
		if (!taken || by == id) && (!going || other == id) {
			n.memory.attaching[at] = id
			return at, true
		}
	}
	return place{}, false
}

// notePlaceOutcome notes what became of an attempt. The place counts as free again only if the
// cloud has surely refused.
func (n *Node) notePlaceOutcome(id string, at place, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory.attaching, at)
	if err == nil || cloud.Kind(err) == cloud.ErrUnknown {
		n.memory.occupied[at] = id
	} else if n.memory.occupied[at] == id {
		delete(n.memory.occupied, at)
	}
}

// noteOccupied notes that the place has an ENI that no describe has shown.
func (n *Node) noteOccupied(at place) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory.attaching, at)
	n.memory.occupied[at] = "?"
}

// placesToTry returns all places in the order to try them: the free ones, then the others, where
// a describe that lags may show an ENI that has left.
func (c *creation) placesToTry(ctx context.Context, id string) ([]place, error) {
	raw, err := c.d.Interfaces(ctx, driver.Filter{Attached: c.self})
	if err != nil {
		return nil, err
	}
	var free, rest []place
	for _, at := range c.allPlaces() {
		taken := slices.ContainsFunc(raw, func(i driver.Interface) bool {
			return i.ID != id && i.Index >= 0 && place{i.Card, i.Index} == at
		})
		if taken {
			rest = append(rest, at)
		} else {
			free = append(free, at)
		}
	}
	return append(free, rest...), nil
}
