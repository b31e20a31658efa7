package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
)

// endReservations gives back what was reserved for pods, on a node whose agent calls the cloud: nobody names those pods any more, and
// what is a topology's must not become any pod's. What a pod has stays its own until the pod ends, and cools down then.
func (s self) endReservations(ctx context.Context, cached *ipam.State, now time.Duration) (*ipam.State, error) {
	var kept []netip.Addr
	for i := range cached.Addresses {
		if line := &cached.Addresses[i]; cached.CanUnreserve(line, now) && line.IsKept() {
			kept = append(kept, line.Addr)
		}
	}
	free := s.onTopologies(cached, now)
	if len(kept)+len(free) == 0 || s.holds() {
		return cached, nil // nearly always; else it is not the agent's to decide
	}
	var back []netip.Addr
	err := s.Cache.Update(ctx, func(s *ipam.State) error {
		back = append(s.Unreserve(kept, now), s.StartRelease(free, now)...)
		return nil
	})
	if err != nil {
		return cached, fmt.Errorf("end reservations: %w", err)
	}
	s.unsynced = s.unsynced || len(back) > 0
	s.logAddresses("withdraw", back, "no operator reserves addresses on this node")
	return s.read(ctx)
}

// topologiesOf returns which ENIs are for pods of topologies alone, nil for none. An agent that calls the cloud itself is told that by nobody else.
func topologiesOf(s order.Status) (by map[string]string) {
	for _, e := range s.ENIs {
		if e.Topology != "" {
			if by == nil {
				by = map[string]string{}
			}
			by[e.ID] = e.Topology
		}
	}
	return by
}

// onTopologies returns what is free on ENIs that are for pods of topologies alone. On a node whose agent calls the cloud it goes back: their subnet is
// no other pod's.
func (a *Agent) onTopologies(cached *ipam.State, now time.Duration) (addrs []netip.Addr) {
	if len(a.mem.Topologies) == 0 {
		return nil // nearly always
	}
	id := ids(cached)
	for i := range cached.Addresses {
		line := &cached.Addresses[i]
		_, is := a.mem.Topologies[id[line.ENI]]
		if _, free := cached.FreeSince(line, now); is && free {
			addrs = append(addrs, line.Addr)
		}
	}
	return addrs
}

// reservedAgain returns what goes back and is reserved on this node again: its release is taken back, if that can still be.
func reservedAgain(cached *ipam.State, reserved []order.Reserved) (addrs []netip.Addr) {
	if len(reserved) == 0 {
		return nil
	}
	for i := range cached.Addresses {
		if line := &cached.Addresses[i]; line.State == eni.Releasing && len(order.ReservedAmong(reserved, []netip.Addr{line.Addr})) > 0 {
			addrs = append(addrs, line.Addr)
		}
	}
	return addrs
}

// findsKept tells whether some of what is there again is a pod's that it is kept for: of such a one the kernel forgot the way to the pod.
func findsKept(cached *ipam.State, found []netip.Addr) bool {
	return len(found) > 0 && slices.ContainsFunc(cached.Addresses, func(line eni.Address) bool { return line.HasMoved() && slices.Contains(found, line.Addr) })
}

// logReserved logs what is reserved, by the pods that it is for.
func (o *ordered) logReserved(what string, list []order.Reserved) {
	for _, r := range list {
		o.steps++
		o.Log.Info(what, "address", r.Addr, "topology", r.Topology, "pod", r.PodName(), "reason", "the operator reserves it")
	}
}
