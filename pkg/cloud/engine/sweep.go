package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// mostSwept is how many ENIs one Sweep deletes, so that nodes that sweep at the same time
// leave the account's rate to others.
const mostSwept = 10

// mostAsked is how many instances one Sweep asks about: some clouds take one per request.
const mostAsked = 10

// Sweep deletes ENIs of the cluster that were left behind: they are attached to nothing, older than
// olderThan, and made for an instance that this sweep and an earlier one have found gone. It
// returns their IDs. It leaves the ENIs of this node alone. Without Options.Cluster it does nothing.
func (n *Node) Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, err error) {
	defer nameError(&err, "Sweep", n.o.Cluster)
	if n.o.Cluster == "" || n.t.OneNIC { // where nobody makes ENIs
		return nil, nil
	}
	self, err := n.findSelf(ctx)
	if err != nil {
		return nil, err
	}
	leaked, err := n.findLeaked(ctx, self, olderThan)
	if err != nil {
		return nil, err
	}
	dead, err := n.goneTwice(ctx, self, leaked)
	errs := []error{err}
	for _, id := range dead {
		err := n.d.Delete(ctx, id, n.o.Token())
		switch {
		case err == nil:
			deleted = append(deleted, id)
		case errors.Is(err, cloud.ErrNotFound): // another node was faster
		case errors.Is(err, cloud.ErrThrottled):
			return deleted, err
		default: // one that can't be deleted holds up no other
			errs = append(errs, aboutENI(id, err))
		}
	}
	return deleted, errors.Join(errs...)
}

// Swept returns how many ENIs the last Sweep was told of, and whether it has found some that the
// next one is to delete.
func (n *Node) Swept() (listed int, unfinished bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listed, len(n.doomed) > 0
}

// findLeaked returns the cluster's old ENIs that are attached to nothing. It leaves out those that
// do not tell when they were made, or are tagged as not to be touched: a person has to delete them.
func (n *Node) findLeaked(ctx context.Context, self driver.Self, olderThan time.Duration) ([]driver.Interface, error) {
	listed := 0
	raw, err := n.d.Interfaces(ctx, driver.Filter{Loose: n.o.Cluster, Listed: &listed})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.listed = max(listed, len(raw))
	n.mu.Unlock()
	n.findOwn(self, raw)
	return slices.DeleteFunc(raw, func(r driver.Interface) bool {
		born := r.Mark.Asked
		if r.Created.After(born) {
			born = r.Created
		}
		young := born.IsZero() || n.clock.Now().Sub(born) < olderThan
		return young || r.ID == "" || r.Unmanaged != "" || r.State != driver.Loose || r.Mark.Instance == "" || r.Mark.Instance == self.Instance || r.Mark.Cluster != n.o.Cluster
	}), nil
}

// findOwn notes the node's own ENIs that are attached nowhere, so that the next describe asks for
// them. If a cloud finds ENIs by their name, only this list has one that somebody has renamed.
func (n *Node) findOwn(self driver.Self, raw []driver.Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range raw {
		_, deleted := n.memory.deleted[r.ID]
		if r.Mark.Ours(self.Instance) && r.State == driver.Loose && r.ID != "" && !deleted {
			n.memory.tokens[r.ID], n.memory.loose[r.ID] = r.Mark.Token, true
		}
	}
}

// goneTwice returns the ENIs whose instance is gone and was gone when an earlier Sweep asked about
// it, at most as many as one Sweep deletes. It remembers those that it finds for the first time:
// a describe that lags may lack an instance that was just started.
func (n *Node) goneTwice(ctx context.Context, self driver.Self, leaked []driver.Interface) ([]string, error) {
	asked := n.nextAsked(self, leaked)
	if len(asked) == 0 {
		return nil, nil
	}
	states, err := n.d.Alive(ctx, asked) // what it says is true, even with an error about others
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.doomed
	n.doomed = map[string]time.Time{}
	var dead []string
	for _, raw := range leaked {
		first, twice := before[raw.ID]
		switch {
		case !slices.Contains(asked, raw.Mark.Instance), err != nil && states[raw.Mark.Instance] != cloud.Gone:
			if twice {
				n.doomed[raw.ID] = first // its turn comes again
			}
		case states[raw.Mark.Instance] != cloud.Gone:
		case twice && len(dead) < mostSwept:
			dead = append(dead, raw.ID)
		default:
			n.doomed[raw.ID] = n.clock.Now()
		}
	}
	for _, id := range slices.Sorted(maps.Keys(n.doomed)) {
		n.log.Debug("an ENI of an instance that is gone will be deleted by a later sweep", "eni", id)
	}
	return dead, err
}

// nextAsked returns the instances that a Sweep asks about: those that follow the last Sweep's, even
// if its request failed. The first Sweep of a node begins after its own ID, so that the nodes of a
// cluster begin at different ones.
func (n *Node) nextAsked(self driver.Self, leaked []driver.Interface) []string {
	var all []string
	for _, r := range leaked {
		all = append(all, r.Mark.Instance)
	}
	all = sortedSet(all)
	n.mu.Lock()
	defer n.mu.Unlock()
	begin, _ := slices.BinarySearch(all, cmp.Or(n.askedLast, self.Instance)+"\x00") // the next one
	asked := append(slices.Clone(all[begin:]), all[:begin]...)
	if asked = asked[:min(len(asked), mostAsked)]; len(asked) > 0 {
		n.askedLast = asked[len(asked)-1]
	}
	before := n.asks
	n.asks = map[string]int{}
	for _, id := range all {
		n.asks[id] = before[id]
		if slices.Contains(asked, id) {
			n.asks[id]++
		}
	}
	return asked
}

// hasMore tells whether there are instances that Sweeps have not asked about twice, or ENIs that were more than one deletes. If
// there are none the next Sweep begins with all.
func (n *Node) hasMore(deleted bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, times := range n.asks {
		if times < 2 {
			return true
		}
	}
	more := deleted && len(n.doomed) > 0
	if !more {
		clear(n.asks)
	}
	return more
}
