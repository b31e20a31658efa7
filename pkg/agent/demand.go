package agent

import (
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// demand is how many slots are needed: by sandboxes that hold addresses, by the
// addresses that rest, by those who wait, and by pods of which nothing was heard here
// yet. assigned is the part that can't be taken back; owned is what there is.
type demand struct {
	total, assigned          int
	used, waiting, bound     int // sandboxes with an address, ADDs without, other pods without
	owned, free, releasing   int
	pods                     int  // that need an address, as the API server has it
	watched, synced, partial bool // it is asked; it has answered; not all of the above could be read
}

// unserved is how many pods have no address and need one.
func (d demand) unserved() int { return d.waiting + d.bound }

// heard is who else needs an address, as the ADDs that wait and the cluster tell.
type heard struct {
	waiting      []nodecache.PendingADD
	pods, ending []eni.Pod // of the cluster: those that need one, and those that are being deleted
	watched      bool      // there is a cluster to ask
	synced       bool      // it has answered
	failed       bool      // those who wait could not be read
}

// listen asks who needs an address.
func (a *Agent) listen(now time.Duration) (h heard, err error) {
	h.waiting, err = a.PendingADDs(now)
	h.failed = err != nil
	if a.Pods != nil {
		h.watched = true
		h.pods, h.synced = a.Pods()
		h.pods = a.withoutElsewhere(h.pods, now)
	}
	if a.Ending != nil {
		h.ending = a.Ending()
	}
	return h, err
}

// demandOf returns the demand of what was heard with the cache, and which ADDs wait. ENIs below first get no
// addresses for pods. known is a set that is overwritten.
func demandOf(cached *ipam.State, h heard, first int, now time.Duration, known podSet) (demand, []nodecache.PendingADD) {
	d, waiting := countDemand(cached, now, first), lacking(cached, h.waiting)
	d.waiting = len(waiting)
	if d.watched = h.watched; h.synced {
		d.synced, d.pods = true, len(h.pods)
		d.bound = max(0, known.unheard(h.pods, cached, waiting)-servedElsewhere(cached, h.ending, waiting, known))
	}
	d.total = d.assigned + d.waiting + d.bound
	d.partial = h.failed || d.watched && !d.synced
	return d, waiting
}

// servedElsewhere is how many of the pods that do not end have an address by another plugin. Which
// pod an address is of is not known: those that end and have none of ours are taken to have one.
func servedElsewhere(cached *ipam.State, ending []eni.Pod, waiting []nodecache.PendingADD, known podSet) int {
	served := servedByOthers(cached)
	if served == 0 {
		return 0 // nearly always
	}
	return max(0, served-known.unheard(ending, cached, waiting))
}

// countDemand counts what the cache says. What is on its way back on ENIs below first is not counted: it
// may be so for as long as a pod has one of its block, and is no part of the plan.
func countDemand(cached *ipam.State, now time.Duration, first int) demand {
	// Where all lines are of one family each used one is an owner, and who that is
	// does not matter.
	var owners map[eni.Key]bool
	if !ofOneFamily(cached) {
		owners = make(map[eni.Key]bool, len(cached.Addresses))
	}
	var d demand
	var resting, free, owned, releasing [eni.IPv6 + 1]int
	for i := range cached.Addresses {
		line := &cached.Addresses[i]
		f := line.Family()
		switch {
		case line.State == eni.Releasing:
			if line.ENI >= first {
				releasing[f]++
			}
		case line.State == eni.Held || line.IsKept(): // others', or for one pod alone: neither demand nor supply
		case line.State != eni.Used && line.State != eni.Reserved:
			if cached.IsCooling(line, now) {
				resting[f]++
			} else {
				free[f]++
			}
		case owners == nil:
			d.used++
		case line.State == eni.Used:
			owners[line.Owner.Key] = true
		default: // set aside: its pod is about to take it
			owners[eni.Key{Container: "pod " + line.Reservation.UID}] = true
		}
		if line.State != eni.Releasing && line.State != eni.Held && !line.IsKept() && !line.Lost {
			owned[f]++
		}
	}
	d.used += len(owners)
	d.assigned, d.releasing = d.used+largestOf(resting[:]), largestOf(releasing[:])
	d.total = d.assigned
	d.owned, d.free = scarcestOf(cached, owned[:]), scarcestOf(cached, free[:])
	return d
}

// restedWithin counts the slots that will have rested within that time.
func restedWithin(cached *ipam.State, now, within time.Duration) int {
	var counts [eni.IPv6 + 1]int
	for i := range cached.Addresses {
		line := &cached.Addresses[i]
		if cached.IsCooling(line, now) && !cached.IsCooling(line, now+within) {
			counts[line.Family()]++
		}
	}
	return scarcestOf(cached, counts[:])
}

func ofOneFamily(cached *ipam.State) bool {
	for i := range cached.Addresses {
		if cached.Addresses[i].Family() != cached.Addresses[0].Family() {
			return false
		}
	}
	return true
}

// lacking returns those of the waiting that have no address.
func lacking(cached *ipam.State, waiting []nodecache.PendingADD) []nodecache.PendingADD {
	if len(waiting) == 0 {
		return nil
	}
	owners := make(map[eni.Key]bool, len(cached.Addresses))
	served := make(map[podName]time.Duration, len(cached.Addresses))
	for i := range cached.Addresses {
		if line := &cached.Addresses[i]; line.State == eni.Used {
			owners[line.Owner.Key] = true
			served[nameOf(*line.Owner)] = max(served[nameOf(*line.Owner)], line.Since)
		}
	}
	var list []nodecache.PendingADD
	for _, w := range waiting {
		// An earlier sandbox of the pod may have waited in vain before this one.
		since, got := served[nameOf(w.Owner)]
		if !owners[w.Owner.Key] && !(got && since >= w.Since) {
			list = append(list, w)
		}
	}
	return list
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

// largestOf returns the largest of the counts by family: a sandbox that has one of each is one.
func largestOf(counts []int) int {
	n := 0
	for _, c := range counts {
		n = max(n, c)
	}
	return n
}

// scarcestOf returns the count of the scarcest of the node's families.
func scarcestOf(cached *ipam.State, counts []int) int {
	n := counts[cached.Settings.Families[0]]
	for _, f := range cached.Settings.Families {
		n = min(n, counts[f])
	}
	return n
}
