package e2e

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// say answers each connection to the address with the text.
func say(t *testing.T, ns nettest.Netns, network, addr, text string) {
	t.Helper()
	serveAt(t, ns, network, addr, func(c net.Conn) { _, _ = c.Write([]byte(text)) })
}

// Addresses of services stand on each node where kube-proxy runs in IPVS mode, and that of
// the DNS cache of nodes does. A pod's host port of the same number leaves them alone; the
// node's own addresses lead to the pod, whatever link they are on.
func TestAServiceThatStandsOnTheNodeKeepsItsPort(t *testing.T) {
	for name, s := range map[string]ipam.Settings{
		"nftables": {Routing: ipam.Map, Firewall: ipam.Nftables, SNAT: true, Families: []eni.Family{eni.IPv4, eni.IPv6}},
		"iptables": {Routing: ipam.Rule, Firewall: ipam.Iptables, SNAT: true, Families: []eni.Family{eni.IPv4, eni.IPv6}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			const prepare = `ip link add LINK type ifb; ip link set LINK up; ip addr add 10.96.0.1/32 dev LINK; ip addr add fd96::1/128 dev LINK nodad
for ipt in iptables ip6tables; do $ipt -t nat -N KUBE-SERVICES; $ipt -t nat -I PREROUTING -j KUBE-SERVICES; $ipt -t nat -I OUTPUT -j KUBE-SERVICES; done
iptables -t nat -A KUBE-SERVICES -d 10.96.0.1/32 -p tcp --dport 443 -j ACCEPT; ip6tables -t nat -A KUBE-SERVICES -d fd96::1/128 -p tcp --dport 443 -j ACCEPT
ip link add other type ifb; ip link set other up; ip addr add 198.18.7.7/32 dev other`
			v.node.Run(t, "sh", "-c", strings.ReplaceAll(prepare, "LINK", "kube-ipvs0"))
			v.reload()
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(443, 80), tcp(80, 80), tcp(444, 80).on("10.96.0.1")}})
			say(t, v.pods["a"], "tcp", ":80", "the pod")
			say(t, v.node, "tcp4", "10.96.0.1:443", "the service")
			say(t, v.node, "tcp6", "[fd96::1]:443", "the service")
			for to, want := range map[string]string{"10.96.0.1:443": "the service", "[fd96::1]:443": "the service",
				"10.96.0.1:444": "the pod", // it asked for that address
				"10.0.0.10:443": "the pod", "10.0.0.10:80": "the pod", "198.18.7.7:443": "the pod"} {
				for from, ns := range map[string]nettest.Netns{"another pod": v.pods["b"], "the node": v.node} {
					if seen := queryWithin(5*time.Second, ns, "tcp", to); seen != want {
						t.Errorf("%s asks %s and gets %q, want %s", from, to, seen, want)
					}
				}
			}
			if lines := v.checkNode(); len(lines) > 0 {
				t.Errorf("pool check says %q", lines)
			}
			v.node.Run(t, "ip", "addr", "add", "10.96.0.2/32", "dev", "kube-ipvs0")
			if lines := v.checkNode(); s.Firewall == ipam.Nftables && !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "service4") }) {
				t.Errorf("a service is added, and pool check says %q", lines)
			}
			v.reload()
			say(t, v.node, "tcp4", "10.96.0.2:443", "the new service")
			if seen := queryWithin(5*time.Second, v.pods["b"], "tcp", "10.96.0.2:443"); s.Firewall == ipam.Nftables && seen != "the new service" {
				t.Errorf("the new service's address gives %q", seen)
			}
			v.node.Run(t, "ip", "link", "del", "kube-ipvs0")
			v.reload()
			if lines := v.checkNode(); slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "service4") }) {
				t.Errorf("without services pool check says %q", lines)
			}
		})
	}
}

// The agent hears of a new service's address at once.
func TestTheAgentLeavesNewServicesTheirPort(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "services", limits: tiny})
	s.configure("pool.batch: 2", rarely)
	s.start()
	s.poolOf(2)
	s.rested()
	s.node.Run(t, "sh", "-c", "ip link add kube-ipvs0 type ifb; ip addr add 10.96.0.1/32 dev kube-ipvs0")
	held := func() string { return s.node.Run(t, "nft", "list", "set", "inet", "enipool-pods", "service4") }
	s.eventually("the service's address is known", func() error {
		if have := held(); !strings.Contains(have, "10.96.0.1") {
			return fmt.Errorf("%s", have)
		}
		return nil
	})
	s.node.Run(t, "ip", "addr", "del", "10.96.0.1/32", "dev", "kube-ipvs0")
	s.eventually("it is forgotten", func() error {
		if have := held(); strings.Contains(have, "10.96.0.1") {
			return fmt.Errorf("%s", have)
		}
		return nil
	})
}
