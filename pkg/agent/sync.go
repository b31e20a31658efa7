package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// What a comparison of the kernel with the cache was for, as metrics have it.
const (
	comparedAtResync = "resync"
	comparedByChange = "change"
	comparedForCache = "cache"
)

// resyncIfDue puts back what others removed from the kernel: at once where that was
// heard, and from time to time what was not. Then it takes back what dead sandboxes
// hold too. What failed is tried again after its back-off, which holds up nothing that
// is heard meanwhile: one thing that can't be put back is no reason to leave others.
func (a *Agent) resyncIfDue(ctx context.Context, cached *ipam.State, now time.Duration) error {
	relinked, err := a.relinked(ctx)
	if err != nil {
		return err
	}
	a.disturbed = a.disturbed || relinked
	held := a.backoffs.active(of(compares), now)
	due := now >= a.resyncAt && !held
	again := !held && (a.backoffs.mayRetry(of(compares), now) || a.backoffs.mayRetry(of(shapes), now))
	if !due && !again && !a.disturbed {
		return nil
	}
	cause := comparedByChange
	if due {
		cause = comparedAtResync
	}
	err = a.sync(ctx, now, cause)
	if !due {
		return err
	}
	if err = errors.Join(err, a.lookForBlocks(ctx), a.lookForPortConflicts(ctx), a.reclaim(ctx, now)); err == nil {
		a.putOffResync(ctx, now)
	}
	return err
}

// Forwarder is a Kernel that can tell which chains of others drop pods' packets.
type Forwarder interface {
	Blocked(ctx context.Context) ([]string, error)
}

// lookForBlocks tells people of chains that cut pods off. They are not ours to change.
func (a *Agent) lookForBlocks(ctx context.Context) error {
	kernel, can := a.Kernel.(Forwarder)
	if !can {
		return nil
	}
	lines, err := kernel.Blocked(ctx)
	if err != nil {
		return fmt.Errorf("look for chains that cut pods off: %w", err)
	}
	for _, line := range lines {
		if !slices.Contains(a.status.Blocked, line) {
			a.Log.Warn(line)
		}
	}
	a.status.Blocked = lines
	return nil
}

// PortTeller is a Kernel that can tell which host ports of pods others claim too, or nobody
// can reach.
type PortTeller interface {
	PortConflicts(ctx context.Context) ([]string, error)
}

// lookForPortConflicts tells people of host ports that do not do what their pods asked for,
// or do it at the cost of others.
func (a *Agent) lookForPortConflicts(ctx context.Context) error {
	kernel, can := a.Kernel.(PortTeller)
	if !can {
		return nil
	}
	lines, err := kernel.PortConflicts(ctx)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if !slices.Contains(a.status.PortConflicts, line) {
			a.Log.Warn(line)
		}
	}
	a.status.PortConflicts = lines
	return nil
}

// Router is a Kernel that can tell which routes and rules of others pods' packets take.
type Router interface {
	Misrouted(ctx context.Context) ([]string, error)
}

// lookForMisrouted tells people of routes and rules of others that come before ours. They
// are not ours to change.
func (a *Agent) lookForMisrouted(ctx context.Context) error {
	kernel, can := a.Kernel.(Router)
	if !can {
		return nil
	}
	lines, err := kernel.Misrouted(ctx)
	if err != nil {
		return fmt.Errorf("look for routes and rules of others that pods' packets take: %w", err)
	}
	for _, line := range lines {
		if !slices.Contains(a.status.Misrouted, line) {
			a.Log.Warn(line)
		}
	}
	a.status.Misrouted = lines
	return nil
}

// sync makes the kernel hold what the cache says. What it changed was missing or
// too much: by the cache's own changes, or by those of others.
func (a *Agent) sync(ctx context.Context, now time.Duration, cause string) error {
	out, err := a.leavingENIs(ctx)
	if err != nil {
		return err
	}
	a.Events.Compared(cause)
	lines, err := a.Kernel.Sync(ctx, out, a.gone)
	a.logKernel(lines, cause)
	if len(lines) > 0 || err != nil || cause != comparedAtResync {
		a.endCalm(now)
	}
	a.disturbed = false // what failed is tried again after its back-off
	limits := a.noteLimits(err, now)
	if cause != comparedForCache && (err == nil || limits != nil) { // what fails is told as such
		a.noteRepairs(lines, now)
	}
	if err != nil && limits == nil {
		if _, alone := netconf.BrokenLinks(err); alone { // what is no more in the cache is out of the kernel
			a.unsynced, a.gone = false, nil
		}
		a.backOff(of(compares), err, now)
		err = fmt.Errorf("bring the kernel in step with the node cache: %w", err)
		return errors.Join(err, a.lookForMisrouted(ctx))
	}
	a.backoffs.clear(of(compares))
	if cause == comparedAtResync {
		a.resyncAt = now + a.conf.Resync
	}
	a.unsynced, a.gone = false, nil
	return errors.Join(limits, a.lookForMisrouted(ctx))
}

// noteLimits returns err if it is only about limits of pods that can't be put back. They
// have a back-off of their own.
func (a *Agent) noteLimits(err error, now time.Duration) error {
	switch {
	case err == nil:
		a.backoffs.clear(of(shapes))
		return nil
	case !netconf.OnlyLimits(err):
		return nil
	}
	a.backOff(of(shapes), err, now)
	return err
}

// logKernel tells what was changed in the kernel and why.
func (a *Agent) logKernel(lines []string, cause string) {
	what, reason := "kernel repaired", a.Disturbance()
	switch {
	case cause == comparedForCache:
		what, reason = "kernel updated", "the node cache changed"
	case reason == "" && a.resyncAt == 0:
		reason = "found when the agent started"
	case reason == "":
		reason = "found by the periodic comparison"
	}
	a.Log.Debug("kernel compared", "cause", cause, "changes", len(lines), "reason", reason)
	for _, line := range lines {
		level := slog.LevelInfo
		if a.fights.has(line) {
			level = slog.LevelDebug // it is told that it comes again and again
		}
		a.Log.Log(context.Background(), level, what, "change", line, "reason", reason)
	}
	if cause != comparedForCache {
		a.Events.Repaired("kernel", len(lines))
	}
}

// rename follows links that got another name after they were attached, as udev gives them.
func (a *Agent) rename(ctx context.Context, links map[string]eni.Interface) error {
	names := map[string]string{}
	for _, nic := range a.view.enis {
		if link, ok := links[nic.MAC]; ok && nic.Index >= 0 {
			names[nic.ID] = link.Device
		}
	}
	renamed := func(nic eni.Interface) bool { return names[nic.ID] != "" && names[nic.ID] != nic.Device }
	if a.cached == nil || !slices.ContainsFunc(a.cached.ENIs, renamed) {
		return nil
	}
	a.gone = a.cached.Clone() // by its names the kernel finds the routes that are to be removed
	return a.Cache.Replace(ctx, func(s *ipam.State, err error) (*ipam.State, error) {
		if err != nil {
			return nil, err
		}
		for i, nic := range s.ENIs {
			if renamed(nic) {
				a.Log.Info("rename", "eni", nic.ID, "device", names[nic.ID], "was", nic.Device, "reason", "its link has another name now")
				s.ENIs[i].Device = names[nic.ID]
			}
		}
		return s, nil
	})
}

// leavingENIs returns the ids of the cache's ENIs that the kernel is to forget:
// those that are being deleted, and those whose link has gone.
func (a *Agent) leavingENIs(ctx context.Context) ([]string, error) {
	links, err := a.Kernel.Links(ctx)
	if err == nil {
		err = a.rename(ctx, links)
	}
	if err != nil {
		return nil, err
	}
	devices := map[string]bool{}
	for _, l := range links {
		devices[l.Device] = true
	}
	var out []string
	err = a.Cache.View(ctx, func(s *ipam.State) error {
		for _, nic := range s.ENIs {
			if a.mem.isLeaving(nic.ID) || !devices[nic.Device] {
				out = append(out, nic.ID)
			}
		}
		a.noteLinks(s, devices)
		a.noteMACs(s, links)
		return nil
	})
	return out, err
}
