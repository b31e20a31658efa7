package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Upkeep corrects the node's ENIs that enipool made: they get the security groups of the
// configuration, and are bound to the end of their instance, which is lost when a person attaches
// one again. It goes by the last describe, makes a request only where something differs, and returns
// the IDs of the ENIs that it changed. Groups that a person has changed by hand are changed back.
func (n *Node) Upkeep(ctx context.Context) (changed []string, err error) {
	defer nameError(&err, "Upkeep", "")
	home, err := n.findHome(ctx)
	if err != nil {
		return nil, err
	}
	want := n.wantedGroups(home)
	var errs []error
	for _, on := range n.ownAttached() {
		done, err := n.keepENI(ctx, on, want)
		if done {
			changed = append(changed, on.ID)
		}
		switch {
		case err == nil, driver.Reason(err) == cloud.NoSuchInterface: // it has just been deleted
		case errors.Is(err, cloud.ErrThrottled):
			return changed, errors.Join(append(errs, aboutENI(on.ID, err))...)
		default: // the others are tried all the same: a policy can allow changes of some ENIs and not of others
			errs = append(errs, aboutENI(on.ID, err))
		}
	}
	return changed, errors.Join(errs...)
}

// wantedGroups returns the security groups that the node's ENIs are to have.
func (n *Node) wantedGroups(h home) []string {
	if want := sortedSet(n.o.SecurityGroups); len(want) > 0 {
		return want
	}
	return sortedSet(h.groups)
}

// keepENI corrects one ENI.
func (n *Node) keepENI(ctx context.Context, on nic, want []string) (changed bool, err error) {
	grouped, err := n.keepGroups(ctx, on, want)
	if err != nil {
		return grouped, err
	}
	bound, err := n.keepBound(ctx, on)
	return grouped || bound, err
}

// OutOfStep returns the ENIs of an instance that Upkeep would change, by what describes have shown, each with the method of the driver
// that comes first. It makes no call.
func (r *Region) OutOfStep(instance string) map[string]string {
	n, err := r.nodeOf(instance)
	if err != nil {
		return nil
	}
	h := n.seenHome()
	if h.primary == "" {
		return nil
	}
	var list map[string]string
	for _, on := range n.ownAttached() {
		first := ""
		switch {
		case hasOtherGroups(on, n.wantedGroups(h)):
			first = "SetGroups"
		case n.mayOutlive(on):
			first = "Bind"
		default:
			continue
		}
		if list == nil {
			list = map[string]string{}
		}
		list[on.ID] = first
	}
	return list
}

// Upkeep is Node.Upkeep for one ENI of an instance. One that is the node's no more is left as it is.
func (r *Region) Upkeep(ctx context.Context, instance, id string) (err error) {
	defer nameError(&err, "Upkeep", id)
	n, err := r.nodeOf(instance)
	if err != nil {
		return err
	}
	own := n.ownAttached()
	if at := slices.IndexFunc(own, func(on nic) bool { return on.ID == id }); at >= 0 {
		_, err = n.keepENI(ctx, own[at], n.wantedGroups(n.seenHome()))
	}
	if driver.Reason(err) == cloud.NoSuchInterface {
		return nil // it has just been deleted
	}
	return err
}

// hasOtherGroups tells whether the ENI's security groups differ. An ENI that is shown without any is
// left as it is: the cloud has no groups, or does not tell them.
func hasOtherGroups(on nic, want []string) bool {
	return len(want) > 0 && len(on.raw.Groups) > 0 && !slices.Equal(sortedSet(on.raw.Groups), want)
}

// keepGroups sets the ENI's security groups if they differ.
func (n *Node) keepGroups(ctx context.Context, on nic, want []string) (changed bool, err error) {
	if !hasOtherGroups(on, want) {
		return false, nil
	}
	if err := n.d.SetGroups(ctx, on.ID, want, n.o.Token()); err != nil {
		return false, err
	}
	n.groupsAre(on.ID, want)
	return true, nil
}

// mayOutlive tells whether an ENI may outlive its instance, and no call has bound this attachment. Each is bound only once, because
// some emulators never show that it is.
func (n *Node) mayOutlive(on nic) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, known := n.memory.bound[on.ID]
	return n.t.Binds && on.raw.Outlives && (!known || before != on.raw.Attachment)
}

// keepBound binds an ENI that a person has attached again to the end of its instance.
func (n *Node) keepBound(ctx context.Context, on nic) (changed bool, err error) {
	if !n.mayOutlive(on) {
		return false, nil
	}
	err = n.d.Bind(ctx, on.ID, on.raw.Attachment)
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil // it is detached again, as a look will show
	}
	if err == nil {
		n.noteBound(on.ID, on.raw.Attachment)
	}
	return err == nil, err
}

// noteBound notes that a call has bound the attachment.
func (n *Node) noteBound(id, attachment string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.bound[id] = attachment
}

// ownAttached returns the attached ENIs that were made for the node, as the last describe or a later
// call has shown them, in the order of their creation.
func (n *Node) ownAttached() (list []nic) {
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

// groupsAre notes the groups that an ENI has now, which describes may not show yet.
func (n *Node) groupsAre(id string, groups []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s, seen := n.memory.seen[id]; seen {
		s.raw.Groups = groups
		n.memory.seen[id] = s
	}
}

func sortedSet(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
