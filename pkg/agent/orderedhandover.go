package agent

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
)

// The most that a handover takes beside mostListed releases.
const (
	mostTokens = 16
	mostGoing  = 64 // ENIs
)

// lateCall is how long a call may take effect after it was sent: for as long clouds take its signature.
const lateCall = 6 * time.Minute

// handover is what the cloud may have heard of from this node's agents, nil where there was none in this boot: to say
// that there was, though nothing is under way, makes the operator describe before it tells what the node has. whole is false where
// that is more than the object takes, or is not known: whether an ENI serves pods, where the node cache is not there or is damaged. What is
// left out is not on its way any more once awaitLate says so.
func (o *ordered) handover(cached *ipam.State, err error) (h *order.Handover, whole bool) {
	m := &o.mem
	if err != nil && m.Scale == nil && !m.Operated {
		return nil, true
	}
	h = &order.Handover{}
	for _, c := range m.Creates {
		h.Tokens = append(h.Tokens, c.Token)
	}
	for _, addr := range slices.SortedFunc(maps.Keys(m.Begun), netip.Addr.Compare) {
		h.Release = append(h.Release, netip.PrefixFrom(addr, addr.BitLen()))
		if err != nil {
			continue
		}
		// Whether it is of a delegated prefix or beside them the operator knows: one of both names it.
		bits := cached.Settings.V4Block
		if addr.Is6() {
			bits = cached.Settings.V6Block
		}
		if p, wrong := addr.Prefix(bits); bits > 0 && wrong == nil && !slices.Contains(h.Release, p) {
			h.Release = append(h.Release, p)
		}
	}
	unknown := err != nil || len(cached.Damaged) > 0
	for _, id := range slices.Sorted(maps.Keys(m.Leaving)) {
		// Of one that serves pods no call is under way: its deletion was withdrawn, or never begun, where an agent was killed in between.
		if m.Leaving[id] && !unknown && !order.Serves(cached, id) {
			h.ReleaseInterfaces = append(h.ReleaseInterfaces, id)
		}
	}
	h, whole = cutHandover(h)
	return h, whole && !(unknown && len(m.Leaving) > 0)
}

// cutHandover returns as much as the object takes. Prefixes come before the addresses that they may have.
func cutHandover(h *order.Handover) (cut *order.Handover, whole bool) {
	if len(h.Release) > mostListed {
		prefixes := slices.DeleteFunc(slices.Clone(h.Release), netip.Prefix.IsSingleIP)
		h.Release = append(prefixes, slices.DeleteFunc(h.Release, func(p netip.Prefix) bool { return !p.IsSingleIP() })...)
	}
	cut = &order.Handover{Tokens: h.Tokens[:min(len(h.Tokens), mostTokens)], Release: h.Release[:min(len(h.Release), mostListed)],
		ReleaseInterfaces: h.ReleaseInterfaces[:min(len(h.ReleaseInterfaces), mostGoing)]}
	return cut, len(cut.Tokens)+len(cut.Release)+len(cut.ReleaseInterfaces) == len(h.Tokens)+len(h.Release)+len(h.ReleaseInterfaces)
}

// awaitLate tells whether a handover that is more than the object takes has to wait: until no call of the agent can take effect any more.
func (o *ordered) awaitLate(now time.Duration) bool {
	if o.lateUntil == 0 {
		o.lateUntil = now + lateCall
		o.handsOverAt = o.lateUntil
	}
	return now < o.lateUntil
}
