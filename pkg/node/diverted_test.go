package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
)

// A policy engine or a VPN has dozens of rules that harm nobody.
func TestARuleThatDivertsPodsIsToldBesideManyThatDoNot(t *testing.T) {
	n, _ := withPod(t)
	nettest.Run(t, "sh", "-c", "ip link set eth0 up; ip link set eth1 up; ip link set eth0-far up")
	add := func(rule string) {
		nettest.Run(t, "sh", "-c", "ip rule add "+rule)
		t.Cleanup(func() { nettest.Run(t, "sh", "-c", "ip rule del "+rule) })
	}
	for i := range 40 {
		add(fmt.Sprintf("priority %d to 192.168.%d.0/24 lookup main", 100+i, i))
	}
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("%v\n%s", err, strings.Join(lines, "\n"))
	}
	add("priority 200 ipproto tcp blackhole")
	want := "priority 200 from all ipproto tcp blackhole: what pods of the ENI eth1 send, as far as the rule selects it, ends there"
	if lines, err := n.Check(t.Context()); err != nil || !strings.Contains(strings.Join(lines, "\n"), want) {
		t.Errorf("%v\n%s\nwant %s", err, strings.Join(lines, "\n"), want)
	}
}

// The library that reads the chains of others knows not every statement.
func TestAChainThatCannotBeReadHidesNothingElse(t *testing.T) {
	n, _ := withPod(t)
	nettest.Run(t, "nft", `add table inet odd
		add chain inet odd forwards { type filter hook forward priority 0; }
		add chain inet odd arrives { type filter hook prerouting priority 0; }
		add rule inet odd forwards ct original ip daddr 10.96.0.1 accept
		add rule inet odd arrives ct original ip daddr 10.96.0.1 accept
		add table inet cut
		add chain inet cut p { type filter hook forward priority 10; policy drop; }`)
	t.Cleanup(func() { nettest.Run(t, "nft", "delete table inet odd; delete table inet cut") })
	lines, err := n.Check(t.Context())
	if err != nil || !strings.Contains(strings.Join(lines, "\n"), "nftables table inet cut: chain p drops") {
		t.Errorf("%v\n%s", err, strings.Join(lines, "\n"))
	}
}

// A rule of others before ours cuts pods off or sends them out by another ENI, while
// each of our own objects is as it should be: only the kernel's answer tells.
func TestARuleOfOthersThatDivertsPodsIsToldWithWhatItDoes(t *testing.T) {
	n, _ := withPod(t)
	for _, tt := range []struct {
		name, rule, route, want string
	}{
		{"blackhole", "priority 600 from 10.0.0.0/24 lookup 777", "blackhole default table 777",
			"must fix: a rule that is not enipool's comes before enipool's, priority 600 from 10.0.0.0/24 lookup 777: what pods of the ENI eth1 send ends there (blackhole default); remove it (ip rule del priority 600 from 10.0.0.0/24 lookup 777)"},
		{"inside only", "priority 600 from 10.0.0.0/24 to 10.0.0.0/8 lookup 777", "unreachable default table 777",
			"what pods of the ENI eth1 send into the VPC ends there (unreachable default)"},
		{"the rule itself ends it", "priority 600 from 10.0.0.0/24 prohibit", "",
			"priority 600 from 10.0.0.0/24 prohibit: what pods of the ENI eth1 send ends there; remove it (ip rule del priority 600 from 10.0.0.0/24 prohibit)"},
		{"another ENI", "priority 600 from 10.0.0.16/28 lookup 777", "default via 10.0.0.1 dev eth0 onlink table 777",
			"what pods of the ENI eth1 send into the VPC leaves by its route default via 10.0.0.1 dev eth0; remove it (ip rule del priority 600 from 10.0.0.16/28 lookup 777)"},
		{"what is sent to pods", "priority 400 to 10.0.0.16/28 lookup 777", "default via 10.0.0.1 dev eth1 onlink table 777",
			"priority 400 from all to 10.0.0.16/28 lookup 777: what is sent to pods of the ENI eth1 leaves by its route default via 10.0.0.1 dev eth1"},
		{"the ENI itself", "priority 600 from 10.0.0.16/28 to 10.0.0.0/16 lookup 777", "default via 10.0.0.1 dev eth1 onlink table 777", ""},
		{"the main table, for what gets the node's address", "priority 2000 from 10.0.0.16/28 lookup main", "", ""},
		{"other packets", "priority 600 from 10.9.0.0/16 lookup 777", "blackhole default table 777", ""},
		{"other marks", "priority 600 fwmark 0x20000/0xff0000 lookup 777", "blackhole default table 777", ""},
		{"Cilium's, for its proxy", "priority 9 fwmark 0x200/0xf00 lookup 777", "blackhole default table 777", ""},
		{"Cilium's, in place of the kernel's", "priority 100 from all lookup local", "", ""},
		{"Calico's, for WireGuard", "priority 99 not fwmark 0x0/0x100000 lookup 777", "blackhole default table 777", ""},
		{"aws-vpc-cni's, to a pod of its", "priority 512 from all to 10.0.0.77 lookup main", "", ""},
		{"aws-vpc-cni's, of a pod of its", "priority 1536 from 10.0.0.77 lookup 777", "blackhole default table 777", ""},
		{"aws-vpc-cni's, for NodePorts", "priority 1024 fwmark 0x80/0x80 lookup main", "", ""},
		{"Tailscale's", "priority 5250 fwmark 0x80000/0xff0000 unreachable", "", ""},
		{"a table that has nothing for pods", "priority 99 from all lookup 777", "throw 10.0.0.0/8 table 777", ""},
		{"behind ours", "priority 5270 from all lookup 777", "blackhole 10.0.0.0/16 table 777", ""},
		{"a port", "priority 600 from all ipproto tcp dport 53 lookup 777", "blackhole default table 777",
			"priority 600 from all ipproto tcp dport 53 lookup 777: what pods of the ENI eth1 send, as far as the rule selects it, ends there (blackhole default); remove it (ip rule del priority 600 from all ipproto tcp dport 53 lookup 777)"},
		{"a port without a transport", "priority 600 dport 80-90 lookup 777", "blackhole default table 777",
			"priority 600 from all dport 80-90 lookup 777: what pods of the ENI eth1 send, as far as the rule selects it, ends there (blackhole default)"},
		{"the port of a pod's server", "priority 100 sport 80 lookup 777", "blackhole default table 777",
			"priority 100 from all sport 80 lookup 777: what pods of the ENI eth1 send, as far as the rule selects it, ends there"},
		{"a transport, before all of ours", "priority 100 ipproto udp lookup 777", "blackhole default table 777",
			"priority 100 from all ipproto udp lookup 777: what pods of the ENI eth1 send, as far as the rule selects it, ends there"},
		{"a transport of some pods", "priority 600 from 10.0.0.16/28 ipproto tcp lookup 777", "blackhole default table 777",
			"priority 600 from 10.0.0.16/28 ipproto tcp lookup 777: what pods of the ENI eth1 send, as far as the rule selects it, ends there"},
		{"a transport of other pods", "priority 600 from 10.9.0.0/16 ipproto tcp lookup 777", "blackhole default table 777", ""},
		{"some destinations", "priority 100 to 203.0.113.0/24 lookup 777", "blackhole default table 777",
			"priority 100 from all to 203.0.113.0/24 lookup 777: what pods of the ENI eth1 send, as far as the rule selects it, ends there"},
		{"some destinations, by a link of others", "priority 100 to 203.0.113.0/24 lookup 777", "default dev eth0-far table 777", ""},
		{"a transport in the VPC, by another ENI", "priority 100 to 10.0.7.0/24 ipproto tcp lookup 777", "default via 10.0.0.1 dev eth0 onlink table 777",
			"priority 100 from all to 10.0.7.0/24 ipproto tcp lookup 777: what pods of the ENI eth1 send, as far as the rule selects it, leaves by its route default via 10.0.0.1 dev eth0"},
		{"a transport with a mark", "priority 100 fwmark 0x20000/0xff0000 ipproto tcp lookup 777", "blackhole default table 777", ""},
		{"past all of ours", "priority 100 goto 32766", "",
			"priority 100 from all goto 32766: what pods of the ENI eth1 send into the VPC passes by enipool's rules and leaves by the route default via 10.0.0.1 dev eth0; remove it (ip rule del priority 100 from all goto 32766)"},
		{"past those behind the pods'", "priority 1530 goto 32766", "", "priority 1530 from all goto 32766: what pods of the ENI eth1 send into the VPC passes by enipool's rules"},
		{"what comes in by an ENI", "priority 100 iif eth1 lookup 777", "blackhole default table 777",
			"priority 100 from all iif eth1 lookup 777: what comes in by eth1 for pods of the ENI eth1 ends there (blackhole default)"},
		{"answers that come in by the node's", "priority 100 iif eth0 lookup 777", "blackhole default table 777",
			"priority 100 from all iif eth0 lookup 777: what comes in by eth0 for pods of the ENI eth1 ends there"},
		{"a transport that comes in by an ENI", "priority 100 iif eth1 ipproto tcp lookup 777", "blackhole default table 777",
			"priority 100 from all iif eth1 ipproto tcp lookup 777: what comes in by eth1 for pods of the ENI eth1, as far as the rule selects it, ends there"},
		{"answers by an ENI alone", "priority 600 fwmark 0x1/0xff lookup 777", "blackhole default table 777",
			"priority 600 from all fwmark 0x1/0xff lookup 777: what pods of the ENI eth1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nettest.Run(t, "sh", "-c", "ip link set eth0 up; ip link set eth1 up; ip link set eth0-far up; ip rule add "+tt.rule)
			defer nettest.Run(t, "sh", "-c", "ip rule del "+tt.rule+"; ip route flush table 777; true")
			if tt.route != "" {
				nettest.Run(t, "sh", "-c", "ip route add "+tt.route)
			}
			lines, err := n.Check(t.Context())
			check := strings.Join(lines, "\n")
			if err != nil || tt.want == "" && len(lines) > 0 {
				t.Errorf("%v\n%s", err, check)
			}
			if !strings.Contains(check, tt.want) {
				t.Errorf("check lacks %q:\n%s", tt.want, check)
			}
		})
	}
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("without such a rule: %q, %v", lines, err)
	}
}

// `ip rule flush` takes the kernel's rules to main and default away too. Ours are put back,
// those are not ours.
func TestRulesOfTheKernelThatAreGoneAreToldWithTheCommandThatPutsThemBack(t *testing.T) {
	n, _ := withPod(t)
	nettest.Run(t, "sh", "-c", "ip link set eth0 up; ip link set eth1 up; ip link set eth0-far up; ip link set eth1-far up")
	// As the kernel had them, for the tests after this one: a rule that a person made in place of the kernel's is one of others.
	defer nettest.Run(t, "sh", "-c", "ip rule del priority 32766 2>/dev/null; ip rule add priority 32766 lookup main protocol kernel; ip rule add priority 32767 lookup default protocol kernel")
	nettest.Run(t, "ip", "rule", "flush")
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	lines, err := n.Check(t.Context())
	const told = "the kernel has no way for packets of pods of the ENI eth1: its rule priority 32766 from all lookup main is missing; put it back: "
	if check := strings.Join(lines, "\n"); err != nil || len(lines) != 1 || !strings.Contains(check, told) {
		t.Fatalf("check says %q, %v; want one line with %q", check, err, told)
	}
	_, command, _ := strings.Cut(lines[0], "; put it back: ")
	nettest.Run(t, "sh", "-c", command)
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("after %s: %q, %v", command, lines, err)
	}
}

// wg-quick names no priority, so the kernel puts its rules right before the first one, ours.
// That is heard, and what is sent to pods, too, is told with the cure.
func TestRulesWithoutAPriorityAreHeardAndToldWithTheCure(t *testing.T) {
	n, _ := withPod(t)
	n.hear(t)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	nettest.Run(t, "sh", "-c", "ip link set eth0 up; ip route add 10.0.0.0/16 dev eth0 metric 7")
	heard := func(what string) {
		t.Helper()
		select {
		case <-n.Watch.Faults():
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing is heard of %s", what)
		}
	}
	misrouted := func() string {
		t.Helper()
		if _, err := n.Sync(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		lines, err := n.Misrouted(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	if lines := misrouted(); lines != "" {
		t.Fatalf("before: %s", lines)
	}
	nettest.Run(t, "sh", "-c", `ip route add default dev eth0 table 51820; ip -4 rule add not fwmark 51820 table 51820
		ip -4 rule add table main suppress_prefixlength 0`)
	heard("the rules of wg-quick")
	lines := misrouted()
	for _, want := range []string{"priority 511 not from all fwmark 0xca6c/0xffffffff lookup 51820: what pods of the ENI eth1 send out of the VPC leaves by its route",
		"priority 510 from all lookup main suppress_prefixlength 0: what is sent to pods of the ENI eth1", "have what made it take a priority above 1538", "have what made it take a priority above 1539 and let pods pass it by (ip rule add priority 1539 from 10.0.0.0/24 lookup main)"} {
		if !strings.Contains(lines, want) {
			t.Errorf("not told: %s\n%s", want, lines)
		}
	}
	nettest.Run(t, "sh", "-c", `ip -4 rule del priority 510; ip -4 rule del priority 511; ip route flush table 51820`)
	heard("their end")
	if lines := misrouted(); lines != "" {
		t.Errorf("after it: %s", lines)
	}
}
