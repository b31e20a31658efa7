package cni

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// With the subnet's mask the kernel would take a range that the router is not in for its own
// link, and refuse the route by that router.
func TestAnAddressOfARangeForPodsStandsAloneOnALinkOfOthers(t *testing.T) {
	lease := ipam.Lease{Interface: eni.Interface{ID: "eni-a", V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.10/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
		Pods: []netip.Prefix{netip.MustParsePrefix("10.64.0.0/25")}}}
	for addr, want := range map[string]struct {
		prefix string
		routes []string
	}{
		"10.0.0.11": {"10.0.0.11/24", []string{"0.0.0.0/0 10.0.0.1"}},
		"10.64.0.5": {"10.64.0.5/32", []string{"10.0.0.1/32 invalid IP", "0.0.0.0/0 10.0.0.1"}},
	} {
		lease.Addresses = []eni.Address{{Addr: netip.MustParseAddr(addr)}}
		res, in := linkResult(nil, -1, lease, "eth0")
		if len(res.IPs) != 1 || res.IPs[0].Address.String() != want.prefix || res.IPs[0].Gateway.String() != "10.0.0.1" {
			t.Errorf("%s: the result has %v", addr, res.IPs)
		}
		if len(res.Routes) != 1 || res.Routes[0].Dst.String() != "0.0.0.0/0" || res.Routes[0].GW.String() != "10.0.0.1" {
			t.Errorf("%s: the result has the routes %v", addr, res.Routes)
		}
		if len(in.Routes) != len(want.routes) {
			t.Fatalf("%s: the link gets %v", addr, in.Routes)
		}
		for n, r := range in.Routes {
			if got := r.Dst.String() + " " + r.Gateway.String(); got != want.routes[n] {
				t.Errorf("%s: route %d is %s, want %s", addr, n, got, want.routes[n])
			}
		}
	}
}
