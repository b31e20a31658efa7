package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// variants are all the ways to route and filter.
func variants(families ...eni.Family) map[string]ipam.Settings {
	list := map[string]ipam.Settings{}
	for name, s := range map[string]ipam.Settings{
		"map with nftables":  {Routing: ipam.Map, Firewall: ipam.Nftables},
		"rule with nftables": {Routing: ipam.Rule, Firewall: ipam.Nftables},
		"rule with iptables": {Routing: ipam.Rule, Firewall: ipam.Iptables},
	} {
		for _, snat := range []bool{true, false} {
			s.SNAT, s.Families = snat, families
			list[fmt.Sprintf("%s, snat %v", name, snat)] = s
		}
	}
	return list
}

// variantsWithoutSNAT are those of the variants in which others see the pods' own addresses.
func variantsWithoutSNAT(families ...eni.Family) map[string]ipam.Settings {
	list := variants(families...)
	maps.DeleteFunc(list, func(_ string, s ipam.Settings) bool { return s.SNAT })
	return list
}

func TestPodsOfEveryENIReachEverybody(t *testing.T) {
	for name, s := range variants(eni.IPv4, eni.IPv6) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			ping := func(from nettest.Netns, to string) {
				t.Helper()
				if out, err := from.Try("ping", "-c", "1", "-W", "2", to); err != nil {
					t.Errorf("%s -> %s: %s", from.Name, to, out)
				}
			}
			for _, f := range s.Families {
				internet, node := internet4, "10.0.0.20"
				if f == eni.IPv6 {
					internet, node = internet6, "2001:db8::20"
				}
				for i, id := range []string{"a", "b"} {
					ping(v.pods[id], internet)
					ping(v.pods[id], v.addr(f, 1-i).String())
					ping(v.pods[id], node)
					ping(v.node, v.addr(f, i).String())
					ping(v.internet, v.addr(f, i).String())
				}
				ping(v.internet, node)
			}
		})
	}
}

func TestTheWorldOutsideTheVPCSeesTheNode(t *testing.T) {
	for name, s := range variants(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			echo(t, v.internet, "80")
			echo(t, v.pods["a"], "80")
			for i, id := range []string{"a", "b"} {
				want := v.addr(eni.IPv4, i).String()
				if s.SNAT {
					want = "10.0.0.10"
				}
				if seen, err := ask(v.pods[id], internet4+":80"); err != nil || seen != want {
					t.Errorf("the internet saw pod %s as %q, %v; want %s", id, seen, err, want)
				}
			}
			if seen, err := ask(v.pods["b"], "10.0.0.11:80"); err != nil || seen != "10.0.0.21" {
				t.Errorf("pod a saw pod b as %q, %v", seen, err)
			}
		})
	}
}

// A NodePort is asked on one ENI for a pod on the other: the answer must leave by
// the ENI of the request, or the VPC drops it.
func TestTheAnswerOfANodePortLeavesByTheENIOfTheRequest(t *testing.T) {
	for name, s := range variants(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			for _, id := range []string{"a", "b"} {
				echo(t, v.pods[id], "80")
			}
			v.node.Run(t, "nft", "add table ip kube; add chain ip kube pre { type nat hook prerouting priority dstnat; };"+
				"add rule ip kube pre fib daddr type local tcp dport 30001 dnat to 10.0.0.11:80;"+
				"add rule ip kube pre fib daddr type local tcp dport 30002 dnat to 10.0.0.21:80")
			for _, to := range []string{"10.0.0.10:30001", "10.0.0.10:30002", "10.0.0.20:30001", "10.0.0.20:30002"} {
				if seen, err := ask(v.internet, to); err != nil || seen != internet4 {
					t.Errorf("%s: the pod saw %q, %v", to, seen, err)
				}
			}
		})
	}
}

func TestAPodCannotSendWithAForeignAddress(t *testing.T) {
	for name, s := range variants(eni.IPv4, eni.IPv6) {
		for _, all := range []string{"0", "1", "2"} {
			t.Run(name+", all rp_filter "+all, func(t *testing.T) {
				v := newVPC(t, s)
				// As a system may have it; what load decided must fit.
				v.node.Run(t, "sh", "-c", "echo "+all+" > /proc/sys/net/ipv4/conf/all/rp_filter")
				v.reload()
				v.node.Run(t, "nft", "add table inet watch; add chain inet watch forward { type filter hook forward priority 0; };"+
					"add counter inet watch foreign; add counter inet watch own;"+
					"add rule inet watch forward ip saddr { 10.0.0.11, 10.0.0.10, 10.0.0.99 } counter name foreign;"+
					"add rule inet watch forward ip6 saddr { 2001:db8::11, 2001:db8::99 } counter name foreign;"+
					"add rule inet watch forward ip saddr 10.0.0.21 counter name own")
				pod := v.pods["b"]
				pod.Run(t, "ping", "-c", "1", "-W", "2", internet4)
				for _, foreign := range []string{"10.0.0.11/32", "10.0.0.10/32", "10.0.0.99/32", "2001:db8::11/128", "2001:db8::99/128"} {
					addr, to := strings.Split(foreign, "/")[0], internet4
					args := []string{"addr", "add", foreign, "dev", "eth0"}
					if strings.Contains(addr, ":") {
						to, args = internet6, append(args, "nodad")
					}
					pod.Run(t, "ip", args...)
					_, _ = pod.Try("ping", "-c", "1", "-W", "0.1", "-I", addr, to)
					pod.Run(t, "ip", "addr", "del", foreign, "dev", "eth0")
				}
				counters := v.node.Run(t, "nft", "list", "counters", "table", "inet", "watch")
				if !strings.Contains(counters, "counter own {\n\t\tpackets 1 ") {
					t.Errorf("the watch does not see the pod's own packet:\n%s", counters)
				}
				if !strings.Contains(counters, "counter foreign {\n\t\tpackets 0 ") {
					t.Errorf("packets with a foreign source were forwarded:\n%s", counters)
				}
			})
		}
	}
}

// Host routes of others in the main table, as systemd-networkd writes them to the
// VPC's resolver and gateway and people to whatever they like, are the node's own
// business: a pod of another ENI goes on sending by that.
func TestHostRoutesOfOthersDoNotTakePodsOffTheirENI(t *testing.T) {
	const admin4, admin6 = "203.0.113.9", "2001:db8:ffff::9"
	for name, s := range variants(eni.IPv4, eni.IPv6) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			resolver := v.net.Resolver().String()
			for _, dst := range []string{resolver, "10.0.0.1"} {
				if routes := v.node.Run(t, "ip", "route", "show", dst); !strings.Contains(routes, "proto dhcp") {
					t.Fatalf("the system has no host route to %s: %q", dst, routes)
				}
			}
			v.internet.Run(t, "ip", "addr", "add", admin4+"/32", "dev", "lo")
			v.internet.Run(t, "ip", "addr", "add", admin6+"/128", "dev", "lo", "nodad")
			v.internet.Run(t, "sh", "-c", "until ip route get "+admin6+" | grep -q ^local; do :; done") // the kernel makes it so in the background
			router := named(v.net.Router().Name)
			router.Run(t, "ip", "route", "add", admin4, "via", internet4)
			router.Run(t, "ip", "route", "add", admin6, "via", internet6)
			v.node.Run(t, "ip", "route", "add", admin4, "via", "10.0.0.1", "dev", "eth0")
			v.node.Run(t, "ip", "route", "add", admin6, "via", "2001:db8::1", "dev", "eth0")
			for _, id := range []string{"a", "b"} {
				for _, to := range []string{resolver, "10.0.0.1", "2001:db8::1", admin4, admin6} {
					if out, err := v.pods[id].Try("ping", "-c", "1", "-W", "2", to); err != nil {
						t.Errorf("pod %s -> %s: %s", id, to, out)
					}
				}
			}
		})
	}
}

// ip_forward alone does not make a link forward that was made while new links get another
// setting.
func TestPodsHaveANetworkWhereNewLinksDoNotForward(t *testing.T) {
	v := newVPC(t, mapped())
	v.node.Run(t, "sysctl", "-q", "-w", "net.ipv4.conf.default.forwarding=0")
	if on := strings.TrimSpace(v.node.Run(t, "sysctl", "-n", "net.ipv4.ip_forward")); on != "1" {
		t.Fatalf("ip_forward is %s", on)
	}
	v.plugin("DEL", "b")
	v.pods["b"] = nettest.NewNetns(t, "pod-b-again")
	v.plugin("ADD", "b")
	if out, err := v.pods["b"].Try("ping", "-c", "1", "-W", "5", internet4); err != nil {
		t.Errorf("the pod has no network: %v: %s", err, out)
	}
}
