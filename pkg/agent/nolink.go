package agent

import (
	"context"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/ipam"
)

// noteLinks notes which ENIs of the cache have no link on the node, and tells people of each
// that lost its link or has it again.
//
// What is free on such an ENI the pool must not count on, and what comes back with the link
// it may: both show when it is looked for what pods can't have.
func (a *Agent) noteLinks(cached *ipam.State, devices map[string]bool) {
	next, gone, back := a.links.lose(cached, devices, a.mem.isLeaving)
	a.links = next
	a.occupied = a.occupied || len(gone)+len(back) > 0
	for _, nic := range gone {
		a.Log.Warn("link of an ENI is missing", "eni", nic.ID, "device", nic.Device, "pods", usedOn(cached, nic.Index), "todo", health.Remedy(health.LinkMissing))
	}
	for _, nic := range back {
		if hasENI(cached, nic.ID) { // else it was detached
			a.Log.Info("link of an ENI is there again", "eni", nic.ID, "device", nic.Device)
		}
	}
}

// noteMACs notes which links of ENIs have another MAC than the cloud knows, and tells people of
// what is new.
func (a *Agent) noteMACs(cached *ipam.State, there map[string]eni.Interface) {
	wrong := wrongMACs(cached, there, a.view)
	for _, line := range wrong {
		if !slices.Contains(a.links.wrong, line) {
			a.Log.Warn(line)
		}
	}
	a.links.wrong = wrong
}

// relinked tells whether an ENI that lost its link has one again.
func (a *Agent) relinked(ctx context.Context) (bool, error) {
	if len(a.links.lost) == 0 {
		return false, nil
	}
	there, err := a.Kernel.Links(ctx)
	return a.links.isBack(there, a.view), err
}
