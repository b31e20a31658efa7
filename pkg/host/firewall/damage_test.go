package firewall_test

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/go-cmp/cmp"
)

func TestNftablesDamageIsPutRight(t *testing.T) {
	for _, tt := range []struct{ name, damage, says string }{
		{"a chain is flushed", "nft flush chain inet enipool marks", "put the rules of chain marks right"},
		{"the table is flushed", "nft flush table inet enipool",
			"put the rules of chain eni0 right; put the rules of chain in0 right; put the rules of chain eni1 right; put the rules of chain in1 right; " +
				"put the rules of chain marks right; put the rules of chain spoof right; put the rules of chain snat4 right"},
		{"the table of pods is flushed", "nft flush table inet enipool-pods",
			"enipool-pods: put the rules of chain eni0 right; enipool-pods: put the rules of chain eni1 right; " +
				"enipool-pods: put the rules of chain pods right; enipool-pods: put the rules of chain sockets right; " +
				"enipool-pods: put the rules of chain hostports right; enipool-pods: put the rules of chain arriving right; " +
				"enipool-pods: put the rules of chain leaving right; enipool-pods: put the rules of chain hairpin right; " +
				"enipool-pods: put the rules of chain loopback right"},
		{"a rule is deleted", "nft delete rule inet enipool eni1 handle $(nft -a list chain inet enipool eni1 | sed -n 's/.*mark set.*handle //p')",
			"put the rules of chain eni1 right"},
		{"a rule is added in front", "nft insert rule inet enipool marks accept", "put the rules of chain marks right"},
		{"rules are in another order", "nft insert rule inet enipool marks ip6 saddr fd00::1 accept comment '\"a pod\"'", "put the rules of chain marks right"},
		{"elements are deleted", "nft delete element inet enipool source4 { 10.0.0.21 }; nft delete element inet enipool pool4 { 10.0.0.12, 10.0.0.11 }",
			"put map source4 right: add 10.0.0.21; put set pool4 right: add 10.0.0.11, 10.0.0.12"},
		{"an element leads elsewhere", "nft delete element inet enipool source6 { fd00::21 }; nft add element inet enipool source6 { fd00::21 : goto eni0 }",
			"put map source6 right: remove fd00::21 add fd00::21"},
		{"an element is too much", "nft add element inet enipool arrivals { eth7 : jump in1 }", "put map arrivals right: remove eth7"},
		{"a set is flushed", "nft flush set inet enipool vpc4",
			"put set vpc4 right: add 10.0.0.0, end 10.1.0.0, 10.2.0.0 and 1 more"},
		{"a range is too much", "nft add element inet enipool vpc4 { 10.1.0.0/16 }",
			"put set vpc4 right: remove 10.1.0.0, end 10.2.0.0"},
		{"a map is deleted", "nft flush chain inet enipool marks; nft delete map inet enipool source4",
			"put the rules of chain marks right; add map source4 with 2 elements"},
		{"chains and sets are too many", "nft add chain inet enipool more '{ type filter hook input priority 0; }'; nft add rule inet enipool more jump more2 || " +
			"nft add chain inet enipool more2; nft add set inet enipool many '{ type mark; }'",
			"remove chain more; remove chain more2; remove set or map many"},
		{"a chain is deleted", "nft flush chain inet enipool snat4; nft delete chain inet enipool snat4", "add chain snat4"},
		{"a chain has another priority", "nft delete chain inet enipool snat4; nft add chain inet enipool snat4 '{ type nat hook postrouting priority 90; }'",
			"make table inet enipool from scratch: chain snat4 is of another type, hook, priority or policy"},
		{"a chain has another policy", "nft add chain inet enipool spoof '{ policy drop; }'",
			"make table inet enipool from scratch: chain spoof is of another type, hook, priority or policy"},
		{"a chain has no hook", "nft delete chain inet enipool spoof; nft add chain inet enipool spoof",
			"make table inet enipool from scratch: chain spoof is of another type, hook, priority or policy"},
		{"a set has another type", "nft flush chain inet enipool snat4; nft delete set inet enipool pool4; nft add set inet enipool pool4 '{ type ipv6_addr; }'",
			"make table inet enipool from scratch: set pool4 is of another type"},
		{"a map has keys of another type", "nft flush chain inet enipool marks; nft delete map inet enipool source4; nft add map inet enipool source4 '{ type ipv6_addr : verdict; }'",
			"put the rules of chain marks right; put map source4 right: add 10.0.0.21, 10.0.0.22"},
		{"the table sleeps", "nft add table inet enipool '{ flags dormant; }'", "make table inet enipool from scratch: it has flags"},
		{"the table is gone", "nft delete table inet enipool", "create table inet enipool"},
		{"both tables are gone", "nft flush ruleset", "create table inet enipool-pods; create table inet enipool"},
		{"a table of a build between releases is there", "nft add table inet enipool-replies", "remove table inet enipool-replies"},
		{"the table is another one", "nft delete table inet enipool; nft add table inet enipool; nft add chain inet enipool marks '{ type filter hook input priority 0; }'",
			"make table inet enipool from scratch: chain marks is of another type, hook, priority or policy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newNode(t)
			f := netconf.NewFirewall(nodeState(ipam.Nftables, eni.IPv4, eni.IPv6))
			apply(t, f)
			sh(t, "%s", tt.damage)
			got := strings.ReplaceAll(strings.Join(apply(t, f), "; "), "nftables: ", "")
			if diff := cmp.Diff(tt.says, got); diff != "" {
				t.Error(diff)
			}
			holds(t, f)
		})
	}
}

func TestIptablesDamageIsPutRight(t *testing.T) {
	const names = `
M=$(iptables -t mangle -S | sed -n 's/^-N ENIPOOL-M/ENIPOOL-M/p') S=$(iptables -t nat -S | sed -n 's/^-N ENIPOOL-SNAT/ENIPOOL-SNAT/p') R=$(ip6tables -t raw -S | sed -n 's/^-N ENIPOOL/ENIPOOL/p')
`
	for _, tt := range []struct{ name, damage string }{
		{"all rules of a table are flushed", "iptables -t mangle -F"},
		{"a chain is flushed", "iptables -t nat -F $S; ip6tables -t raw -F $R"},
		{"a rule is removed", "iptables -t mangle -D $M 2"},
		{"a rule is added", "iptables -t nat -I $S -j ACCEPT"},
		{"a rule is replaced", "iptables -t nat -R $S 3 -d 10.9.0.0/16 -j RETURN"},
		{"rules are in another order", "iptables -t mangle -A $M $(iptables -t mangle -S $M 1 | cut -d' ' -f3-); iptables -t mangle -D $M 1"},
		{"a jump is missing", "iptables -t nat -D POSTROUTING -j $S; ip6tables -t raw -D PREROUTING -j $R"},
		{"a jump stands three times", "iptables -t mangle -A PREROUTING -j $M; iptables -t mangle -A PREROUTING -j $M"},
		{"a jump stands elsewhere too", "iptables -t nat -F $S; iptables -t nat -A PREROUTING -j $S"},
		{"a chain is gone", "iptables -t mangle -F PREROUTING; iptables -t mangle -F $M; iptables -t mangle -X $M"},
		{"an update was cut off before the jump", "iptables -t nat -D POSTROUTING -j $S; iptables -t nat -D $S 4"},
		{"a repair was cut off", "iptables -t nat -E $S ENIPOOL-OLD-${S#ENIPOOL-SNAT-}; iptables -t nat -N $S; iptables -t nat -A $S -j ACCEPT"},
		{"chains of an old version are there", "iptables -t nat -N ENIPOOL-SNAT-00000000; iptables -t nat -A POSTROUTING -j ENIPOOL-SNAT-00000000; iptables -t raw -N ENIPOOL-GONE"},
	} {
		for _, variant := range []string{"nf_tables", "legacy"} {
			t.Run(tt.name+", "+variant, func(t *testing.T) {
				newNode(t)
				if variant == "legacy" {
					legacyIptables(t)
				}
				f := netconf.NewFirewall(nodeState(ipam.Iptables, eni.IPv4, eni.IPv6))
				apply(t, f)
				sh(t, "%s", names+tt.damage)
				if did := apply(t, f); len(did) == 0 {
					t.Error("Apply told of no change")
				}
				holds(t, f)
			})
		}
	}
}
