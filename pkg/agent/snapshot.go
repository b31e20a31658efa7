package agent

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
)

// snapshot puts together what a plan is made from.
func (a *Agent) snapshot(book *ipam.State, now time.Duration) pool.Snapshot {
	s := pool.Snapshot{Families: book.Settings.Families, Limits: a.view.limits}
	for _, nic := range book.ENIs {
		s.ENIs = append(s.ENIs, a.eni(book, nic, now))
	}
	for _, nic := range a.view.enis {
		if nic.Index < 0 || hasENI(book, nic.ID) {
			continue
		}
		if nic.Ours && nic.Token != "" && !a.making(nic.Token) {
			// Attached, but its link is not on the node yet.
			s.Pending = append(s.Pending, pool.Pending{Subnet: nic.Subnet, Slots: slots(nic, s.Families)})
		} else if !nic.Ours {
			s.Foreign++
		}
	}
	for _, c := range a.mem.Creates {
		s.Pending = append(s.Pending, pool.Pending{Subnet: c.Subnet, Slots: c.Slots})
	}
	for _, n := range a.view.subnets {
		blocked := a.holds.active("subnet "+n.ID, now)
		s.Subnets = append(s.Subnets, pool.Subnet{ID: n.ID, Free: n.Free, New: n.New && !a.holds.active("create", now), Blocked: blocked})
	}
	return s
}

func (a *Agent) eni(book *ipam.State, nic eni.Interface, now time.Duration) pool.ENI {
	have, known := a.view.eni(nic.ID)
	_, stray := a.strays[nic.ID]
	_, leaving := a.mem.Leaving[nic.ID]
	_, unsure := a.mem.Unsure[nic.ID]
	e := pool.ENI{ID: nic.ID, Index: nic.Index, Subnet: have.Subnet, Keep: !have.Ours,
		Busy:    !known || stray || unsure || a.holds.active("eni "+nic.ID, now),
		Leaving: leaving,
	}
	if c := a.calls[eniKey(nic.ID)]; c != nil {
		e.Busy = true
		if c.op == "AssignAddresses" {
			e.Coming = append(e.Coming, pool.Coming{Family: c.family, Count: c.count})
		}
	}
	here := book.Count(now, func(line eni.Address) bool { return line.ENI == nic.Index }).Total
	e.Addresses = make([]pool.Address, 0, here)
	for i := range book.Addresses {
		if book.Addresses[i].ENI != nic.Index {
			continue
		}
		line := book.Addresses[i]
		if line.State == eni.Cooling && line.Since+book.Settings.CoolDown <= now {
			line.State, line.Since = eni.Free, line.Since+book.Settings.CoolDown
		}
		_, missing := a.suspects[line.Addr]
		e.Addresses = append(e.Addresses, pool.Address{Address: line, Committed: a.mem.Begun[line.Addr] || missing})
	}
	return e
}

func hasENI(book *ipam.State, id string) bool {
	return slices.ContainsFunc(book.ENIs, func(nic eni.Interface) bool { return nic.ID == id })
}

// making tells whether an ENI with the token is still being made.
func (a *Agent) making(token string) bool {
	return slices.ContainsFunc(a.mem.Creates, func(c create) bool { return c.Token == token })
}

// slots is how many pods the ENI's addresses are enough for.
func slots(nic cloud.Interface, families []eni.Family) int {
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

// demand is how many slots are wanted: by sandboxes that hold addresses, by the
// addresses that rest, and by those who wait. assigned is the part that can't be
// taken back; owned is what there is.
type demand struct{ wanted, assigned, owned, releasing, waiting int }

func count(book *ipam.State, waiting []nodecache.Waiter, now time.Duration) demand {
	owners := make(map[eni.Key]bool, len(book.Addresses))
	var served map[podName]time.Duration
	if len(waiting) > 0 {
		served = make(map[podName]time.Duration, len(book.Addresses))
	}
	var resting, owned, releasing [eni.IPv6 + 1]int
	for i := range book.Addresses {
		line := &book.Addresses[i]
		f := line.Family()
		switch {
		case line.State == eni.Releasing:
			releasing[f]++
		case line.State == eni.Used:
			owners[line.Owner.Key] = true
			if served != nil {
				served[nameOf(*line.Owner)] = max(served[nameOf(*line.Owner)], line.Since)
			}
		case line.State == eni.Cooling && line.Since+book.Settings.CoolDown > now:
			resting[f]++
		}
		if line.State != eni.Releasing && !line.Lost {
			owned[f]++
		}
	}
	d := demand{assigned: len(owners) + most(resting[:]), releasing: most(releasing[:])}
	for _, w := range waiting {
		// An earlier sandbox of the pod may have waited in vain before this one.
		since, got := served[nameOf(w.Owner)]
		if !owners[w.Owner.Key] && !(got && since >= w.Since) {
			d.waiting++
		}
	}
	d.wanted = d.assigned + d.waiting
	d.owned = owned[book.Settings.Families[0]]
	for _, f := range book.Settings.Families {
		d.owned = min(d.owned, owned[f])
	}
	return d
}

// podName is what identifies an interface of a pod, whichever its sandbox.
type podName struct{ network, ifName, namespace, pod, uid, container string }

func nameOf(o eni.Owner) podName {
	n := podName{network: o.Network, ifName: o.IfName, namespace: o.Namespace, pod: o.Pod, uid: o.UID}
	if o.Pod == "" {
		n.container = o.Container
	}
	return n
}

func most(counts []int) int {
	n := 0
	for _, c := range counts {
		n = max(n, c)
	}
	return n
}
