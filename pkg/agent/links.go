package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// links is what is known of the links of the node's ENIs: a value, and what follows from it.
// nolink.go looks at the node and tells people.
type links struct {
	awaited []string                 // ENIs of the cloud whose link is not on the node
	since   time.Duration            // when the newest of them was missed first
	lost    map[string]eni.Interface // ENIs of the cache that have lost their links, by ID
	wrong   []string                 // what is wrong with the MACs of the ENIs' links
}

// await takes in the ENIs whose link has not come. A new one of them is looked for often, however
// long another has been missing: nothing announces it.
func (l links) await(ids []string, now time.Duration) links {
	if slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(l.awaited, id) }) {
		l.since = now
	}
	l.awaited = ids
	return l
}

// lose takes in which devices are on the node, and returns which of the cache's ENIs lost their
// links with that, and which have them again or are not in the cache any more. An ENI that is being deleted is
// to lose its link.
func (l links) lose(cached *ipam.State, devices map[string]bool, leaving func(id string) bool) (next links, gone, back []eni.Interface) {
	next, next.lost = l, map[string]eni.Interface{}
	for _, nic := range cached.ENIs {
		if devices[nic.Device] || leaving(nic.ID) {
			continue
		}
		next.lost[nic.ID] = nic
		if _, known := l.lost[nic.ID]; !known {
			gone = append(gone, nic)
		}
	}
	for _, id := range l.ids() {
		if _, still := next.lost[id]; !still {
			back = append(back, l.lost[id])
		}
	}
	return next, gone, back
}

// ids returns the ENIs that lost their links, in order.
func (l links) ids() []string { return slices.Sorted(maps.Keys(l.lost)) }

// isBack tells whether an ENI that lost its link has one again among those that are there by MAC,
// perhaps with another name.
func (l links) isBack(there map[string]eni.Interface, v view) bool {
	for mac, link := range there {
		for id, nic := range l.lost {
			if have, known := v.eni(id); link.Device == nic.Device || known && have.MAC == mac {
				return true
			}
		}
	}
	return false
}

// next is after how long links are looked for again, 0 for not before something is heard.
func (l links) next(now time.Duration) time.Duration {
	var in time.Duration
	if len(l.lost) > 0 {
		in = linkTime
	}
	if len(l.awaited) > 0 {
		if pause := linkPause(now - l.since); in == 0 || pause < in {
			in = pause
		}
	}
	return in
}

// linkPause is how long after a look for a link that has not come for so long the next one is. Most
// come within a second; one that does not come for minutes may never.
func linkPause(missing time.Duration) time.Duration {
	return min(max(missing/8, soon), 10*time.Second)
}

// linkTime is how often it is looked whether an ENI has its link again: the kernel announces
// that, but not under which name it will be known.
const linkTime = 2 * time.Second

// wrongMACs says which links of ENIs have another MAC than the cloud knows. Somebody gave it to
// them, and they may have cause to: it is not put right.
func wrongMACs(cached *ipam.State, there map[string]eni.Interface, v view) []string {
	var wrong []string
	for mac, link := range there {
		for _, nic := range cached.ENIs {
			have, known := v.eni(nic.ID)
			if link.Device == nic.Device && known && have.MAC != "" && have.MAC != mac {
				wrong = append(wrong, fmt.Sprintf("link %s of the ENI %s has the MAC %s, and the cloud knows %s and drops what its pods send: ip link set %s address %s, and end what changes it (NetworkManager, udev)",
					nic.Device, nic.ID, mac, have.MAC, nic.Device, have.MAC))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// lines tells people of the ENIs that have lost their links. cached is nil if it can't be read.
func (l links) lines(cached *ipam.State) []string {
	var lines []string
	for _, id := range l.ids() {
		nic, pods := l.lost[id], ""
		if cached != nil {
			pods = fmt.Sprintf(": the %d pods that have its addresses are cut off, and no other pod gets one until it is back", usedOn(cached, nic.Index))
		}
		lines = append(lines, fmt.Sprintf("link %s of the ENI %s is missing%s; %s", nic.Device, id, pods, health.Remedy(health.LinkMissing)))
	}
	return lines
}

// usedOn counts the addresses of the ENI that pods have.
func usedOn(cached *ipam.State, index int) (n int) {
	for i := range cached.Addresses {
		if line := &cached.Addresses[i]; line.ENI == index && line.State == eni.Used {
			n++
		}
	}
	return n
}

// cause says why an ENI that lost its link gives pods no addresses, nothing if it has its link.
func (l links) cause(id string) pool.Cause {
	nic, lost := l.lost[id]
	if !lost {
		return pool.Cause{}
	}
	return pool.Cause{Kind: pool.LinkMissing, Object: id, Words: fmt.Sprintf("link %s of the ENI %s is missing", nic.Device, id)}
}

// serves tells whether a pod may get an address of an ENI that lost its link: its last one has just left it.
func (l links) serves(cached *ipam.State) bool {
	if len(l.lost) == 0 {
		return false
	}
	id := ids(cached)
	return slices.ContainsFunc(cached.Addresses, func(line eni.Address) bool {
		_, lost := l.lost[id[line.ENI]]
		return lost && (line.State == eni.Free || line.State == eni.Cooling)
	})
}

// causes are those of all that lost their links.
func (l links) causes() (list []pool.Cause) {
	for _, id := range l.ids() {
		list = append(list, l.cause(id))
	}
	return list
}

// missing says which ENIs of the cloud wait for their links.
func (l links) missing() string {
	return "attached, but no link on the node has its MAC: " + strings.Join(l.awaited, ", ")
}
