package netconf

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// FastPath is what the fast path's program needs to know of the node; see
// host/fastpath. What it tells of an address is what the firewall's map tells: the
// two change together, in the same order before and after the node cache.
type FastPath struct {
	Mask uint32         // our bits of packet and connection marks
	ENIs []string       // devices, sorted
	Pool []PoolMark     // IPv4 addresses that pods may have, sorted
	SNAT bool           // what leaves the VPC has the node's address
	VPC  []netip.Prefix // IPv4 ranges that see the pod's own, sorted, none inside another; SNAT only
	// Known is how long what was found out about a connection's packets holds. An
	// address that is free again may be another pod's only later.
	Known time.Duration
}

// mostKnown bounds FastPath.Known: a route or an address that somebody changes
// holds for established connections no later.
const mostKnown = 250 * time.Millisecond

// PoolMark is the mark that a packet with the source leaves with, 0 for none.
type PoolMark struct {
	Addr netip.Addr
	Mark uint32
}

// NewFastPath returns what the fast path should know for the node state. As in
// NewFirewall, addresses on their way back to the cloud are left out.
func NewFastPath(state *ipam.State) FastPath {
	known := FastPath{Mask: state.Settings.MarkMask, Known: min(mostKnown, state.Settings.CoolDown)}
	for _, nic := range state.ENIs {
		known.ENIs = append(known.ENIs, nic.Device)
		known.SNAT = known.SNAT || nic.Index == 0 && state.Settings.SNAT && nic.V4.IsValid()
	}
	slices.Sort(known.ENIs)
	for _, a := range state.Addresses {
		if a.State == eni.Releasing || a.HasMoved() || !a.Addr.Is4() {
			continue
		}
		p := PoolMark{Addr: a.Addr}
		if a.ENI > 0 {
			p.Mark = Mark(a.ENI, state.Settings.MarkMask)
		}
		known.Pool = append(known.Pool, p)
	}
	slices.SortFunc(known.Pool, func(a, b PoolMark) int { return a.Addr.Compare(b.Addr) })
	if known.SNAT {
		known.VPC = mergeIPv4(state.Settings.VPC)
	}
	return known
}

// FastPathCounters are packets that took the fast path: out of the node, into a
// pod from outside, and from pod to pod on the node.
type FastPathCounters struct{ Out, In, Local uint64 }
