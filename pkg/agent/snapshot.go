package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// snapshot puts together what a plan is made from, but for the addresses of the
// ENIs: those are filled in where they matter.
func (a *Agent) snapshot(book *ipam.State, now time.Duration) pool.Snapshot {
	s := pool.Snapshot{Families: book.Settings.Families, Limits: a.conf.Pool.Within(a.view.limits)}
	for _, nic := range book.ENIs {
		s.ENIs = append(s.ENIs, a.eni(nic, now))
	}
	for _, nic := range a.view.enis {
		if nic.Index < 0 || hasENI(book, nic.ID) {
			continue
		}
		if nic.Ours && nic.Token != "" && !a.mem.making(nic.Token) {
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
		why, blocked := a.backoffs.refused(fullSubnet(n.ID), now)
		whyNoNew, noNew := a.backoffs.refused(newENIsIn(n.ID), now)
		s.Subnets = append(s.Subnets, pool.Subnet{ID: n.ID, Free: a.view.mayGive(n), New: n.New && a.view.takesNew(n),
			Blocked: blocked, NoNew: noNew, Why: cmp.Or(why, whyNoNew)})
	}
	if why, refused := a.backoffs.refused(newENIsIn(""), now); refused {
		s.NoNew = cmp.Or(why, "the cloud refused lately")
	}
	return s
}

func (a *Agent) eni(nic eni.Interface, now time.Duration) pool.ENI {
	have, known := a.view.eni(nic.ID)
	_, unsure := a.mem.Unsure[nic.ID]
	lost, unlinked := a.links.lost[nic.ID]
	refused, noMore := a.backoffs.refused(assignsTo(nic.ID), now)
	e := pool.ENI{ID: nic.ID, Index: nic.Index, Subnet: have.Subnet, Keep: !have.Ours, NoLink: unlinked, Device: lost.Device,
		Busy:    !known || a.doubts.strays.has(nic.ID) || unsure,
		NoMore:  noMore,
		Why:     refused,
		Stays:   a.backoffs.active(releasesOf(nic.ID), now),
		Leaving: a.mem.isLeaving(nic.ID),
	}
	if c := a.calls[eniKey(nic.ID)]; c != nil {
		e.Busy = true
		if c.op == "AssignAddresses" {
			e.Coming = append(e.Coming, pool.Coming{Family: c.family, Count: c.count})
		}
	}
	return e
}

// fill gives the ENIs of the snapshot their addresses.
func (a *Agent) fill(s *pool.Snapshot, book *ipam.State, now time.Duration) {
	at := a.view.places()
	for i := range s.ENIs {
		e := &s.ENIs[i]
		for _, line := range book.Addresses {
			if line.ENI != e.Index {
				continue
			}
			if since, free := book.FreeSince(&line, now); free {
				line.State, line.Since = eni.Free, since
			}
			missing := a.doubts.suspects.has(line.Addr) || at[line.Addr] != e.ID // a call has taken it since the last describe
			e.Addresses = append(e.Addresses, pool.Address{Address: line, Committed: a.mem.Begun[line.Addr] || missing})
		}
	}
}

func hasENI(book *ipam.State, id string) bool {
	return slices.ContainsFunc(book.ENIs, func(nic eni.Interface) bool { return nic.ID == id })
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
