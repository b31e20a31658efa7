package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// situation is what a plan's snapshot is put together from: values, so that what is planned is a function
// of what is known.
type situation struct {
	now      time.Duration
	pool     pool.Config
	view     *view
	doubts   doubts
	mem      *memory
	desk     *desk
	links    links
	backoffs backoffs
	first    int // lowest device index of an ENI with addresses for pods

	exhausted bool // others need what the node can spare
	pressed   bool // pods of others wait for requests
}

// situation returns what is known now.
func (a *Agent) situation(now time.Duration) situation {
	return situation{now: now, pool: a.conf.Pool, view: &a.view, doubts: a.doubts, mem: &a.mem, desk: &a.desk, links: a.links, backoffs: a.backoffs,
		first: a.firstIndex()}
}

// snapshot puts together what a plan is made from, but for the addresses of the
// ENIs: those are filled in where they matter.
func (k situation) snapshot(cached *ipam.State) pool.Snapshot {
	s := pool.Snapshot{Families: cached.Settings.Families, Limits: k.pool.Within(k.view.limits)}
	for _, nic := range cached.ENIs {
		s.ENIs = append(s.ENIs, k.eni(nic))
	}
	for _, nic := range k.view.enis {
		if nic.Index < 0 || hasENI(cached, nic.ID) {
			continue
		}
		if nic.Ours && nic.Token != "" && !k.mem.making(nic.Token) {
			// Attached, but its link is not on the node yet.
			s.Pending = append(s.Pending, pool.Pending{Subnet: nic.Subnet, Slots: slotsOfNew(nic, s.Families)})
		} else if !nic.Ours {
			s.Unmanaged++
		}
	}
	for _, c := range k.mem.Creates {
		s.Pending = append(s.Pending, pool.Pending{Subnet: c.Subnet, Slots: c.Slots})
	}
	for _, n := range k.view.subnets {
		s.Subnets = append(s.Subnets, pool.Subnet{ID: n.ID, Free: k.view.mayGive(n), New: n.New && k.view.takesNew(n),
			Blocked: k.backoffs.refusalCause(fullSubnet(n.ID), k.now), NoNew: k.backoffs.refusalCause(newENIsIn(n.ID), k.now)})
	}
	s.NoNew = k.backoffs.refusalCause(newENIsIn(""), k.now)
	return s
}

func (k situation) eni(nic eni.Interface) pool.ENI {
	have, known := k.view.eni(nic.ID)
	_, unsure := k.mem.Unsure[nic.ID]
	lost, unlinked := k.links.lost[nic.ID]
	e := pool.ENI{ID: nic.ID, Index: nic.Index, Subnet: have.Subnet, Keep: !have.Ours, NoLink: unlinked, Device: lost.Device,
		Busy:    !known || k.doubts.strays.has(nic.ID) || unsure,
		NoMore:  cmp.Or(k.backoffs.refusalCause(assignsTo(nic.ID), k.now), k.backoffs.refusalCause(adoptionOf(nic.ID), k.now)),
		Stays:   k.backoffs.active(releasesOf(nic.ID), k.now) || len(k.view.askedIn) > 0 && !slices.Contains(k.view.askedIn, have.Subnet),
		Leaving: k.mem.isLeaving(nic.ID) && !k.mayKeep(nic.ID),
	}
	if whose, is := k.mem.Topologies[nic.ID]; is {
		e.NoMore = pool.Cause{Kind: pool.RoomTaken, Object: nic.ID, Words: fmt.Sprintf("ENI %s is for pods of topology %s alone", nic.ID, whose)}
	}
	if c := k.desk.calls[eniKey(nic.ID)]; c != nil {
		e.Busy = true
		if c.op == "AssignAddresses" {
			e.Coming = append(e.Coming, pool.Coming{Family: c.family, Count: c.count})
		}
	}
	return e
}

// mayKeep tells whether the deletion of an ENI can be taken back: the cloud has not heard of it.
func (k situation) mayKeep(id string) bool {
	heard, leaving := k.mem.Leaving[id]
	return leaving && !heard && k.desk.calls[eniKey(id)] == nil
}

// fill gives the ENIs of the snapshot their addresses.
func (k situation) fill(s *pool.Snapshot, cached *ipam.State) {
	at := k.view.places()
	for i := range s.ENIs {
		e := &s.ENIs[i]
		_, others := k.mem.Topologies[e.ID]
		for _, line := range cached.Addresses {
			if line.ENI != e.Index {
				continue
			}
			if since, free := cached.FreeSince(&line, k.now); free {
				line.State, line.Since = eni.Free, since
			}
			missing := k.doubts.suspects.has(line.Addr) || at[line.Addr] != e.ID // a call has taken it since the last describe
			kept := line.State == eni.Releasing && line.Reservation != nil       // until it was withdrawn: no other pod may have it
			e.Addresses = append(e.Addresses, pool.Address{Address: line, Committed: k.mem.Begun[line.Addr] || missing || kept || others && line.State == eni.Releasing})
		}
	}
}

// steps returns what to do so that the node has the target and what is needed, and why it can't have all of that. there is how
// many addresses each ENI of the snapshot has.
func (k situation) steps(cached *ipam.State, snap pool.Snapshot, there []int, needed, target int) (steps []pool.Step, targetCauses []pool.Cause) {
	conf, most := k.pool, max(target, needed)
	if k.exhausted {
		conf.MaxAboveWatermark = 0 // what is beyond the target others need
	}
	if most != target || !pool.Settled(conf, snap, there, most) {
		k.fill(&snap, cached)
		snap.Needed = max(needed, 1) // a node without any address is not ready for pods
		targetCauses = pool.TargetCauses(conf, snap, most)
		steps = pool.Plan(conf, snap, target)
		if k.pressed {
			steps = slices.DeleteFunc(steps, func(s pool.Step) bool { return s.Spare })
		}
	}
	return append(steps, vacate(cached, snap, k.first, k.now)...), targetCauses
}

func hasENI(cached *ipam.State, id string) bool {
	return slices.ContainsFunc(cached.ENIs, func(nic eni.Interface) bool { return nic.ID == id })
}

// slotsOfNew returns how many pods the addresses of an ENI that is not in the cache yet are enough for.
func slotsOfNew(nic cloud.Interface, families []eni.Family) int {
	n := len(nic.Addresses)
	for _, f := range families {
		count := 0
		for _, addr := range nic.Addresses {
			if eni.FamilyOf(addr) == f {
				count++
			}
		}
		n = min(n, count)
	}
	return n
}
