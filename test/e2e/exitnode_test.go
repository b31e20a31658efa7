package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Tailscale's rule for an exit node stands behind enipool's and before the main table: it
// diverts what enipool leaves to that one, pods of ENI 0 and, with SNAT, those of others.
func TestPodsThatATunnelBehindEnipoolsRulesDivertsPassItByTheRemedy(t *testing.T) {
	for name, s := range map[string]ipam.Settings{
		"map":   {Routing: ipam.Map, Firewall: ipam.Nftables, Families: []eni.Family{eni.IPv4}, CoolDown: time.Second},
		"rules": {Routing: ipam.Rule, Firewall: ipam.Nftables, Families: []eni.Family{eni.IPv4}, CoolDown: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			v := newMarked(t, s)
			v.node.Run(t, "sh", "-ec", "ip link add tailscale0 type veth peer name tunnel; ip link set tailscale0 up; ip link set tunnel up; ip route add default dev tailscale0 table 52; ip rule add priority 5270 lookup 52")
			lines := v.checkNode()
			if len(lines) != 1 || !strings.Contains(lines[0], "comes before the kernel's to the main table, which enipool leaves these packets to, priority 5270 from all lookup 52: what pods of the ENI eth0 send leaves by its route default dev tailscale0; remove it (ip rule del priority 5270 from all lookup 52) or let pods pass it by (") {
				t.Fatalf("check says %q", lines)
			}
			if _, err := v.pods["a"].Try("ping", "-c", "1", "-W", "1", internet4); err == nil {
				t.Error("pod a is not diverted")
			}
			v.node.Run(t, "sh", "-c", regexp.MustCompile(`pass it by \((.*)\)`).FindStringSubmatch(lines[0])[1])
			v.everyWay()
			if lines := v.checkNode(); len(lines) > 0 {
				t.Errorf("after the remedy: %q", lines)
			}
		})
	}
}
