package engine

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// DeleteInterface implements cloud.Cloud.
func (n *Node) DeleteInterface(ctx context.Context, id string) (err error) {
	defer nameError(&err, "DeleteInterface", id)
	self, err := n.findSelf(ctx)
	if err != nil {
		return err
	}
	home, err := n.findHome(ctx)
	if err != nil {
		return err
	}
	if id == home.primary {
		return errorf(cloud.ErrForbidden, "it is the node's primary ENI")
	}
	raw, err := n.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
	if err == nil && len(raw) == 0 && n.mayLack(id) {
		if err = n.waitForEarlierProcess(ctx, id); err == nil {
			raw, err = n.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
		}
	}
	if err != nil {
		return err
	}
	raw = n.withMarks(raw)
	if len(raw) == 0 {
		if before, seen := n.lastSeen(id, forgetAfter); !seen || !before.Ours {
			return nil
		} // else the describe is older than the ENI
	} else if !raw[0].Mark.Ours(self.Instance) || raw[0].Primary || raw[0].Instance != "" && raw[0].Instance != self.Instance {
		return errorf(cloud.ErrForbidden, "it was not made for instance %s, or another one has it", self.Instance)
	}
	if len(raw) > 0 && raw[0].Unmanaged != "" {
		return errorf(cloud.ErrForbidden, "nobody here may touch it: %s", raw[0].Unmanaged)
	}
	if len(raw) > 0 {
		if more := n.unseenAddresses(raw[0]); len(more) > 0 {
			return errorf(cloud.ErrNotFound, "somebody has put %s on it since it was looked at", more[0])
		}
	}
	err = n.removeENI(ctx, self, id, raw)
	if err != nil && !errors.Is(err, cloud.ErrThrottled) {
		n.expectUnattached()
	}
	return err
}

// unseenAddresses returns the addresses of an ENI, of a block the first, that neither a describe of
// all ENIs has shown nor a call has assigned. Others have assigned them, and the caller who wants to
// delete the ENI can't know of them.
func (n *Node) unseenAddresses(now driver.Interface) (addrs []netip.Addr) {
	on, shown := n.shownLast(now.ID)
	if !shown {
		return nil // an earlier process made it, and nothing has shown it to this one
	}
	has, blocks := n.possibleAddresses(on)
	gone, _ := n.recentDeeds(on, unassigned) // and still shown
	own := []netip.Addr{on.raw.V4, on.raw.V6, on.V4.Primary.Addr(), on.V6.Primary.Addr()}
	addrs = minus(now.Singles, union(has, on.raw.Singles, gone, own))
	for _, b := range now.Blocks {
		if !slices.Contains(blocks, b) && !slices.Contains(on.raw.Blocks, b) && !slices.ContainsFunc(gone, b.Contains) {
			addrs = append(addrs, b.Addr())
		}
	}
	return addrs
}

// shownLast returns an ENI as the last describe of all has shown it, or as a call has made it since.
func (n *Node) shownLast(id string) (nic, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.memory.shown.nics, func(i nic) bool { return i.ID == id })
	made, isMade := n.memory.ready[id]
	if at < 0 || isMade && made.read.After(n.memory.shown.nics[at].read) {
		return made.nic, isMade
	}
	return n.memory.shown.nics[at], true
}

// removeENI detaches and deletes an ENI that was made for the node. It describes it after each step,
// because describes lag and clouds refuse to delete an ENI that is being detached. raw is what a
// describe has just shown of it, nil if none has. After the first step, requests that are refused
// for their rate are repeated. An ENI that another instance has got meanwhile is not touched.
func (n *Node) removeENI(ctx context.Context, self driver.Self, id string, raw []driver.Interface) error {
	begun := false
	var refused error
	var believe *pauses // for how long a refusal can come from a state that has already ended
	last := ""          // what the cloud said last, if it refused
	for retry := n.pausesFor(n.t.Times.Wait); ; raw = nil {
		gone, step, err := n.removeStep(ctx, self, id, raw)
		switch {
		case gone:
			n.noteDeleted(id)
			return nil
		case driver.Reason(err) == cloud.Busy && step:
			if refused == nil {
				believe = n.pausesFor(n.t.Times.Settle)
			}
			refused, last = err, ": "+detailOf(err)
		case driver.Reason(err) == cloud.Busy:
			last = ": " + detailOf(err) // on its way, as will show, unless it is refused to the end
		case err != nil && !(begun && errors.Is(err, cloud.ErrThrottled)):
			return halfDoneIf(begun, err)
		case err == nil:
			refused = nil
		}
		begun = begun || step && err == nil
		if step && err == nil {
			retry.pause = max(retry.pause, n.t.Times.Usual) // it takes a while
		}
		more, ended := retry.next(ctx)
		switch {
		case ended != nil:
			return errorf(cloud.ErrUnknown, "given up while ENI %s was being detached%s", id, last)
		case refused != nil && believe.over():
			return halfDone(refused)
		case !more:
			return errorf(cloud.ErrUnknown, "ENI %s is not deleted after %s%s", id, n.t.Times.Wait, last)
		}
	}
}

// removeStep makes the next request, if there is one that can be made now. step: it was made, or
// refused because of the ENI's state.
func (n *Node) removeStep(ctx context.Context, self driver.Self, id string, raw []driver.Interface) (gone, step bool, err error) {
	if raw == nil {
		if raw, err = n.d.Interfaces(ctx, driver.Filter{IDs: []string{id}}); err != nil {
			return false, false, err
		}
	}
	if len(raw) > 0 {
		if other := raw[0].Instance; other != "" && other != self.Instance {
			return false, false, errorf(cloud.ErrForbidden, "instance %s has ENI %s by now", other, id)
		}
		switch raw[0].State {
		case driver.Attaching, driver.Detaching:
			if raw[0].State == driver.Detaching || raw[0].Attachment == "" {
				return false, false, nil
			}
			fallthrough
		case driver.Attached:
			n.noteRemoving(id)
			err := n.d.Detach(ctx, raw[0], n.o.Token())
			if err == nil || errors.Is(err, cloud.ErrUnknown) {
				n.noteDetached(id)
			}
			if errors.Is(err, cloud.ErrNotFound) {
				return false, false, nil // as will show
			}
			return false, err == nil, err
		}
	}
	n.noteRemoving(id)
	err = n.d.Delete(ctx, id, n.o.Token())
	if err == nil || errors.Is(err, cloud.ErrNotFound) {
		return true, true, nil
	}
	return false, slices.Contains([]cloud.Why{cloud.Busy, cloud.InUse}, driver.Reason(err)), err
}
