package node

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/conntrack"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// forgetConnections has the kernel forget the connections of addresses that are new on
// their ENI and that nobody has yet. What is tracked for one of them is of an earlier
// life: the mark in it says by which ENI replies leave, and that may be another one
// now. Growing the pool must not fail for it, so it returns what went wrong as a line.
func forgetConnections(ctx context.Context, was view, next *ipam.State) []string {
	known := map[netip.Addr]int{}
	_ = was(ctx, func(s *ipam.State) error { // without a node state all are new
		for _, a := range s.Addresses {
			known[a.Addr] = a.ENI
		}
		return nil
	})
	var fresh []netip.Addr
	for _, a := range next.Addresses {
		idle := a.State == eni.Free || a.State == eni.Cooling || a.State == eni.Reserved
		if index, had := known[a.Addr]; idle && (!had || index != a.ENI) {
			fresh = append(fresh, a.Addr)
		}
	}
	n, err := conntrack.Forget(fresh, anyMark(next.Settings.MarkMask)...)
	return describeForgotten(n, err, "addresses that are new on their ENI")
}

// newToSNAT returns the addresses, sorted, that get the node's address outside the VPC by
// next and did not by old, nil for none. Those that are used already are left out: a pod that
// was found while the node cache was rebuilt may have flows.
func newToSNAT(old, next *ipam.State) []netip.Addr {
	known := map[netip.Addr]bool{}
	for _, a := range next.Used() {
		known[a.Addr] = true
	}
	if old != nil {
		for _, a := range netconf.NewFirewall(old).Pool {
			known[a] = true
		}
	}
	return slices.DeleteFunc(netconf.NewFirewall(next).Pool, func(a netip.Addr) bool { return known[a] })
}

// anyMark returns marks of which every connection has one that has the mark of an ENI: a
// bit each. Connections may have marks of ENIs that the node state no longer knows.
func anyMark(mask uint32) []conntrack.Mark {
	var marks []conntrack.Mark
	for i := range bits.OnesCount32(mask) {
		bit := netconf.Mark(1<<i, mask)
		marks = append(marks, conntrack.Mark{Value: bit, Mask: bit})
	}
	return marks
}

// forgetUntranslated has the kernel forget the flows that began while the packet filter
// lacked what translates them: what gives them the node's address, or leads a host port to
// its pod. It comes after that was put back. Those that began without a mark get theirs
// from the firewall, with the next packet.
func forgetUntranslated(ctx context.Context, h *host.Host, fw netconf.Firewall) []string {
	if !fw.SNAT.IsValid() && len(fw.Ports) == 0 {
		return nil
	}
	local, err := h.Addrs()
	var exit func(from, to netip.Addr) string
	if err == nil {
		exit, err = h.Exits()
	}
	if err != nil {
		return []string{fmt.Sprintf("flows that began without the packet filter are still tracked: %v", err)}
	}
	waitInFlight(ctx)
	n, err := conntrack.ForgetUnanswered(fw.Untranslated(local, exit))
	return describeForgotten(n, err, "pods that began without their translation")
}

// forgetMisdirected has the kernel forget the flows of pods that the VPC would drop since
// what is inside it changed. They begin again: a datagram gets through at once, and a
// connection of TCP is refused by its peer, where it would hang for a quarter of an hour.
func forgetMisdirected(ctx context.Context, h *host.Host, viewState view) []string {
	const whose = "pods whose way out is another one since vpcCIDRs or snat changed; they begin again"
	exit, err := h.Exits()
	if err != nil {
		return describeForgotten(0, err, whose)
	}
	var pick func(netconf.Flow) bool
	if err := viewState(ctx, func(s *ipam.State) error { pick = netconf.Misdirected(s, exit); return nil }); err != nil {
		return describeForgotten(0, err, whose)
	}
	waitInFlight(ctx)
	n, err := conntrack.ForgetPicked(pick)
	return describeForgotten(n, err, whose)
}

// waitInFlight waits until a packet that met the rules of before is tracked.
func waitInFlight(ctx context.Context) {
	select {
	case <-time.After(inFlight):
	case <-ctx.Done():
	}
}

func describeForgotten(n int, err error, whose string) []string {
	switch {
	case errors.Is(err, conntrack.ErrUnsupported):
		return nil
	case err != nil:
		return []string{fmt.Sprintf("connections of %s are still tracked: %v", whose, err)}
	case n > 0:
		return []string{fmt.Sprintf("forget %d connections of %s", n, whose)}
	}
	return nil
}
