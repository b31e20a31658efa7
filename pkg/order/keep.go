package order

import (
	"net/netip"
	"slices"
)

// Reserve returns the status that keeps these addresses for pods of topologies, and whether anything of it is new. Those of seized that the
// node has are accepted before its agent's word: no pod there gets them any more, whether the agent knew for whom they were kept or not. Whoever leads
// next finishes that.
func (t *Term) Reserve(v View, reserved []Reserved, seized ...netip.Addr) (Status, bool) {
	if !t.Led(v.Status) || IsBehind(v) {
		return v.Status, false
	}
	accepted, present := setOf(v.Status.Limits, v.Status.Releasing), v.Status.presentAddrs()
	seized = slices.DeleteFunc(slices.Clone(seized), func(a netip.Addr) bool { return accepted[a] || !present[a] })
	if len(seized) == 0 && slices.Equal(v.Status.Reserved, reserved) {
		return v.Status, false
	}
	next := t.beginChange(v.Status)
	next.Reserved = slices.Clone(reserved)
	for _, a := range seized {
		next.Releasing = append(next.Releasing, netip.PrefixFrom(a, a.BitLen()))
	}
	return t.endChange(v, next), true
}

// Takeable returns those of the addresses that may be taken from an ENI whatever the node's agent publishes: they are accepted, in a status that
// no earlier leader can write any more, and a claim says that they go.
func (t *Term) Takeable(v View, id string, addrs []netip.Addr) (list []netip.Prefix) {
	e := v.Status.findENI(id)
	if v.Status.Epoch != t.Epoch || e == nil || e.State != Attached || slices.Contains(v.Status.LeavingInterfaces, id) {
		return nil
	}
	accepted, on := setOf(v.Status.Limits, v.Status.Releasing), setOf(v.Status.Limits, e.Addresses)
	for _, a := range addrs {
		if accepted[a] && on[a] {
			list = append(list, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return list
}
