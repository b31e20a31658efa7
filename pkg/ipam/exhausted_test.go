package ipam

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

// Of each family people read how many addresses are in which state, and what others have is told
// apart from what an ENI without a link has: nobody else has that.
func TestExhaustionTellsTheStatesOfEachFamily(t *testing.T) {
	s := nodeState(t, 3, `
		10.0.0.11 0 used 10 web
		10.0.0.12 0 free 10
		2001:db8::11 0 used 10 web
		2001:db8::12 0 cooling 99
		2001:db8::13 0 free 10
		2001:db8::14 0 releasing 10
		2001:db8::21 1 free 10
		2001:db8::31 2 free 10
		2001:db8::32 2 free 10`, eni.IPv4, eni.IPv6)
	held := map[netip.Addr]string{netip.MustParseAddr("2001:db8::13"): "rule 1536"}
	for text, at := range map[string]int{"2001:db8::21": 1, "2001:db8::31": 2, "2001:db8::32": 2} {
		held[netip.MustParseAddr(text)] = NoLinkCause(s.ENIs[at])
	}
	s.MarkHeld(held, sec(100))
	const want = "no free ipv6 address: 9 addresses on 3 ENIs: ipv4 1 used, 0 cooling, 1 free; " +
		"ipv6 1 used, 1 cooling (next free in 29s), 1 releasing, 1 held by others (2001:db8::13: rule 1536), " +
		"3 on ENIs without a link (no link eth1 on this node: the link of the ENI eni-b is missing; no link eth2 on this node: the link of the ENI eni-c is missing)"
	if got := s.Exhaust("", sec(100)).Error(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
