package firewall_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/go-cmp/cmp"
)

func TestKernelHoldsTheFirewallInItsOwnWords(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		f := netconf.NewFirewall(nodeState(v.backend, v.families...))
		if did := apply(t, f); len(did) == 0 {
			t.Error("the first Apply told of no change")
		}
		holds(t, f)
	})
}

func TestFirstApplyListsTheTableAsWritten(t *testing.T) {
	newNode(t)
	f := netconf.NewFirewall(nodeState(ipam.Nftables, eni.IPv4, eni.IPv6))
	f.Ports = somePorts()
	apply(t, f)
	if diff := cmp.Diff(f.Nft(), sh(t, "nft list table inet enipool-pods; nft list table inet enipool")); diff != "" {
		t.Error(diff)
	}
}

func TestApplyChangesOnlyWhatDiffers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*ipam.State)
		nft    []string
		ipt    []string
	}{
		{"an address joins the pool", func(s *ipam.State) {
			s.Addresses = append(s.Addresses, eni.Address{Addr: netip.MustParseAddr("10.0.0.23"), ENI: 1})
		}, []string{"nftables: put map source4 right: add 10.0.0.23", "nftables: put set pool4 right: add 10.0.0.23"}, nil},
		{"an address moves to another ENI", func(s *ipam.State) {
			s.ENIs = append(s.ENIs, eni.Interface{Index: 2, Device: "eth2"})
			s.Addresses[3].ENI = 2
		}, []string{
			"nftables: enipool-pods: add chain eni2", "nftables: enipool-pods: put map replies right: add 0x00000002",
			"nftables: add chain eni2", "nftables: add chain in2", "nftables: put map arrivals right: add eth2",
			"nftables: put set marks right: add 0x00000002", "nftables: put map source4 right: remove 10.0.0.22 add 10.0.0.22",
		}, []string{
			"iptables -t mangle: add chain ENIPODS-REPLY-HASHHASH", "iptables -t mangle: jump from PREROUTING to ENIPODS-REPLY-HASHHASH",
			"iptables -t mangle: add chain ENIPOOL-MARK-HASHHASH", "iptables -t mangle: jump from PREROUTING to ENIPOOL-MARK-HASHHASH",
			"iptables -t mangle: remove a jump from PREROUTING to ENIPODS-REPLY-HASHHASH", "iptables -t mangle: remove chain ENIPODS-REPLY-HASHHASH",
			"iptables -t mangle: remove a jump from PREROUTING to ENIPOOL-MARK-HASHHASH", "iptables -t mangle: remove chain ENIPOOL-MARK-HASHHASH",
		}},
		{"an ENI goes", func(s *ipam.State) { s.ENIs, s.Addresses = s.ENIs[:1], s.Addresses[:2] }, []string{
			"nftables: enipool-pods: remove chain eni0", "nftables: enipool-pods: remove chain eni1", "nftables: enipool-pods: remove chain pods",
			"nftables: enipool-pods: remove chain sockets", "nftables: enipool-pods: remove set or map replies",
			"nftables: remove chain eni0", "nftables: remove chain eni1", "nftables: remove chain in0", "nftables: remove chain in1",
			"nftables: remove chain marks", "nftables: put set pool4 right: remove 10.0.0.21, 10.0.0.22",
			"nftables: remove set or map arrivals", "nftables: remove set or map marks", "nftables: remove set or map source4",
		}, []string{
			"iptables -t mangle: remove a jump from PREROUTING to ENIPODS-REPLY-HASHHASH", "iptables -t mangle: remove chain ENIPODS-REPLY-HASHHASH",
			"iptables -t mangle: remove a jump from OUTPUT to ENIPODS-SOCKET-HASHHASH", "iptables -t mangle: remove chain ENIPODS-SOCKET-HASHHASH",
			"iptables -t mangle: remove a jump from PREROUTING to ENIPOOL-MARK-HASHHASH", "iptables -t mangle: remove chain ENIPOOL-MARK-HASHHASH",
		}},
		{"SNAT is switched off", func(s *ipam.State) { s.Settings.SNAT = false }, []string{
			"nftables: put the rules of chain marks right", "nftables: remove chain snat4",
			"nftables: remove set or map pool4", "nftables: remove set or map vpc4",
		}, []string{
			"iptables -t nat: remove a jump from POSTROUTING to ENIPOOL-SNAT-HASHHASH", "iptables -t nat: remove chain ENIPOOL-SNAT-HASHHASH",
		}},
		{"the VPC grows", func(s *ipam.State) {
			s.Settings.VPC = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/15"), netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("255.0.0.0/8")}
		}, []string{"nftables: put set vpc4 right: remove end 10.1.0.0 add end 10.2.0.0, 255.0.0.0"}, []string{
			"iptables -t nat: add chain ENIPOOL-SNAT-HASHHASH", "iptables -t nat: jump from POSTROUTING to ENIPOOL-SNAT-HASHHASH",
			"iptables -t nat: remove a jump from POSTROUTING to ENIPOOL-SNAT-HASHHASH", "iptables -t nat: remove chain ENIPOOL-SNAT-HASHHASH",
		}},
	} {
		for backend, want := range map[ipam.Firewall][]string{ipam.Nftables: tt.nft, ipam.Iptables: tt.ipt} {
			t.Run(fmt.Sprint(tt.name, ", ", backend), func(t *testing.T) {
				newNode(t)
				before := netconf.NewFirewall(nodeState(backend, eni.IPv4))
				apply(t, before)
				changed := nodeState(backend, eni.IPv4)
				tt.change(changed)
				after := netconf.NewFirewall(changed)
				if diff := cmp.Diff(want, withoutHashes(apply(t, after))); diff != "" {
					t.Errorf("changes:\n%s", diff)
				}
				holds(t, after)
				apply(t, before)
				holds(t, before)
			})
		}
	}
}

func withoutHashes(lines []string) []string {
	var list []string
	for _, line := range lines {
		if strings.Contains(line, "ENIPOOL-") || strings.Contains(line, "ENIPODS-") {
			line = line[:len(line)-8] + "HASHHASH"
		}
		list = append(list, line)
	}
	return list
}

func TestThousandsOfAddressesFitOneTransaction(t *testing.T) {
	newNode(t)
	s := nodeState(ipam.Nftables, eni.IPv4, eni.IPv6)
	a4, a6 := netip.MustParseAddr("10.0.16.0"), netip.MustParseAddr("fd00::1:0")
	for range 4000 {
		a4, a6 = a4.Next(), a6.Next()
		s.Addresses = append(s.Addresses, eni.Address{Addr: a4, ENI: 1}, eni.Address{Addr: a6, ENI: 1})
	}
	full := netconf.NewFirewall(s)
	apply(t, full)
	holds(t, full)
	few := netconf.NewFirewall(nodeState(ipam.Nftables, eni.IPv4, eni.IPv6))
	apply(t, few)
	holds(t, few)
	apply(t, full)
	holds(t, full)
}

// others is what somebody else has in the packet filter.
const others = `
nft -f - <<X
table inet filter { chain input { type filter hook input priority filter; policy accept; tcp dport 22 accept; }; }
table ip enipool { chain other { meta mark set 0x1; }; }
table inet enipool2 { set pool4 { type ipv4_addr; elements = { 10.0.0.11 }; }; }
X
for t in iptables ip6tables; do
  $t -t mangle -N OTHER; $t -t mangle -A PREROUTING -j OTHER; $t -t mangle -A OTHER -m mark --mark 0x4000/0x4000 -j RETURN
  $t -t mangle -A OUTPUT -o eth9 -j ACCEPT
  $t -t nat -N XENIPOOL; $t -t nat -A POSTROUTING -j XENIPOOL; $t -t nat -A POSTROUTING -o eth9 -j MASQUERADE
  $t -t raw -A PREROUTING -i eth9 -j ACCEPT
  $t -t mangle -A INPUT -i eth9 -j ACCEPT; $t -t nat -A PREROUTING -i eth9 -j ACCEPT; $t -t nat -A OUTPUT -o eth9 -j ACCEPT
done`

func TestRemoveLeavesOthersAsTheyWere(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		sh(t, others)
		before := ruleset(t)
		f := netconf.NewFirewall(nodeState(v.backend, v.families...))
		apply(t, f)
		holds(t, f)
		if ruleset(t) == before {
			t.Error("Apply changed nothing in the ruleset")
		}
		for range 2 {
			if _, err := firewall.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, ruleset(t)); diff != "" {
				t.Errorf("the ruleset after Remove is another:\n%s", diff)
			}
		}
	})
}

func TestRemoveOnAnEmptyNodeDoesNotSetUpTables(t *testing.T) {
	newNode(t)
	if _, err := firewall.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ruleset(t) + sh(t, "cat /proc/thread-self/net/ip_tables_names /proc/thread-self/net/ip6_tables_names"); got != "" {
		t.Errorf("Remove made the kernel hold\n%s", got)
	}
}

func TestSwitchingTheBackendRemovesTheOtherOne(t *testing.T) {
	newNode(t)
	sh(t, others)
	before := ruleset(t)
	nft, ipt := netconf.NewFirewall(nodeState(ipam.Nftables, eni.IPv4, eni.IPv6)), netconf.NewFirewall(nodeState(ipam.Iptables, eni.IPv4, eni.IPv6))
	for _, f := range []netconf.Firewall{nft, ipt, nft} {
		apply(t, f)
		holds(t, f)
		if f.Backend == ipam.Iptables {
			if _, err := try("nft list table inet enipool"); err == nil {
				t.Error("the nftables table is still there")
			}
		} else if left := kernel(t, ipt); len(left) > 0 {
			t.Errorf("chains of iptables are still there:\n%s", strings.Join(left, "\n"))
		}
	}
	if _, err := firewall.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, ruleset(t)); diff != "" {
		t.Error(diff)
	}
}

func TestChangingTheVariantOfIptablesRemovesTheOldChains(t *testing.T) {
	newNode(t)
	f := netconf.NewFirewall(nodeState(ipam.Iptables, eni.IPv4, eni.IPv6))
	apply(t, f)
	legacyIptables(t)
	apply(t, f)
	holds(t, f)
	if left := ruleset(t); strings.Contains(left, "ENIPO") {
		t.Errorf("chains are still in nftables:\n%s", left)
	}
	if _, err := firewall.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := kernel(t, f); len(left) > 0 {
		t.Errorf("left after Remove: %v", left)
	}
}

func TestLegacyIptablesDoesTheSame(t *testing.T) {
	newNode(t)
	legacyIptables(t)
	f := netconf.NewFirewall(nodeState(ipam.Iptables, eni.IPv4, eni.IPv6))
	apply(t, f)
	holds(t, f)
	sh(t, "iptables -t nat -F POSTROUTING; iptables -t mangle -F; ip6tables -t raw -F")
	apply(t, f)
	holds(t, f)
}

func TestWorksLeavesNothingBehind(t *testing.T) {
	for _, b := range []ipam.Firewall{ipam.Nftables, ipam.Iptables} {
		t.Run(b.String(), func(t *testing.T) {
			newNode(t)
			sh(t, others)
			before := ruleset(t)
			if err := firewall.Works(b); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, ruleset(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestACancelledApplyChangesNothing(t *testing.T) {
	for _, b := range []ipam.Firewall{ipam.Nftables, ipam.Iptables} {
		t.Run(b.String(), func(t *testing.T) {
			newNode(t)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if did, err := firewall.Apply(ctx, netconf.NewFirewall(nodeState(b, eni.IPv4))); !errors.Is(err, context.Canceled) {
				t.Errorf("Apply = %v, %v", did, err)
			}
			if got := ruleset(t); strings.Contains(strings.ToLower(got), "enipool") {
				t.Errorf("the kernel holds\n%s", got)
			}
		})
	}
}
