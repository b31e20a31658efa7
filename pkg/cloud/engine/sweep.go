package engine

import (
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

// Sweep deletes ENIs of the cluster that nobody will miss: attached to nothing, made
// longer ago than olderThan, for an instance that is gone, as this sweep and one before
// it have found. It returns their IDs. A node looks after its own ENIs otherwise. Without
// Options.Cluster it does nothing.
func (n *Node) Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, err error) {
	defer named(&err, "Sweep", n.o.Cluster)
	if n.o.Cluster == "" {
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
	dead, err := n.twiceDead(ctx, leaked)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, id := range dead {
		err := n.d.Delete(ctx, id, fresh())
		switch {
		case err == nil:
			deleted = append(deleted, id)
		case errors.Is(err, cloud.ErrNotFound): // another node was faster
		case errors.Is(err, cloud.ErrThrottled):
			return deleted, err
		default: // one that can't be deleted holds up no other
			errs = append(errs, about(id, err))
		}
	}
	return deleted, errors.Join(errs...)
}

// leaked returns the cluster's old ENIs that are attached to nothing. One that does not
// say when it was made is left to a person.
func (n *Node) leaked(ctx context.Context, self driver.Self, olderThan time.Duration) ([]driver.Interface, error) {
	raw, err := n.d.Interfaces(ctx, driver.Filter{Loose: n.o.Cluster})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(raw, func(r driver.Interface) bool {
		born := r.Mark.Asked
		if r.Created.After(born) {
			born = r.Created
		}
		young := born.IsZero() || n.clock.Now().Sub(born) < olderThan
		return young || r.ID == "" || r.State != driver.Loose || r.Mark.Instance == "" || r.Mark.Instance == self.Instance || r.Mark.Cluster != n.o.Cluster
	}), nil
}

// twiceDead returns the ENIs whose instance is gone and was at the last Sweep, at most as
// many as one deletes, and remembers those that it finds for the first time.
func (n *Node) twiceDead(ctx context.Context, leaked []driver.Interface) ([]string, error) {
	var instances []string
	for _, r := range leaked {
		if !slices.Contains(instances, r.Mark.Instance) {
			instances = append(instances, r.Mark.Instance)
		}
	}
	var gone []string
	if len(instances) > 0 {
		var err error
		if gone, err = n.d.Gone(ctx, instances); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.doomed
	n.doomed = map[string]time.Time{}
	var dead []string
	for _, r := range leaked {
		if !slices.Contains(gone, r.Mark.Instance) {
			continue
		}
		if _, twice := before[r.ID]; twice && len(dead) < mostSwept {
			dead = append(dead, r.ID)
			continue
		}
		n.doomed[r.ID] = n.clock.Now()
	}
	for _, id := range slices.Sorted(maps.Keys(n.doomed)) {
		n.log.Debug("an ENI of an instance that is gone will be deleted by the next sweep", "eni", id)
	}
	return dead, nil
}
