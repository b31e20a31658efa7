package agent

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
)

// emptyFor is for how long an ENI in the subnet of a topology has carried nothing when it goes back. The pods of a StatefulSet that is rolled out come
// back sooner, and an ENI takes its time to be made.
const emptyFor = 10 * time.Minute

// noteEmpty keeps since when ENIs that are for pods of topologies alone carry nothing. The pool's plan does not look at those. Another agent
// begins anew.
func (o *ordered) noteEmpty(cached *ipam.State, now time.Duration) {
	before := o.emptySince
	o.emptySince = nil
	for _, e := range o.newest.Status.ENIs {
		if !isEmpty(e, o.newest.Status, cached) {
			continue
		}
		if o.emptySince == nil {
			o.emptySince = map[string]time.Duration{}
		}
		if o.emptySince[e.ID] = now; before[e.ID] > 0 {
			o.emptySince[e.ID] = before[e.ID]
		}
	}
}

// isEmpty tells whether an ENI of a topology carries nothing: by the status, which has what is about to come too, and by the node cache, where a pod may
// run with what the cloud has taken away.
func isEmpty(e order.ENI, s order.Status, cached *ipam.State) bool {
	if e.Topology == "" || e.State != order.Attached || e.Index == 0 || len(e.Addresses) > 0 {
		return false
	}
	nic := eni.Interface{ID: e.ID, V4: e.V4, V6: e.V6}
	if at := slices.IndexFunc(cached.ENIs, func(n eni.Interface) bool { return n.ID == e.ID }); at >= 0 {
		nic = cached.ENIs[at]
		if slices.ContainsFunc(cached.Addresses, func(line eni.Address) bool { return line.ENI == nic.Index }) {
			return false
		}
	}
	there := func(addr netip.Addr) bool {
		return slices.ContainsFunc(s.ENIs, func(e order.ENI) bool { return slices.Contains(e.Addresses, netip.PrefixFrom(addr, addr.BitLen())) })
	}
	return !slices.ContainsFunc(s.Reserved, func(r order.Reserved) bool { return nic.MayHave(r.Addr) && !there(r.Addr) })
}

// emptyENIs returns the ENIs that have been empty for so long that they go back.
func (o *ordered) emptyENIs(now time.Duration) (list []string) {
	for _, id := range slices.Sorted(maps.Keys(o.emptySince)) {
		if now-o.emptySince[id] >= emptyFor {
			list = append(list, id)
		}
	}
	return list
}

// emptyAgain is when the first of the others has been empty for so long, 0 for none.
func (o *ordered) emptyAgain(now time.Duration) (at time.Duration) {
	for _, since := range o.emptySince {
		if due := since + emptyFor; due > now && (at == 0 || due < at) {
			at = due
		}
	}
	return at
}
