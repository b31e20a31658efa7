package firewall_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
)

// Packets of pods are lost before and behind routing as well as at hook forward.
func TestBlockedFindsWhatIsDroppedBeforeAndBehindRouting(t *testing.T) {
	newWorld(t)
	pod := netip.MustParseAddr("10.0.0.11")
	flows := firewall.PodFlows(eni.IPv4, "eniaaaaaaaaaaa", "eth0")
	flows[0].Src, flows[1].Dst = pod, pod
	const base = "add table ip mine; add chain ip mine p { type filter hook "
	for _, tt := range []struct {
		name, rules string
		send, get   bool
	}{
		{"the subnet before routing", "prerouting priority raw; }; add rule ip mine p ip saddr 10.0.0.0/24 drop", true, false},
		{"what is sent to the subnet", "prerouting priority 0; }; add rule ip mine p iifname eth0 ip daddr 10.0.0.0/24 drop", false, true},
		{"all pods' links", "prerouting priority mangle; }; add rule ip mine p iifname eni* drop", true, false},
		{"the subnet behind routing", "postrouting priority 0; }; add rule ip mine p ip saddr 10.0.0.0/24 drop; add rule ip mine p ip daddr 10.0.0.0/24 drop", true, true},
		{"a policy behind routing", "postrouting priority mangle; policy drop; }; add rule ip mine p oifname lo accept; add rule ip mine p oifname eth0 accept", false, true},
		{"sources that no pod has", "prerouting priority raw; }; add rule ip mine p iifname eni* ip saddr != 10.0.0.0/16 drop", false, false},
		{"bogons from outside", "prerouting priority raw; }; add rule ip mine p iifname eth0 ip saddr 10.99.0.0/16 drop", false, false},
		{"a check of the way back", "prerouting priority raw; }; add rule ip mine p fib saddr . iif oif missing drop", false, false},
		{"what is not valid", "prerouting priority mangle; }; add rule ip mine p ct state invalid drop; add rule ip mine p tcp flags & (fin|syn) == (fin|syn) drop", false, false},
		{"behind the translation", "postrouting priority 150; }; add rule ip mine p oifname nowhere ip saddr 10.0.0.0/24 drop", false, false},
		{"links that lead elsewhere", "postrouting priority 0; }; add rule ip mine p oifname docker0 ip saddr 10.0.0.0/24 drop", false, false},
	} {
		sh(t, "nft '%s'", base+tt.rules)
		lines, err := firewall.Blocked(t.Context(), flows)
		said := strings.Join(lines, "\n")
		if send, get := strings.Contains(said, flows[0].What), strings.Contains(said, flows[1].What); err != nil || send != tt.send || get != tt.get ||
			said != "" && !strings.HasSuffix(said, "; have its owner let pods' packets pass") {
			t.Errorf("%s: %q, %v", tt.name, said, err)
		}
		for _, way := range []struct {
			from, to string
			drops    bool
		}{{"pA", "10.0.5.5:80", tt.send || tt.get}, {"far", "10.0.0.11:80", tt.send || tt.get}} { // the answers are cut off as well
			patience := 10 * time.Second
			if way.drops {
				patience = 300 * time.Millisecond
			}
			if _, err := ask(way.from, way.to, patience); (err != nil) != way.drops {
				t.Errorf("%s: %s to %s: %v; dropped %v expected", tt.name, way.from, way.to, err, way.drops)
			}
		}
		sh(t, "nft delete table ip mine")
	}
}
