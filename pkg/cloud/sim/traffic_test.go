package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

func TestTwoNodesReachGatewayEachOtherAndTheInternet(t *testing.T) {
	n, n1, n2 := newVPC(t, "t")
	secondENI(t, n1, enis[1].eni)
	secondENI(t, n2, enis[3].eni)
	for _, tt := range []struct {
		name string
		from Namespace
		to   []netip.Addr
	}{
		{"node to its gateway", n1, addrs("10.0.0.1", "fd00:10::1")},
		{"node to the gateway of another subnet", n1, addrs("10.0.1.1", "fd00:10:0:1::1")},
		{"node to a neighbour in its subnet", n1, addrs("10.0.0.30", "fd00:10::30")},
		{"node to another subnet", n1, addrs("10.0.1.40", "fd00:10:0:1::40")},
		{"node to a second ENI", n2, addrs("10.0.0.20", "fd00:10::20")},
		{"node to the internet", n2, []netip.Addr{InternetV4, InternetV6}},
		{"internet to the first ENI", n.Internet(), addrs("10.0.0.10", "fd00:10::10")},
		{"internet to a second ENI", n.Internet(), addrs("10.0.1.40", "fd00:10:0:1::40")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, to := range tt.to {
				ping(t, tt.from, "", to)
			}
		})
	}
	t.Run("second ENI to the internet", func(t *testing.T) {
		ping(t, n1, "-I 10.0.0.20", InternetV4)
		ping(t, n1, "-I fd00:10::20", InternetV6)
	})
}

func TestIPv6GatewayMayBeLinkLocal(t *testing.T) {
	n := newNetwork(t, "t")
	linkLocal := netip.MustParseAddr("fe80::1")
	must(t, n.AddSubnet(eni.Subnet{ID: "a6", CIDR: subnets[1].CIDR, Gateway: linkLocal}))
	node, err := n.AddNode("n1")
	must(t, err)
	for _, e := range enis[:2] {
		i := e.eni
		i.V4, i.V6.Gateway = eni.Net{}, linkLocal
		_, err := n.Attach("n1", i)
		must(t, err)
	}
	must(t, n.DHCP("eni-1"))
	ping(t, node, "", InternetV6)
}

func TestFullPacketsPassBetweenENIs(t *testing.T) {
	_, n1, _ := newVPC(t, "t")
	ping(t, n1, "-M do -s 8973", netip.MustParseAddr("10.0.0.30")) // 9001 with the headers
	ping(t, n1, "-M do -s 8953", netip.MustParseAddr("fd00:10::30"))
}

func TestNothingWaitsForDuplicateAddressDetectionOrProxies(t *testing.T) {
	n, n1, _ := newVPC(t, "t")
	for _, tt := range []struct {
		ns   Namespace
		link string
	}{{n1, "eth0"}, {n1, "eth1"}, {n.Router(), "p1"}, {n.Router(), "internet"}, {n.Internet(), "vpc"}} {
		if got := sh(t, tt.ns, "ip -6 address show tentative scope global dev "+tt.link); got != "" {
			t.Errorf("tentative addresses in %s:\n%s", tt.ns.Name, got)
		}
		if got := sh(t, tt.ns, "cat /proc/sys/net/ipv6/conf/"+tt.link+"/accept_dad"); got != "0\n" {
			t.Errorf("accept_dad of %s in %s is %s, want 0", tt.link, tt.ns.Name, got)
		}
	}
	for _, table := range []string{"arp_cache", "ndisc_cache"} {
		got := sh(t, n.Router(), "ip ntable show dev p1 name "+table+" | grep -o 'proxy_delay [0-9]*'")
		if diff := cmp.Diff("proxy_delay 0\n", got); diff != "" {
			t.Errorf("%s of p1 (-want +got):\n%s", table, diff)
		}
	}
}

// spoof is a pod's address that the VPC assigned to eni-2 of n1.
var spoof = []struct {
	name         string
	pod, primary netip.Addr // of eni-2; of eni-1
	to           netip.Addr
}{
	{"ipv4", netip.MustParseAddr("10.0.0.21"), netip.MustParseAddr("10.0.0.10"), InternetV4},
	{"ipv6", netip.MustParseAddr("fd00:10::21"), netip.MustParseAddr("fd00:10::10"), InternetV6},
}

func TestPacketLeavesOnlyThroughTheENIOfItsSource(t *testing.T) {
	for _, tt := range spoof {
		t.Run(tt.name, func(t *testing.T) {
			n, n1, _ := newVPC(t, "t")
			secondENI(t, n1, enis[1].eni)
			must(t, n.Assign("eni-2", tt.pod))
			addLocal(t, n1, tt.pod)
			in := listen(t, n.Internet())

			send(t, n1, tt.pod, tt.to, in, "through eth0")
			send(t, n1, tt.primary, tt.to, in, "honest")
			if text, from := in.next(t); text != "honest" {
				t.Fatalf("got %q from %s, want the packet with a foreign source dropped", text, from)
			}
			sh(t, n1, fmt.Sprintf("ip %s rule add from %s lookup 101", dash(tt.pod), tt.pod))
			send(t, n1, tt.pod, tt.to, in, "through eth1")
			if text, from := in.next(t); text != "through eth1" || from != tt.pod {
				t.Errorf("got %q from %s, want the packet of the right ENI", text, from)
			}
		})
	}
}

func TestSourceOfNobodyIsDropped(t *testing.T) {
	for _, tt := range spoof {
		t.Run(tt.name, func(t *testing.T) {
			n, n1, _ := newVPC(t, "t")
			outside := map[bool]string{true: "192.168.7.7", false: "fd99::7"}[tt.to.Is4()]
			addLocal(t, n1, tt.pod)
			addLocal(t, n1, netip.MustParseAddr(outside))
			in := listen(t, n.Internet())
			send(t, n1, tt.pod, tt.to, in, "unassigned")
			send(t, n1, netip.MustParseAddr(outside), tt.to, in, "not of the VPC")
			send(t, n1, tt.primary, tt.to, in, "honest")
			if text, from := in.next(t); text != "honest" {
				t.Errorf("got %q from %s, want it dropped", text, from)
			}
		})
	}
}

func TestInternetCannotSendFromTheVPC(t *testing.T) {
	for _, tt := range spoof {
		t.Run(tt.name, func(t *testing.T) {
			n, n1, _ := newVPC(t, "t")
			in := listen(t, n1)
			assigned := netip.MustParseAddr(map[bool]string{true: "10.0.0.30", false: "fd00:10::30"}[tt.to.Is4()])
			for _, forged := range []netip.Addr{assigned, tt.pod} {
				addLocal(t, n.Internet(), forged)
				send(t, n.Internet(), forged, tt.primary, in, "forged")
			}
			send(t, n.Internet(), tt.to, tt.primary, in, "honest")
			if text, from := in.next(t); text != "honest" {
				t.Errorf("got %q from %s, want it dropped", text, from)
			}
		})
	}
}

func TestUnassignStopsTrafficBothWays(t *testing.T) {
	for _, tt := range spoof {
		t.Run(tt.name, func(t *testing.T) {
			n, n1, _ := newVPC(t, "t")
			must(t, n.Assign("eni-1", tt.pod))
			addLocal(t, n1, tt.pod)
			pod, internet := listen(t, n1), listen(t, n.Internet())
			exchange := func(text string) {
				t.Helper()
				send(t, n.Internet(), tt.to, tt.pod, pod, text)
				send(t, n.Internet(), tt.to, tt.primary, pod, text+" done")
				send(t, n1, tt.pod, tt.to, internet, text)
				send(t, n1, tt.primary, tt.to, internet, text+" done")
			}
			// In any order: a packet may wait for its neighbour to be found while one
			// from another address goes ahead.
			want := func(in inbox, want ...string) {
				t.Helper()
				var got []string
				for range want {
					text, _ := in.next(t)
					got = append(got, text)
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
			exchange("assigned")
			want(pod, "assigned", "assigned done")
			want(internet, "assigned", "assigned done")
			must(t, n.Unassign("eni-1", tt.pod))
			exchange("unassigned")
			want(pod, "unassigned done")
			want(internet, "unassigned done")

			must(t, n.Assign("eni-1", tt.pod))
			exchange("again")
			want(pod, "again", "again done")
			want(internet, "again", "again done")
		})
	}
}

func TestGatewayStaysWhenOneENIOfItsSubnetGoes(t *testing.T) {
	n, n1, n2 := newVPC(t, "t")
	must(t, n.Detach("eni-1"))
	if got := sh(t, n1, "ip -br link | cut -d@ -f1 | cut -d' ' -f1"); got != "lo\neth1\n" {
		t.Errorf("links of n1 after Detach: %q", got)
	}
	for _, to := range addrs("10.0.0.1", "fd00:10::1") {
		ping(t, n2, "", to)
	}
}

func TestTwoHundredAddressesOnAnENI(t *testing.T) {
	n, n1, _ := newVPC(t, "t")
	sh(t, n1, "ip route add local 10.0.0.0/24 dev lo table 7; ip rule add to 10.0.0.0/24 iif eth0 lookup 7")
	sh(t, n1, "ip -6 route add local fd00:10::/64 dev lo table 7; ip -6 rule add to fd00:10::/64 iif eth0 lookup 7")
	var pods []netip.Addr
	for _, first := range addrs("10.0.0.50", "fd00:10::1:0") {
		for a := first; len(pods)%200 != 0 || a == first; a = a.Next() {
			pods = append(pods, a)
		}
	}
	must(t, n.Assign("eni-1", pods...))
	in := listen(t, n1)
	for i, a := range pods {
		from := InternetV4
		if a.Is6() {
			from = InternetV6
		}
		send(t, n.Internet(), from, a, in, fmt.Sprint(i))
		if text, _ := in.next(t); text != fmt.Sprint(i) {
			t.Fatalf("%s got packet %s, want %d", a, text, i)
		}
	}
	must(t, n.Unassign("eni-1", pods...))
	for _, list := range []string{"ip route show proto boot", "ip -6 route show proto boot", "ip neigh show proxy"} {
		if got := sh(t, n.Router(), list+" | grep -e '10.0.0.[5-9][0-9]' -e '10.0.0.[12][0-9][0-9]' -e fd00:10::1: || true"); got != "" {
			t.Errorf("%s after Unassign:\n%s", list, got)
		}
	}
}
