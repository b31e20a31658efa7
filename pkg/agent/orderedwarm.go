package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
)

// What an operator keeps ready on the node for the next pods of a topology is nobody's at first. The agent gives it to a pod as soon as it sees that:
// nobody is asked, so the operator may be away. The operator sees by the address that the pod shows which one that is.

// nameKept returns what is kept ready and is a pod's from now on: of each family one on one ENI. free is what was given to a pod that is gone.
func (o *ordered) nameKept(cached *ipam.State, free []order.Reserved, now time.Duration) (list []order.Reserved) {
	ready := o.keptReady()
	if len(ready) == 0 || o.TopologyPods == nil {
		return nil // nearly always
	}
	cached = freed(cached, free, now)
	for _, pod := range o.TopologyPods() {
		if o.isServed(cached, pod) {
			continue
		}
		for _, nic := range cached.ENIs {
			if chosen := chooseReady(cached, nic.Index, pod, ready, now); len(chosen) > 0 {
				for _, r := range chosen {
					delete(ready, r.Addr)
				}
				list = append(list, chosen...)
				break
			}
		}
	}
	return list
}

// freed returns the node state without the pods that what is ready was given to and that are gone.
func freed(cached *ipam.State, free []order.Reserved, now time.Duration) *ipam.State {
	free = slices.DeleteFunc(slices.Clone(free), func(r order.Reserved) bool { return r.Pod != "" || r.UID != "" })
	if len(free) == 0 {
		return cached // nearly always
	}
	next := cached.Clone()
	next.Reserve(order.Reservations(free), now)
	return next
}

// keptReady returns what the status keeps for the next pods of topologies.
func (o *ordered) keptReady() map[netip.Addr]order.Reserved {
	var ready map[netip.Addr]order.Reserved
	for _, r := range o.newest.Status.Reserved {
		if r.Pod == "" && r.UID == "" && r.Topology != "" {
			if ready == nil {
				ready = map[netip.Addr]order.Reserved{}
			}
			ready[r.Addr] = r
		}
	}
	return ready
}

// isServed tells whether something of its topology is kept for a pod, or a pod's of its name, by the operator or here.
func (o *ordered) isServed(cached *ipam.State, pod eni.TopologyPod) bool {
	owner := eni.Owner{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID}
	isOther := func(topology string) bool { return topology != "" && topology != pod.Topology }
	return slices.ContainsFunc(o.newest.Status.Reserved, func(r order.Reserved) bool {
		return r.Namespace == pod.Namespace && r.Pod == pod.Name && !isOther(r.Topology)
	}) || slices.ContainsFunc(cached.Addresses, func(line eni.Address) bool {
		return line.Reservation != nil && !line.Lost && line.Reservation.IsFor(owner) && !isOther(line.Reservation.Topology)
	})
}

// chooseReady returns what is kept ready on an ENI for a pod, nil where a family has none that could be its own now. The operator chooses in the same order.
func chooseReady(cached *ipam.State, index int, pod eni.TopologyPod, ready map[netip.Addr]order.Reserved, now time.Duration) (chosen []order.Reserved) {
	for _, f := range cached.Settings.Families {
		best := order.Reserved{}
		for i := range cached.Addresses {
			line := &cached.Addresses[i]
			r, is := ready[line.Addr]
			if !is || line.ENI != index || line.Family() != f || r.Topology != pod.Topology || line.State != eni.Reserved || !line.Reservation.IsNobodys() {
				continue
			}
			r.Namespace, r.Pod, r.UID = pod.Namespace, pod.Name, pod.UID
			mayBe := cached.CanReserve(line, order.Reservations([]order.Reserved{r})[r.Addr], now) // it has cooled
			if mayBe && (!best.Addr.IsValid() || r.Addr.Less(best.Addr)) {
				best = r
			}
		}
		if !best.Addr.IsValid() {
			return nil
		}
		chosen = append(chosen, best)
	}
	return chosen
}

// withoutNamed returns what is to be kept, without what is nobody's by the status and was given to a pod here that still runs: the operator has yet to
// see that.
func (o *ordered) withoutNamed(list []order.Reserved, cached *ipam.State) []order.Reserved {
	if len(list) == 0 || o.TopologyPods == nil {
		return list // nearly always
	}
	pods := o.TopologyPods()
	return slices.DeleteFunc(slices.Clone(list), func(r order.Reserved) bool {
		if r.Pod != "" || r.UID != "" {
			return false
		}
		at := slices.IndexFunc(cached.Addresses, func(line eni.Address) bool { return line.Addr == r.Addr })
		if at < 0 || cached.Addresses[at].Reservation == nil {
			return false
		}
		is := *cached.Addresses[at].Reservation
		return slices.ContainsFunc(pods, func(p eni.TopologyPod) bool {
			return is.Pod != "" && p.Topology == r.Topology && is.IsFor(eni.Owner{Namespace: p.Namespace, Pod: p.Name, UID: p.UID})
		})
	})
}
