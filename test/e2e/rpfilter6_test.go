package e2e

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// firewalld checks the way back of IPv6, which has no rp_filter: in its loose form pods of all
// ENIs reach what is outside of the VPC.
func TestFirewalldsLooseCheckOfTheWayBackLetsPodsOfAllENIsPass(t *testing.T) {
	v := newVPC(t, ipam.Settings{Routing: ipam.Map, Firewall: ipam.Nftables, Families: []eni.Family{eni.IPv4, eni.IPv6}, CoolDown: time.Second})
	reach := func(what string, a, b bool) {
		t.Helper()
		for id, want := range map[string]bool{"a": a, "b": b} {
			patience := "10"
			if !want {
				patience = "1"
			}
			if _, err := v.pods[id].Try("ping", "-6", "-c", "1", "-W", patience, internet6); (err == nil) != want {
				t.Errorf("%s: pod %s to %s: %v; want %v", what, id, internet6, err, want)
			}
		}
	}
	reach("no firewalld", true, true)
	for form, passes := range map[string]bool{"saddr . mark . iif": false, "saddr . mark": true} {
		v.node.Run(t, "nft", `add table inet firewalld; add chain inet firewalld filter_PREROUTING { type filter hook prerouting priority filter + 10; };
			add rule inet firewalld filter_PREROUTING icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept;
			add rule inet firewalld filter_PREROUTING meta nfproto ipv6 fib `+form+` oif missing drop`)
		reach(form, true, passes)
		v.node.Run(t, "nft", "delete", "table", "inet", "firewalld")
	}
}
