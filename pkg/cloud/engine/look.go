package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// nic is an ENI of the node: what the cloud says of it and what that means.
type nic struct {
	cloud.Interface
	raw driver.Interface
	// blocks are the delegated prefixes that Addresses come from, in part.
	blocks []netip.Prefix
	read   time.Time // when the cloud was asked: a later call may be missing, however late the answer came
}

// attached tells whether it is at the instance, and not on its way.
func (n nic) attached() bool { return n.raw.State == driver.Attached }

// rank is how far an ENI has come on its way to the node.
func (n nic) rank() int {
	switch n.raw.State {
	case driver.Attached:
		return 2
	case driver.Attaching, driver.Detaching:
		return 1
	}
	return 0
}

// Interfaces implements cloud.Cloud. ENIs that are attached are asked for by the
// instance. Those of the node that are not have only their mark, which takes a request
// of its own: it is made where there may be any, and now and then.
func (n *Node) Interfaces(ctx context.Context) (list []cloud.Interface, err error) {
	defer nameError(&err, "Interfaces", "")
	if _, err := n.look(ctx); err != nil {
		return nil, err
	}
	return n.Known(), nil
}

// Quarantined implements cloud.Quarantiner.
func (n *Node) Quarantined() []cloud.Quarantined {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.quarantined)
}

// look describes the node's ENIs and remembers them.
func (n *Node) look(ctx context.Context) (view, error) {
	self, err := n.whoami(ctx)
	if err != nil {
		return view{}, err
	}
	began := n.clock.Now()
	raw, all, err := n.show(ctx, self)
	if err != nil {
		return view{}, err
	}
	return n.takeIn(ctx, self, raw, all, began)
}

// takeIn makes of what describes that began then have shown the node's view, and remembers
// it. all: ENIs that are attached nowhere are among it.
func (n *Node) takeIn(ctx context.Context, self driver.Self, raw []driver.Interface, all bool, began time.Time) (view, error) {
	v, err := n.understand(ctx, self, raw, began)
	if err != nil {
		return view{}, err
	}
	n.report(v.out)
	if err := v.hasPrimary(self, n.t.Name); err != nil {
		return view{}, err
	}
	n.settleIn(self, v)
	n.remember(began, all, v)
	if all {
		n.forgetGone(raw)
	}
	return v, nil
}

// show describes the ENIs that are attached to the instance and, where that is needed,
// all that were made for it.
func (n *Node) show(ctx context.Context, self driver.Self) (raw []driver.Interface, all bool, err error) {
	var made []driver.Interface
	if all = n.wantsAll() && !n.t.OneNIC; all {
		if made, err = n.d.Interfaces(ctx, driver.Filter{Made: self.Instance}); err != nil {
			return nil, false, err
		}
	}
	var here []driver.Interface
	attached := func() (err error) {
		here, err = n.d.Interfaces(ctx, driver.Filter{Attached: self})
		return err
	}
	if all {
		err = n.insist(ctx, attached) // what was asked for already would have to be asked for again
	} else {
		err = attached()
	}
	if err != nil {
		return nil, false, err
	}
	if !all && n.misses(here) {
		all = true
		if made, err = n.d.Interfaces(ctx, driver.Filter{Made: self.Instance}); err != nil {
			return nil, false, err
		}
	}
	if lost := n.lost(made, here); all && len(lost) > 0 {
		found, err := n.d.Interfaces(ctx, driver.Filter{IDs: lost})
		if err != nil {
			return nil, false, err
		}
		made = append(made, found...)
	}
	return merge(made, here), all, nil
}

// lost returns the ENIs that were made for the node and that neither answer shows, sorted.
// Somebody has deleted them, or changed what the cloud finds them by: only their IDs tell. One
// that was just made shows a little later.
func (n *Node) lost(made, here []driver.Interface) (ids []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.memory.tokens {
		is := func(i driver.Interface) bool { return i.ID == id }
		r, isReady := n.memory.ready[id]
		fresh := isReady && !r.at.Add(n.t.Times.Settle).Before(n.clock.Now())
		_, leaves := n.memory.left[id] // by a call: nobody need look for it
		if !fresh && !leaves && !slices.ContainsFunc(made, is) && !slices.ContainsFunc(here, is) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// misses tells whether an ENI that was made for the node is not attached to it, as far
// as this answer tells: then only its mark can tell what became of it.
func (n *Node) misses(here []driver.Interface) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.memory.tokens {
		if !slices.ContainsFunc(here, func(i driver.Interface) bool { return i.ID == id && i.State == driver.Attached }) {
			return true
		}
	}
	return false
}

// merge joins the ENIs that were made for an instance with those that are attached to
// it: of one that both show the latter counts, and what only the former shows can't have
// the place of another.
func merge(made, here []driver.Interface) []driver.Interface {
	all := slices.Clone(here)
	taken := map[place]bool{}
	for _, i := range here {
		if i.Index >= 0 {
			taken[place{i.Card, i.Index}] = true
		}
	}
	for _, i := range made {
		if i.ID == "" || slices.ContainsFunc(here, func(h driver.Interface) bool { return h.ID == i.ID }) {
			continue
		}
		if i.State != driver.Loose && i.Index >= 0 && taken[place{i.Card, i.Index}] {
			i.State, i.Index, i.Instance, i.Attachment = driver.Loose, -1, "", "" // it has left in between
		}
		all = append(all, i)
	}
	return all
}

// report keeps what was left out and logs what is new of it.
func (n *Node) report(out []cloud.Quarantined) {
	slices.SortFunc(out, func(a, b cloud.Quarantined) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Why, b.Why)) })
	out = slices.Compact(out)
	n.mu.Lock()
	before := n.quarantined
	n.quarantined = out
	n.mu.Unlock()
	for _, q := range out {
		if !slices.Contains(before, q) {
			n.log.Warn("an ENI is left out: what the cloud tells of it can't be right", "eni", cmp.Or(q.ID, "without ID"), "why", q.Why)
		}
	}
}

// one describes an ENI, if it is the node's: attached to it, or made for it.
func (n *Node) one(ctx context.Context, self driver.Self, id string) (*nic, error) {
	asked := n.clock.Now()
	raw, err := n.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
	if err != nil {
		return nil, err
	}
	raw = n.withMarks(raw)
	n.goesAway(self, asked, raw...)
	raw = slices.DeleteFunc(raw, func(i driver.Interface) bool {
		return !i.Mark.Ours(self.Instance) && i.Instance != self.Instance
	})
	if len(raw) == 0 {
		return nil, nil
	}
	i, err := n.pick(ctx, self, raw, asked)
	if err == nil {
		n.saw(*i, asked)
	}
	return i, err
}

// oneAsSeen is one, but for describes that show what was before an ENI was attached. One that
// another instance has by now is not found.
func (n *Node) oneAsSeen(ctx context.Context, self driver.Self, id string) (*nic, error) {
	i, err := n.one(ctx, self, id)
	if other, is := n.isAway(id); is && !passes(err) {
		return nil, because(cloud.ErrNotFound, "instance %s has it by now", other)
	}
	if err == nil && (i == nil || i.Index < 0) {
		if before, ok := n.lastHere(id, forgetAfter); ok {
			return &before, nil
		}
	}
	return i, err
}

// byToken returns the ENI of a token, if describes show it.
func (n *Node) byToken(ctx context.Context, self driver.Self, token string) (*nic, error) {
	asked := n.clock.Now()
	raw, err := n.rawByToken(ctx, self, token)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	return n.pick(ctx, self, raw, asked)
}

func (n *Node) rawByToken(ctx context.Context, self driver.Self, token string) ([]driver.Interface, error) {
	return n.d.Interfaces(ctx, driver.Filter{Made: self.Instance, Token: token})
}

// pick reads the ENI of an answer to what was asked then, which has one at least. Where a cloud
// forgets tokens there may be several of one token: the one that has come furthest counts.
func (n *Node) pick(ctx context.Context, self driver.Self, raw []driver.Interface, asked time.Time) (*nic, error) {
	v, err := n.understand(ctx, self, raw, asked)
	switch {
	case err != nil:
		return nil, err
	case len(v.nics) > 0:
		best := slices.MinFunc(v.nics, func(a, b nic) int {
			return cmp.Or(cmp.Compare(b.rank(), a.rank()), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
		})
		return &best, nil
	case len(v.out) > 0:
		return nil, because(cloud.ErrForbidden, "ENI %s: %s", v.out[0].ID, v.out[0].Why)
	}
	return nil, &driver.Error{Kind: cloud.ErrForbidden, Why: driver.NotForPods,
		Detail: fmt.Sprintf("ENI %s is not for pods: %s", raw[0].ID, raw[0].Unmanaged)}
}
