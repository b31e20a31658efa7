package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Upkeep brings what was set when the node's ENIs were made in step with what is set now:
// the security groups of those that enipool made. It goes by the last look, makes a call
// only where something differs, and returns the IDs of the ENIs that it changed. A person
// who changes the groups of one by hand has them changed back.
func (n *Node) Upkeep(ctx context.Context) (changed []string, err error) {
	defer named(&err, "Upkeep", "")
	home, err := n.findHome(ctx)
	if err != nil {
		return nil, err
	}
	want := sorted(n.o.SecurityGroups)
	if len(want) == 0 {
		want = sorted(home.groups)
	}
	if len(want) == 0 {
		return nil, nil // a cloud without any, or one that does not tell
	}
	var errs []error
	for _, on := range n.ours() {
		if len(on.raw.Groups) == 0 || slices.Equal(sorted(on.raw.Groups), want) {
			continue // none: the cloud does not tell
		}
		err := n.d.SetGroups(ctx, on.ID, want, fresh())
		if driver.Reason(err) == driver.NoSuchInterface {
			continue // it has just been deleted
		}
		if errors.Is(err, cloud.ErrThrottled) {
			return changed, errors.Join(append(errs, about(on.ID, err))...)
		}
		if err != nil { // one that refuses holds up no other: permissions may be about ENIs
			errs = append(errs, about(on.ID, err))
			continue
		}
		changed = append(changed, on.ID)
		n.groupsAre(on.ID, want)
	}
	return changed, errors.Join(errs...)
}

// ours returns the attached ENIs that were made for the node, as the last look or a call since
// has shown them, in the order of their creation.
func (n *Node) ours() (list []nic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.memory.seen {
		if s.Ours && isRecent(s.at, n.clock.Now()) && !s.at.Before(n.memory.looked) {
			list = append(list, s.nic)
		}
	}
	slices.SortFunc(list, byCreation)
	return list
}

// groupsAre notes the groups that an ENI has now: describes may not show it yet.
func (n *Node) groupsAre(id string, groups []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s, seen := n.memory.seen[id]; seen {
		s.raw.Groups = groups
		n.memory.seen[id] = s
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
