package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// noteWaitingLinks notes the ENIs whose link has not come. A new one of them is looked for often, however
// long another has been missing: nothing announces it.
func (a *Agent) noteWaitingLinks(waiting []string, now time.Duration) {
	if slices.ContainsFunc(waiting, func(id string) bool { return !slices.Contains(a.waitingLinks, id) }) {
		a.linkless = now
	}
	a.waitingLinks = waiting
}

// noteLinks notes which ENIs of the book have no link on the node, and tells people of each
// that lost its link or has it again. An ENI that is being deleted is to lose it.
//
// What is free on such an ENI the pool must not count on, and what comes back with the link
// it may: both show when it is looked for what pods can't have.
func (a *Agent) noteLinks(book *ipam.State, devices map[string]bool) {
	now := map[string]eni.Interface{}
	for _, nic := range book.ENIs {
		if devices[nic.Device] || a.isLeaving(nic.ID) {
			continue
		}
		now[nic.ID] = nic
		if _, told := a.unlinked[nic.ID]; !told {
			a.occupied = true
			a.Log.Warn("link of an ENI is missing", "eni", nic.ID, "device", nic.Device, "pods", usedOn(book, nic.Index), "todo", noLinkTodo)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.unlinked)) {
		if _, still := now[id]; !still {
			a.occupied = true
			if hasENI(book, id) { // else it was detached
				a.Log.Info("link of an ENI is there again", "eni", id, "device", a.unlinked[id].Device)
			}
		}
	}
	a.unlinked = now
}

// noteMACs notes which links of ENIs have another MAC than the cloud knows, and tells people of
// what is new. Somebody gave it to them, and they may have cause to: it is not put right.
func (a *Agent) noteMACs(book *ipam.State, links map[string]eni.Interface) {
	var wrong []string
	for mac, link := range links {
		for _, nic := range book.ENIs {
			have, known := a.view.eni(nic.ID)
			if link.Device == nic.Device && known && have.MAC != "" && have.MAC != mac {
				wrong = append(wrong, fmt.Sprintf("link %s of the ENI %s has the MAC %s, and the cloud knows %s and drops what its pods send: ip link set %s address %s, and end what changes it (NetworkManager, udev)",
					nic.Device, nic.ID, mac, have.MAC, nic.Device, have.MAC))
			}
		}
	}
	slices.Sort(wrong)
	for _, line := range wrong {
		if !slices.Contains(a.wrongMACs, line) {
			a.Log.Warn(line)
		}
	}
	a.wrongMACs = wrong
}

// relinked tells whether an ENI that lost its link has one again, perhaps with another name.
func (a *Agent) relinked(ctx context.Context) (bool, error) {
	if len(a.unlinked) == 0 {
		return false, nil
	}
	links, err := a.Kernel.Links(ctx)
	for mac, link := range links {
		for id, nic := range a.unlinked {
			if have, known := a.view.eni(id); link.Device == nic.Device || known && have.MAC == mac {
				return true, err
			}
		}
	}
	return false, err
}

// noLinkTodo is what a person can do about an ENI without a link.
const noLinkTodo = "look for the device in the kernel's log (dmesg); if the ENI is detached attach it again, if not reload its driver or restart the node"

// unlinkedLines tells people of the ENIs that have lost their links.
func (a *Agent) unlinkedLines() []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(a.unlinked)) {
		nic, pods := a.unlinked[id], ""
		if a.book != nil {
			pods = fmt.Sprintf(": the %d pods that have its addresses are cut off, and no other pod gets one until it is back", usedOn(a.book, nic.Index))
		}
		lines = append(lines, fmt.Sprintf("link %s of the ENI %s is missing%s; %s", nic.Device, id, pods, noLinkTodo))
	}
	return lines
}

// usedOn counts the addresses of the ENI that pods have.
func usedOn(book *ipam.State, index int) (n int) {
	for i := range book.Addresses {
		if line := &book.Addresses[i]; line.ENI == index && line.State == eni.Used {
			n++
		}
	}
	return n
}

// noLinkCause says why an ENI that lost its link gives pods no addresses.
func (a *Agent) noLinkCause(id string) pool.Cause {
	nic, lost := a.unlinked[id]
	if !lost {
		return pool.Cause{}
	}
	return pool.Cause{Kind: pool.LinkMissing, Object: id, Words: fmt.Sprintf("link %s of the ENI %s is missing", nic.Device, id)}
}
