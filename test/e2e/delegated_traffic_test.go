package e2e

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
)

// What a pod of ipvlan or macvlan sends leaves by its ENI past the node, so what it asks
// of the node's own address comes in by an ENI with an address of the pool.
func TestAPodOfAnotherPluginAsksAHostPortOfItsNode(t *testing.T) {
	for name, s := range variants(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			for _, id := range []string{"a", "b"} {
				echo(t, v.pods[id], "80")
			}
			own := netip.MustParseAddr("10.0.0.22")
			v.must(v.net.Assign("eni-1", own))
			v.inv.Addresses = append(v.inv.Addresses, eni.Address{Addr: own, ENI: 1})
			v.load(v.inv)
			pod := nettest.NewNetns(t, "pod-d")
			// A macvlan has a MAC of its own, which the router must be told of.
			const mac = "02:00:00:00:99:01"
			v.node.Run(t, "ip", "link", "add", "mac0", "address", mac, "link", "eth1", "type", "macvlan", "mode", "bridge")
			router := named(v.net.Router().Name)
			way := strings.Fields(router.Run(t, "ip", "route", "get", own.String()))
			router.Run(t, "ip", "neigh", "replace", own.String(), "lladdr", mac, "nud", "permanent", "dev", way[2])
			v.node.Run(t, "ip", "link", "set", "mac0", "netns", pod.Name)
			pod.Run(t, "ip", "addr", "add", own.String()+"/24", "dev", "mac0")
			pod.Run(t, "ip", "link", "set", "mac0", "up")
			pod.Run(t, "ip", "route", "add", "default", "via", "10.0.0.1")
			v.node.Run(t, "nft", "add table ip kube; add chain ip kube pre { type nat hook prerouting priority dstnat; };"+
				"add rule ip kube pre fib daddr type local tcp dport 30001 dnat to 10.0.0.11:80;"+
				"add rule ip kube pre fib daddr type local tcp dport 30002 dnat to 10.0.0.21:80")
			t.Cleanup(func() { v.node.Run(t, "nft", "delete table ip kube") })
			for _, to := range []string{"10.0.0.11:80", "10.0.0.10:30001", "10.0.0.10:30002"} {
				if seen := queryWithin(5*time.Second, pod, "tcp", to); seen != own.String() {
					t.Errorf("%s: the pod that was asked saw %q", to, seen)
				}
			}
		})
	}
}
