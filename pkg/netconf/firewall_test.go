package netconf_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/go-cmp/cmp"
)

// twoENIs is a node with two ENIs and two addresses on each.
func twoENIs(change func(*ipam.State)) *ipam.State {
	s := &ipam.State{
		Settings: ipam.Settings{SNAT: true, MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4},
			VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}},
		ENIs: []eni.Interface{
			{ID: "eni-a", Index: 0, Device: "eth0", MTU: 1500, V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.10/24"), Gateway: netip.MustParseAddr("10.0.0.1")}},
			{ID: "eni-b", Index: 1, Device: "eth1", MTU: 1500, V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.20/24"), Gateway: netip.MustParseAddr("10.0.0.1")}},
		},
	}
	for i, a := range []string{"10.0.0.12", "10.0.0.11", "10.0.0.22", "10.0.0.21"} {
		s.Addresses = append(s.Addresses, eni.Address{Addr: netip.MustParseAddr(a), ENI: i / 2})
	}
	if change != nil {
		change(s)
	}
	return s
}

// onlyIPv6 turns the addresses into IPv6 ones.
func onlyIPv6(s *ipam.State) {
	s.Settings.Families = []eni.Family{eni.IPv6}
	for i := range s.ENIs {
		s.ENIs[i].V4 = eni.Net{}
		s.ENIs[i].V6 = eni.Net{Primary: netip.MustParsePrefix([]string{"fd00::10/64", "fd00::20/64"}[i]), Gateway: netip.MustParseAddr("fe80::1")}
	}
	for i, a := range []string{"fd00::12", "fd00::11", "fd00::22", "fd00::21"} {
		s.Addresses[i].Addr = netip.MustParseAddr(a)
	}
}

func TestFirewallOfANodeWithTwoENIsAsNftListsIt(t *testing.T) {
	const want = `table inet enipool-pods {
	map replies {
		type mark : verdict
		elements = { 0x00000001 : goto eni1, 0x000000ff : goto eni0 }
	}

	map addrport4 {
		type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service
	}

	set hairpin4 {
		type ipv4_addr . ipv4_addr
	}

	map hostport4 {
		type inet_proto . inet_service : ipv4_addr . inet_service
	}

	set service4 {
		type ipv4_addr
	}

	chain eni0 {
		meta mark set meta mark | 0x000000ff comment "leave by eth0 #HASH"
	}

	chain eni1 {
		meta mark set meta mark & 0xffffff01 | 0x00000001 comment "leave by eth1 #HASH"
	}

	chain pods {
		type filter hook prerouting priority -89; policy accept;
		ct direction reply ct mark & 0x000000ff vmap @replies comment "replies leave by the ENI that their connection came in by #HASH"
	}

	chain sockets {
		type route hook output priority mangle; policy accept;
		ct state established ct direction reply ct mark & 0x000000ff vmap @replies comment "replies leave by the ENI that their connection came in by #HASH"
	}

	chain hostports {
		dnat ip to ip daddr . meta l4proto . th dport map @addrport4 comment "a port of one address of the node #HASH"
		ip daddr @service4 return comment "a service's address is no node's #HASH"
		meta nfproto ipv4 dnat ip to meta l4proto . th dport map @hostport4 comment "a port of all addresses of the node #HASH"
	}

	chain arriving {
		type nat hook prerouting priority dstnat + 1; policy accept;
		fib daddr type local jump hostports comment "to this node #HASH"
	}

	chain leaving {
		type nat hook output priority -99; policy accept;
		fib daddr type local jump hostports comment "to this node #HASH"
	}

	chain hairpin {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr . ip daddr @hairpin4 snat ip to 10.0.0.10 fully-random comment "a pod that uses its own host port gets the answer #HASH"
		oifname "eni*" ip saddr 127.0.0.0/8 snat ip to 10.0.0.10 fully-random comment "nobody can answer to the loopback address #HASH"
	}

	chain loopback {
		type filter hook input priority filter; policy accept;
		ip daddr 127.0.0.0/8 iifname "eni*" ct direction reply accept comment "a pod's answer #HASH"
		ip daddr 127.0.0.0/8 iifname "eni*" drop comment "no pod reaches the node's loopback #HASH"
	}
}
table inet enipool {
	map arrivals {
		type ifname : verdict
		elements = { "eth0" : jump in0,
			     "eth1" : jump in1 }
	}

	set marks {
		type mark
		elements = { 0x00000001, 0x000000ff }
	}

	map source4 {
		type ipv4_addr : verdict
		elements = { 10.0.0.21 : goto eni1, 10.0.0.22 : goto eni1 }
	}

	set pool4 {
		type ipv4_addr
		elements = { 10.0.0.11, 10.0.0.12,
			     10.0.0.21, 10.0.0.22 }
	}

	set vpc4 {
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/16 }
	}

	chain eni0 {
		meta mark set meta mark | 0x000000ff comment "leave by eth0 #HASH"
	}

	chain in0 {
		ct state new ct mark set ct mark | 0x000000ff comment "a connection remembers that it came in by eth0 #HASH"
		ct direction original ct mark & 0x000000ff == 0x00000000 ct mark set ct mark | 0x000000ff comment "one that began without these rules, too #HASH"
	}

	chain eni1 {
		meta mark set meta mark & 0xffffff01 | 0x00000001 comment "leave by eth1 #HASH"
	}

	chain in1 {
		ct state new ct mark set ct mark & 0xffffff01 | 0x00000001 comment "a connection remembers that it came in by eth1 #HASH"
		ct direction original ct mark & 0x000000ff == 0x00000000 ct mark set ct mark & 0xffffff01 | 0x00000001 comment "one that began without these rules, too #HASH"
	}

	chain marks {
		type filter hook prerouting priority dstnat + 10; policy accept;
		iifname vmap @arrivals comment "what comes in by an ENI #HASH"
		ip daddr @vpc4 ip saddr vmap @source4 comment "a pod's packets leave by its address's ENI #HASH"
		meta mark & 0x000000ff == @marks meta mark set meta mark & 0xffffff00 comment "an ENI is chosen here and by nobody else #HASH"
	}

	chain snat4 {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "eth0" ip saddr @pool4 ip daddr != @vpc4 snat ip to 10.0.0.10 fully-random comment "outside the VPC a pod has the node's address #HASH"
	}
}
`
	got := withoutHashes(netconf.NewFirewall(twoENIs(nil)).Nft())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// withoutHashes takes the hash out of every comment, and fails nothing by itself.
func withoutHashes(text string) string {
	parts := strings.Split(text, " #")
	for i := 1; i < len(parts); i++ {
		parts[i] = "HASH" + parts[i][8:]
	}
	return strings.Join(parts, " #")
}

func TestFirewallHoldsNoMoreThanTheNodeNeeds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*ipam.State)
		want   []string // sets and chains of the nftables form
	}{
		{"two ENIs, SNAT", nil,
			[]string{"arrivals", "marks", "source4", "pool4", "vpc4", "eni0", "in0", "eni1", "in1", "marks", "snat4"}},
		{"SNAT off", func(s *ipam.State) { s.Settings.SNAT = false },
			[]string{"arrivals", "marks", "source4", "eni0", "in0", "eni1", "in1", "marks"}},
		{"routing by rules needs no source map", func(s *ipam.State) { s.Settings.Routing = ipam.Rule; s.Settings.SNAT = false },
			[]string{"arrivals", "marks", "eni0", "in0", "eni1", "in1", "marks"}},
		{"one ENI is the only way out", func(s *ipam.State) { s.ENIs, s.Addresses = s.ENIs[:1], s.Addresses[:2] },
			[]string{"pool4", "vpc4", "snat4"}},
		{"IPv6 has no SNAT and no rp_filter", onlyIPv6,
			[]string{"arrivals", "marks", "source6", "eni0", "in0", "eni1", "in1", "spoof", "marks"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := netconf.NewFirewall(twoENIs(tt.change))
			pods := []string{"arriving", "hairpin", "hostports", "leaving"}
			for _, family := range []string{"4", "6"} {
				if (family == "4") == f.Node4.IsValid() {
					pods = append(pods, "addrport"+family, "hairpin"+family, "hostport"+family, "service"+family)
				}
			}
			if f.Node4.IsValid() {
				pods = append(pods, "loopback")
			}
			if len(f.ENIs) > 1 {
				pods = append(pods, "eni0", "eni1", "pods", "replies", "sockets")
			}
			for i, want := range [][]string{pods, tt.want, nil} {
				slices.Sort(want)
				if diff := cmp.Diff(want, partsOf(f.Tables()[i])); diff != "" {
					t.Errorf("table %s:\n%s", f.Tables()[i].Name, diff)
				}
			}
		})
	}
}

// partsOf returns the names of the table's sets and chains, sorted.
func partsOf(table netconf.NftTable) (names []string) {
	for _, s := range table.Sets {
		names = append(names, s.Name)
	}
	for _, c := range table.Chains {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

func TestSpoofRuleIsForIPv6AndWhereAPodsLinkHasAnAddress(t *testing.T) {
	dual := func(s *ipam.State) { s.ENIs[0].V6.Primary = netip.MustParsePrefix("fd00::10/64") }
	uplink := func(s *ipam.State) { dual(s); s.ENIs[1].Device = "eni5" }
	for _, tt := range []struct {
		name   string
		change func(*ipam.State)
		drop4  bool
		want   string
	}{
		{"IPv4 is the link's own business", nil, false, ""},
		{"unless the link has an address", nil, true, "iifname \"eni*\" meta nfproto ipv4 fib saddr . iif oif missing drop"},
		{"both families, and the link has one", dual, true,
			"iifname \"eni*\" meta nfproto ipv4 fib saddr . iif oif missing drop\niifname \"eni*\" meta nfproto ipv6 fib saddr . iif oif missing drop"},
		{"both families", dual, false, "iifname \"eni*\" meta nfproto ipv6 fib saddr . iif oif missing drop"},
		{"an ENI that is named like a pod's link is let through", uplink, false,
			"iifname \"eni5\" accept\niifname \"eni*\" meta nfproto ipv6 fib saddr . iif oif missing drop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			f := netconf.NewFirewall(twoENIs(tt.change))
			f.DropSpoofed4 = tt.drop4
			for _, c := range f.Table().Chains {
				for _, r := range c.Rules {
					if text, _, _ := strings.Cut(r.String(), " comment"); c.Name == "spoof" {
						got = append(got, text)
					}
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIptablesFormInTheWordsOfIptables(t *testing.T) {
	const want4 = `-N ENIPODS-REPLY-HASHHASH
-A PREROUTING -j ENIPODS-REPLY-HASHHASH
-A ENIPODS-REPLY-HASHHASH -m mark --mark 0xff/0xff -j MARK --set-xmark 0x0/0xff
-A ENIPODS-REPLY-HASHHASH -m mark --mark 0x1/0xff -j MARK --set-xmark 0x0/0xff
-A ENIPODS-REPLY-HASHHASH -m conntrack --ctdir REPLY -m connmark ! --mark 0x0/0xff -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff
-N ENIPODS-SOCKET-HASHHASH
-A OUTPUT -j ENIPODS-SOCKET-HASHHASH
-A ENIPODS-SOCKET-HASHHASH -m conntrack --ctstate ESTABLISHED --ctdir REPLY -m connmark ! --mark 0x0/0xff -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff
-N ENIPOOL-MARK-HASHHASH
-A PREROUTING -j ENIPOOL-MARK-HASHHASH
-A ENIPOOL-MARK-HASHHASH -i eth0 -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0xff/0xff
-A ENIPOOL-MARK-HASHHASH -i eth0 -m conntrack --ctdir ORIGINAL -m connmark --mark 0x0/0xff -j CONNMARK --set-xmark 0xff/0xff
-A ENIPOOL-MARK-HASHHASH -i eth1 -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x1/0xff
-A ENIPOOL-MARK-HASHHASH -i eth1 -m conntrack --ctdir ORIGINAL -m connmark --mark 0x0/0xff -j CONNMARK --set-xmark 0x1/0xff
-N ENIPOOL-SNAT-HASHHASH
-A POSTROUTING -j ENIPOOL-SNAT-HASHHASH
-A ENIPOOL-SNAT-HASHHASH ! -o eth0 -j RETURN
-A ENIPOOL-SNAT-HASHHASH -s 10.0.0.10/32 -j RETURN
-A ENIPOOL-SNAT-HASHHASH -d 10.0.0.0/16 -j RETURN
-A ENIPOOL-SNAT-HASHHASH -s 10.0.0.0/24 -j SNAT --to-source 10.0.0.10 --random-fully
-N ENIPODS-ports
-N ENIPODS-self
-N ENIPODS-PORTIN-HASHHASH
-A PREROUTING -j ENIPODS-PORTIN-HASHHASH
-A ENIPODS-PORTIN-HASHHASH -m addrtype --dst-type LOCAL -j ENIPODS-ports
-N ENIPODS-PORTOUT-HASHHASH
-A OUTPUT -j ENIPODS-PORTOUT-HASHHASH
-A ENIPODS-PORTOUT-HASHHASH -m addrtype --dst-type LOCAL -j ENIPODS-ports
-N ENIPODS-LOOPBACK-HASHHASH
-A INPUT -j ENIPODS-LOOPBACK-HASHHASH
-A ENIPODS-LOOPBACK-HASHHASH -d 127.0.0.0/8 -i eni+ -m conntrack --ctdir REPLY -j RETURN
-A ENIPODS-LOOPBACK-HASHHASH -d 127.0.0.0/8 -i eni+ -j DROP
-N ENIPODS-SELF-HASHHASH
-A POSTROUTING -j ENIPODS-SELF-HASHHASH
-A ENIPODS-SELF-HASHHASH -j ENIPODS-self
-A ENIPODS-SELF-HASHHASH -s 127.0.0.0/8 -o eni+ -j SNAT --to-source 10.0.0.10 --random-fully
`
	f := netconf.NewFirewall(twoENIs(func(s *ipam.State) { s.Settings.Firewall, s.Settings.Routing = ipam.Iptables, ipam.Rule }))
	if diff := cmp.Diff(want4, iptText(t, f.Iptables(eni.IPv4))); diff != "" {
		t.Error(diff)
	}
	if chains := f.Iptables(eni.IPv6); chains != nil {
		t.Errorf("a node without IPv6 has ip6tables chains: %v", chains)
	}
	var names []string
	for _, c := range netconf.NewFirewall(twoENIs(onlyIPv6)).Iptables(eni.IPv6) {
		if !c.Fixed {
			names = append(names, c.Table+" "+c.Name[:len(c.Name)-9])
		}
	}
	if diff := cmp.Diff([]string{"mangle ENIPODS-REPLY", "mangle ENIPODS-SOCKET", "mangle ENIPOOL-MARK", "raw ENIPOOL-SPOOF", "nat ENIPODS-PORTIN", "nat ENIPODS-PORTOUT", "nat ENIPODS-SELF"}, names); diff != "" {
		t.Error(diff)
	}
}

func iptText(t *testing.T, chains []netconf.IptChain) string {
	var b strings.Builder
	for _, c := range chains {
		if len(c.Name) > 28 {
			t.Errorf("chain name %s has %d bytes, more than iptables takes", c.Name, len(c.Name))
		}
		text := strings.Join(c.Lines(), "\n")
		if !c.Fixed {
			text = strings.ReplaceAll(text, c.Name[len(c.Name)-8:], "HASHHASH")
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

func TestRepliesOfConnectionsWithAnEarlierMarkLeaveByTheSameENI(t *testing.T) {
	const nft = `ct direction reply ct mark & 0x000000ff vmap @replies
ct direction reply ct mark & 0x00ff0000 vmap @replies-00ff0000
`
	f := netconf.NewFirewall(twoENIs(nil)).Understanding([]uint32{0x00ff0000})
	replies := f.TableOfPods()
	for _, c := range replies.Chains {
		if c.Type == "nat" || c.Name == "loopback" {
			continue // of host ports
		}
		var got strings.Builder
		for _, r := range c.Rules {
			text, _, _ := strings.Cut(r.String(), " comment")
			got.WriteString(text + "\n")
		}
		want := nft
		if c.Hook == "output" {
			want = strings.ReplaceAll(nft, "ct direction", "ct state established ct direction")
		}
		if c.Hook != "" && got.String() != want {
			t.Errorf("chain %s:\n%s", c.Name, cmp.Diff(want, got.String()))
		}
	}
	if got, want := replies.Sets[1].String(), "\tmap replies-00ff0000 {\n\t\ttype mark : verdict\n\t\telements = { 0x00010000 : goto eni1, 0x00ff0000 : goto eni0 }\n\t}\n"; got != want {
		t.Error(cmp.Diff(want, got))
	}
	want := []string{
		"-m conntrack --ctstate ESTABLISHED --ctdir REPLY -m connmark --mark 0xff0000/0xff0000 -j MARK --set-xmark 0xff/0xff",
		"-m conntrack --ctstate ESTABLISHED --ctdir REPLY -m connmark --mark 0x10000/0xff0000 -j MARK --set-xmark 0x1/0xff",
		"-m conntrack --ctstate ESTABLISHED --ctdir REPLY -m connmark ! --mark 0x0/0xff -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff",
	}
	if diff := cmp.Diff(want, f.Iptables(eni.IPv4)[1].Rules); diff != "" {
		t.Error(diff)
	}
}

func TestRangesOfTheVPCDoNotOverlap(t *testing.T) {
	f := netconf.NewFirewall(twoENIs(func(s *ipam.State) {
		s.Settings.VPC = nil
		for _, p := range []string{"192.168.0.0/16", "10.0.5.0/24", "fd00::/56", "10.0.0.7/16", "10.0.0.0/16", "10.1.0.0/16"} {
			s.Settings.VPC = append(s.Settings.VPC, netip.MustParsePrefix(p))
		}
	}))
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("192.168.0.0/16")}
	if diff := cmp.Diff(want, f.VPC, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// Pods' addresses need not be in the subnet of the ENI's own: what they send out of the VPC has to
// leave as the node all the same.
func TestIptablesTranslateRangesForPods(t *testing.T) {
	f := netconf.NewFirewall(twoENIs(func(s *ipam.State) {
		s.ENIs[0].Pods = []netip.Prefix{netip.MustParsePrefix("10.64.0.0/24"), netip.MustParsePrefix("2001:db8:64::/64")}
	}))
	var lines []string
	for _, c := range f.Iptables(eni.IPv4) {
		lines = append(lines, c.Lines()...)
	}
	for _, want := range []string{"-s 10.0.0.0/24 -j SNAT", "-s 10.64.0.0/24 -j SNAT"} {
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("no rule has %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

func TestCommentChangesWithTheRule(t *testing.T) {
	rule := func(to string) netconf.NftRule {
		return netconf.NftRule{Purpose: "why", Statements: append(netconf.NftRule{}.Statements, netconf.NftSNAT{To: netip.MustParseAddr(to)})}
	}
	a, same, other := rule("10.0.0.1").Comment(), rule("10.0.0.1").Comment(), rule("10.0.0.2").Comment()
	if a != same || a == other {
		t.Errorf("comments %q, %q of equal rules and %q of another", a, same, other)
	}
}
