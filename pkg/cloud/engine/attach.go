package engine

import (
	"context"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// attach begins to attach the ENI at the lowest device index that is free, and returns
// the ID of the attachment, if it was this call that made it. Where the cloud refuses the
// index that is free as far as is known, describes tell; where they lag, the next is
// tried.
func (c *creation) attach(ctx context.Context, id string) (attachment string, err error) {
	if c.t.NoIndex {
		return c.attachAt(ctx, id, place{})
	}
	if at, ok := c.reserve(id); ok {
		attachment, err := c.attachAt(ctx, id, at)
		if driver.Reason(err) != driver.IndexTaken {
			c.settlePlace(id, at, err)
			return attachment, err
		}
		c.occupy(at)
	}
	places, err := c.places(ctx, id)
	if err != nil {
		return "", halfDone(err)
	}
	for _, at := range places {
		attachment, err := c.attachAt(ctx, id, at)
		if driver.Reason(err) != driver.IndexTaken {
			c.settlePlace(id, at, err)
			return attachment, err
		}
	}
	return "", because(cloud.ErrLimit, "the instance has an ENI at each of its device indexes")
}

// attachAt makes the call. What was just made a cloud may not find everywhere yet, and
// what it refuses to attach may be attached already, by a call whose answer was lost:
// both show, and a refusal is believed when it has lasted.
func (c *creation) attachAt(ctx context.Context, id string, at place) (attachment string, err error) {
	for w := c.wait(c.t.Times.Settle); ; {
		err = c.insist(ctx, func() (err error) {
			attachment, err = c.d.Attach(ctx, driver.Attach{ID: id, Instance: c.self.Instance, Index: at.index, Card: at.card, Token: c.o.Token()})
			return err
		})
		c.joined = c.joined || err == nil
		switch driver.Reason(err) {
		case driver.InUse:
			return "", nil // as will show
		case driver.NoSuchInterface, driver.Busy:
		default:
			return attachment, err
		}
		if more, ended := w.next(ctx); ended != nil {
			return "", ended
		} else if !more {
			return "", err
		}
		now, wrong := c.one(ctx, c.self, id)
		if wrong == nil && now != nil && (now.raw.State == driver.Attached || now.raw.State == driver.Attaching) {
			return "", nil
		}
	}
}

// allPlaces returns the instance's places for ENIs, those of the first network card first, at index
// 0 of which the primary ENI is. On the others index 0 comes last: AWS would have EFA-only
// interfaces there (docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html), and
// it is the one index of a card for one ENI (github.com/aws/aws-parallelcluster/pull/6930).
// Where there is one card, or none is known, there are as many as the configuration names.
func (n *Node) allPlaces() (all []place) {
	n.mu.Lock()
	defer n.mu.Unlock()
	cards := n.shape.Cards
	if len(cards) < 2 {
		cards = []int{n.most()}
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

// reserve takes the lowest place that is free as far as is known, if that is recent, so
// that no other call of this process tries the same.
func (n *Node) reserve(id string) (place, bool) {
	all := n.allPlaces()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !isRecent(n.memory.looked, n.clock.Now()) {
		return place{}, false
	}
	for _, at := range all {
		by, taken := n.memory.taken[at]
		other, going := n.memory.going[at]
		if (!taken || by == id) && (!going || other == id) {
			n.memory.going[at] = id
			return at, true
		}
	}
	return place{}, false
}

// settlePlace notes what became of an attempt: a place stays taken unless the cloud has
// surely refused.
func (n *Node) settlePlace(id string, at place, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory.going, at)
	if err == nil || cloud.Kind(err) == cloud.ErrUnknown {
		n.memory.taken[at] = id
	} else if n.memory.taken[at] == id {
		delete(n.memory.taken, at)
	}
}

// occupy notes that an ENI nobody has shown is at the place.
func (n *Node) occupy(at place) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory.going, at)
	n.memory.taken[at] = "?"
}

// places are those to try: the ones that are free, then the others, for describes may
// show what has left.
func (c *creation) places(ctx context.Context, id string) ([]place, error) {
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
