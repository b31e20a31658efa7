package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/order"
)

func (o *ordered) follow(ctx context.Context, cached *ipam.State, now time.Duration) (*ipam.State, error) {
	o.restarted = false
	if !o.isTakenIn() {
		o.confirmed = nil
		return cached, nil
	}
	if len(o.confirmed) > 0 {
		err := o.restore(ctx, cached, now)
		// What could not be written stays releasing, and is published again by this tick: the answer says nothing of it then.
		if o.confirmed = nil; err != nil {
			return cached, fmt.Errorf("cancel releases: %w", err)
		}
		if cached, err = o.read(ctx); err != nil {
			return cached, err
		}
	}
	c := order.Adopt(cached, o.head(), o.Boot, o.newest.View)
	c.Reserve = o.withoutNamed(c.Reserve, cached)
	c = c.Due(cached, now)
	c.Reserve = append(c.Reserve, o.nameKept(cached, c.Reserve, now)...)
	node, err := o.linksOf(ctx, &c, now)
	if err != nil {
		return cached, err
	}
	settings := !sameSettings(cached.Settings, o.settings())
	grows := settings || len(c.ENIs)+len(c.Add)+len(c.Found) > 0
	if !grows {
		o.backoffs.clear(of(adopts))
	} else if o.backoffs.active(of(adopts), now) { // what is gone does not wait for that
		c.ENIs, c.Add, c.Found, settings, grows = nil, nil, nil, false, false
	}
	shrinks := len(c.Unreserve)+len(c.Nobodys)+len(c.Release)+len(c.Lost)+len(c.Drop)+len(c.Gone) > 0
	if !grows && !shrinks && len(c.Reserve) == 0 {
		return cached, nil
	}
	a := adopting{changes: c, node: node, settings: settings, grows: grows}
	if err := o.adopt(ctx, a, now); err != nil {
		o.backOff(of(adopts), err, now)
		return cached, fmt.Errorf("take in what the operator tells: %w", err)
	}
	if grows {
		o.backoffs.clear(of(adopts))
	}
	o.tellAdopted(c)
	o.unsynced = o.unsynced || settings || shrinks || findsKept(cached, c.Found)
	if settings || len(c.Gone) > 0 {
		o.gone = cached
	}
	return o.read(ctx)
}

// restore makes withdrawn addresses free again. The kernel comes first, as for every address that may be handed out.
func (o *ordered) restore(ctx context.Context, cached *ipam.State, now time.Duration) error {
	kept := order.Reservations(order.ReservedAmong(o.newest.Status.Reserved, o.confirmed))
	var back []netip.Addr
	apply := func(s *ipam.State) error {
		back = s.CancelRelease(o.confirmed, now)
		s.Reserve(kept, now) // no pod gets it in between
		return nil
	}
	next := cached.Clone()
	if _ = apply(next); len(back) == 0 {
		return nil
	}
	if _, err := o.Kernel.Grow(ctx, next); err != nil {
		return err
	}
	err := o.changeLines(ctx, len(kept) > 0, apply)
	if err == nil {
		o.logAddresses("restore", back, "they are needed again, and the operator has not accepted their release")
	}
	return err
}

// changeLines changes lines of the cache in place, or writes it anew where it may have to be of another version after that.
func (o *ordered) changeLines(ctx context.Context, replace bool, apply func(*ipam.State) error) error {
	if !replace {
		return o.Cache.Update(ctx, apply)
	}
	return o.Cache.Replace(ctx, func(s *ipam.State, err error) (*ipam.State, error) {
		if err == nil {
			err = apply(s)
		}
		return s, err
	})
}

// linksOf returns the links of the ENIs that are new, and leaves out of the changes those that have none yet.
func (o *ordered) linksOf(ctx context.Context, c *order.Changes, now time.Duration) (order.Node, error) {
	node := order.Node{Links: map[string]eni.Interface{}}
	var waiting []string
	if len(c.ENIs) > 0 {
		there, err := o.Kernel.Links(ctx)
		if err != nil {
			return node, err
		}
		c.ENIs = slices.DeleteFunc(slices.Clone(c.ENIs), func(e order.ENI) bool {
			link, ready := there[e.MAC]
			if !ready {
				waiting = append(waiting, fmt.Sprintf("%s (%s)", e.ID, e.MAC))
				c.Add = slices.DeleteFunc(c.Add, func(add order.Added) bool { return add.ENI == e.ID })
				return true
			}
			node.Links[e.ID] = eni.Interface{ID: e.ID, Index: e.Index, Device: link.Device, MTU: link.MTU, V4: e.V4, V6: e.V6}
			return false
		})
	}
	o.links = o.links.await(waiting, now)
	return node, nil
}

// adopting is an adoption that is to be done.
type adopting struct {
	changes  order.Changes
	node     order.Node
	settings bool
	grows    bool
}

// adopt takes changes into the kernel, as far as they bring something, and into the cache.
func (o *ordered) adopt(ctx context.Context, a adopting, now time.Duration) error {
	var seen netconf.Occupancy
	if a.grows {
		var err error
		if seen, err = o.Kernel.Occupancy(ctx); err != nil {
			return err
		}
		// What a pod of ours uses already can only be there after the cache lost it.
		a.node.Owners = seen.Owners(a.fresh())
	}
	// An ADD writes the cache first: what it has set up by now is its own in the cache as it is now.
	cached, err := o.read(ctx)
	if err != nil {
		return err
	}
	var refused error
	apply := func(s *ipam.State) (*ipam.State, error) {
		if a.settings {
			s.Settings = o.settings()
		}
		refused = a.changes.Apply(s, a.node, now)
		if a.grows {
			s.MarkHeld(seen.Held(s), now)
		}
		return s, s.Check()
	}
	next, err := apply(cached.Clone())
	if err != nil {
		return err
	}
	if a.grows {
		if _, err := o.Kernel.Grow(ctx, next); err != nil {
			return err
		}
	}
	err = o.Cache.Replace(ctx, func(s *ipam.State, err error) (*ipam.State, error) {
		if err != nil {
			return nil, err
		}
		return apply(s)
	})
	if err != nil {
		return err
	}
	return refused // all else is done
}

// fresh is the addresses that are new, as a state.
func (a adopting) fresh() *ipam.State {
	var s ipam.State
	for _, add := range a.changes.Add {
		list := slices.Concat(add.Free, add.Releasing)
		for _, r := range add.Reserved {
			list = append(list, r.Addr)
		}
		for _, addr := range list {
			s.Addresses = append(s.Addresses, eni.Address{Addr: addr})
		}
	}
	return &s
}

// tellAdopted logs what changed.
func (o *ordered) tellAdopted(c order.Changes) {
	for _, e := range c.ENIs {
		o.steps++
		o.Log.Info("adopt", "eni", e.ID, "reason", "it is attached to the node")
	}
	for _, id := range c.Gone {
		o.steps++
		o.Log.Info("forget", "eni", id, "reason", "it is not attached to the node any more")
	}
	for _, add := range c.Add {
		o.logAddresses("add", add.Free, "they are assigned")
		o.logReserved("add as reserved", add.Reserved)
		o.logAddresses("add as releasing", add.Releasing, "they go back")
	}
	o.logReserved("reserve", c.Reserve)
	o.logAddresses("withdraw", c.Unreserve, "they are reserved here no more")
	o.logAddresses("withdraw", c.Nobodys, "they go back once they have cooled down: no pod gets them")
	o.logAddresses("hold back", c.Release, "they go back, or may be taken away")
	o.logAddresses("lose", c.Lost, "the cloud does not have them on this node any more")
	o.logAddresses("regain", c.Found, "the cloud shows them again")
	o.logAddresses("forget", c.Drop, "they are not on this node any more")
	o.Events.Repaired("lost", len(c.Lost))
}
