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

// attached tells whether it is at an instance, and not on its way to or from it.
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

// Interfaces implements cloud.Cloud. Attached ENIs are described by their instance. Those of the
// node that are attached nowhere are found only by their mark, with a second request. It is made
// when there may be any, and otherwise now and then.
func (n *Node) Interfaces(ctx context.Context) (list []cloud.Interface, err error) {
	defer nameError(&err, "Interfaces", "")
	if _, err := n.describeENIs(ctx); err != nil {
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

// describeENIs describes the node's ENIs and remembers what it is shown.
func (n *Node) describeENIs(ctx context.Context) (view, error) {
	self, err := n.findSelf(ctx)
	if err != nil {
		return view{}, err
	}
	began := n.clock.Now()
	raw, all, err := n.requestENIs(ctx, self)
	if err != nil {
		return view{}, err
	}
	return n.acceptView(ctx, self, raw, all, began)
}

// acceptView makes a view of what describes have shown, and remembers it. began is when the first
// of them was requested; all tells whether they include ENIs that are attached nowhere.
func (n *Node) acceptView(ctx context.Context, self driver.Self, raw []driver.Interface, all bool, began time.Time) (view, error) {
	seen, err := n.makeView(ctx, self, raw, began)
	if err != nil {
		return view{}, err
	}
	n.reportLeftOut(seen.out)
	if err := seen.hasPrimary(self, n.t.Name); err != nil {
		return view{}, err
	}
	n.rememberHome(self, seen)
	n.rememberView(began, all, seen)
	if all {
		n.forgetGone(raw)
	}
	return seen, nil
}

// requestENIs describes the ENIs that are attached to the instance and, if that is needed, all
// that were made for it.
func (n *Node) requestENIs(ctx context.Context, self driver.Self) (raw []driver.Interface, all bool, err error) {
	var made []driver.Interface
	if all = n.wantsUnattached() && !n.t.OneNIC; all {
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
		err = n.repeatThrottled(ctx, attached) // giving up would waste the request before
	} else {
		err = attached()
	}
	if err != nil {
		return nil, false, err
	}
	if !all && n.lacksAttached(here) {
		all = true
		if made, err = n.d.Interfaces(ctx, driver.Filter{Made: self.Instance}); err != nil {
			return nil, false, err
		}
	}
	if lost := n.missingIDs(made, here); all && len(lost) > 0 {
		found, err := n.d.Interfaces(ctx, driver.Filter{IDs: lost})
		if err != nil {
			return nil, false, err
		}
		made = append(made, found...)
	}
	return mergeENIs(made, here), all, nil
}

// missingIDs returns the IDs, sorted, of the ENIs made for the node that neither answer shows.
// Somebody has deleted them, or changed the name or tags by which the cloud finds them: a describe
// by ID tells which. It leaves out ENIs that were just made, which may show a little later.
func (n *Node) missingIDs(made, here []driver.Interface) (ids []string) {
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

// lacksAttached tells whether an ENI made for the node is not attached to it by this answer. Then
// only a request by marks can tell what became of it.
func (n *Node) lacksAttached(here []driver.Interface) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.memory.tokens {
		if !slices.ContainsFunc(here, func(i driver.Interface) bool { return i.ID == id && i.State == driver.Attached }) {
			return true
		}
	}
	return false
}

// mergeENIs joins the answers about ENIs made for an instance and about those attached to it. The
// latter counts for an ENI that is in both. One that is only in the former is not at an index
// that another ENI has by the latter.
func mergeENIs(made, here []driver.Interface) []driver.Interface {
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
			i.State, i.Index, i.Instance, i.Attachment = driver.Loose, -1, "", "" // it was detached between the two requests
		}
		all = append(all, i)
	}
	return all
}

// reportLeftOut keeps what was left out, for Quarantined, and logs what was not left out before.
func (n *Node) reportLeftOut(out []cloud.Quarantined) {
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

// describeENI describes one ENI. It returns nil unless it is attached to the node or made for it.
func (n *Node) describeENI(ctx context.Context, self driver.Self, id string) (*nic, error) {
	asked := n.clock.Now()
	raw, err := n.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
	if err != nil {
		return nil, err
	}
	raw = n.withMarks(raw)
	n.noteAway(self, asked, raw...)
	// An ID may be of any ENI in the account: what callers ask for may be of another node by now.
	raw = slices.DeleteFunc(raw, func(i driver.Interface) bool {
		return !i.Mark.Ours(self.Instance) && i.Instance != self.Instance
	})
	if len(raw) == 0 {
		return nil, nil
	}
	i, err := n.pickENI(ctx, self, raw, asked)
	if err == nil {
		n.noteSeen(*i, asked)
	}
	return i, err
}

// describeENIOrLast is describeENI, but an ENI that was shown attached a short while ago counts as
// attached if the describe does not show it so: that may be older. ErrNotFound: another instance
// has the ENI now.
func (n *Node) describeENIOrLast(ctx context.Context, self driver.Self, id string) (*nic, error) {
	i, err := n.describeENI(ctx, self, id)
	if other, is := n.isAway(id); is && !mayPass(err) {
		return nil, errorf(cloud.ErrNotFound, "instance %s has it by now", other)
	}
	if err == nil && (i == nil || i.Index < 0) {
		if before, ok := n.lastHere(id, forgetAfter); ok {
			return &before, nil
		}
	}
	return i, err
}

// describeByToken returns the ENI of a token, nil if describes show none.
func (n *Node) describeByToken(ctx context.Context, self driver.Self, token string) (*nic, error) {
	asked := n.clock.Now()
	raw, err := n.rawByToken(ctx, self, token)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	return n.pickENI(ctx, self, raw, asked)
}

func (n *Node) rawByToken(ctx context.Context, self driver.Self, token string) ([]driver.Interface, error) {
	return n.d.Interfaces(ctx, driver.Filter{Made: self.Instance, Token: token})
}

// pickENI reads the ENI of an answer that has at least one. A cloud that forgets tokens may have
// made several with one token: the one that is closest to being attached counts.
func (n *Node) pickENI(ctx context.Context, self driver.Self, raw []driver.Interface, asked time.Time) (*nic, error) {
	v, err := n.makeView(ctx, self, raw, asked)
	switch {
	case err != nil:
		return nil, err
	case len(v.nics) > 0:
		best := slices.MinFunc(v.nics, func(a, b nic) int {
			return cmp.Or(cmp.Compare(b.rank(), a.rank()), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
		})
		return &best, nil
	case len(v.out) > 0:
		return nil, errorf(cloud.ErrForbidden, "ENI %s: %s", v.out[0].ID, v.out[0].Why)
	}
	return nil, &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.NotForPods,
		Detail: fmt.Sprintf("ENI %s is not for pods: %s", raw[0].ID, raw[0].Unmanaged)}
}
