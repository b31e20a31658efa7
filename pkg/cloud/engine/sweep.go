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

// mostAsked is how many instances one Sweep asks for: some clouds tell of one a request.
const mostAsked = 10

// Sweep deletes ENIs of the cluster that nobody will miss: attached to nothing, made
// longer ago than olderThan, for an instance that is gone, as this sweep and one before
// it have found. It returns their IDs. A node looks after its own ENIs otherwise. Without
// Options.Cluster it does nothing.
func (n *Node) Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, err error) {
	defer nameError(&err, "Sweep", n.o.Cluster)
	if n.o.Cluster == "" || n.t.OneNIC { // where nobody makes ENIs
		return nil, nil
	}
	self, err := n.whoami(ctx)
	if err != nil {
		return nil, err
	}
	leaked, err := n.leaked(ctx, self, olderThan)
	if err != nil {
		return nil, err
	}
	dead, err := n.twiceDead(ctx, self, leaked)
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

// Swept returns how many ENIs the cloud told the last Sweep of, and whether another one is to go
// by what it found.
func (n *Node) Swept() (listed int, unfinished bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listed, len(n.doomed) > 0
}

// leaked returns the cluster's old ENIs that are attached to nothing. One that does not
// say when it was made, or is tagged as not to be touched, is left to a person.
func (n *Node) leaked(ctx context.Context, self driver.Self, olderThan time.Duration) ([]driver.Interface, error) {
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

// findOwn notes the node's own ENIs that are attached nowhere, so that the next look asks for
// them: where a cloud finds ENIs by their name, one that somebody has renamed shows here
// alone.
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

// twiceDead returns the ENIs whose instance is gone and was when a Sweep asked for it
// before, at most as many as one deletes, and remembers those that it finds for the first
// time.
func (n *Node) twiceDead(ctx context.Context, self driver.Self, leaked []driver.Interface) ([]string, error) {
	asked := n.nextAsked(self, leaked)
	if len(asked) == 0 {
		return nil, nil
	}
	states, err := n.d.Alive(ctx, asked) // those are gone, also with an error about others
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.doomed
	n.doomed = map[string]time.Time{}
	var dead []string
	for _, r := range leaked {
		first, twice := before[r.ID]
		switch {
		case !slices.Contains(asked, r.Mark.Instance), err != nil && states[r.Mark.Instance] != cloud.Gone:
			if twice {
				n.doomed[r.ID] = first // its turn comes again
			}
		case states[r.Mark.Instance] != cloud.Gone:
		case twice && len(dead) < mostSwept:
			dead = append(dead, r.ID)
		default:
			n.doomed[r.ID] = n.clock.Now()
		}
	}
	for _, id := range slices.Sorted(maps.Keys(n.doomed)) {
		n.log.Debug("an ENI of an instance that is gone will be deleted by a later sweep", "eni", id)
	}
	return dead, err
}

// nextAsked returns the instances of ENIs that a Sweep asks for: those whose turn it is,
// also after a request that failed. Each node begins elsewhere.
func (n *Node) nextAsked(self driver.Self, leaked []driver.Interface) []string {
	var all []string
	for _, r := range leaked {
		all = append(all, r.Mark.Instance)
	}
	all = sorted(all)
	n.mu.Lock()
	defer n.mu.Unlock()
	begin, _ := slices.BinarySearch(all, cmp.Or(n.askedLast, self.Instance)+"\x00") // the next one
	asked := append(slices.Clone(all[begin:]), all[:begin]...)
	if asked = asked[:min(len(asked), mostAsked)]; len(asked) > 0 {
		n.askedLast = asked[len(asked)-1]
	}
	return asked
}
