package firewall_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/go-cmp/cmp"
)

// somePorts are host ports of two pods, one with addresses of both families.
func somePorts() []netconf.PodPorts {
	at := netip.MustParseAddr
	web := []netconf.HostPort{{Transport: netconf.TCP, Port: 80, PodPort: 8080}, {Transport: netconf.UDP, Host: at("10.0.0.10"), Port: 53, PodPort: 53},
		{Transport: netconf.SCTP, Host: at("::"), Port: 80, PodPort: 3868}, {Transport: netconf.TCP, Host: at("fd00::10"), Port: 443, PodPort: 8443}}
	return []netconf.PodPorts{{Pod: at("10.0.0.21"), Ports: web}, {Pod: at("fd00::21"), Ports: web},
		{Pod: at("10.0.0.11"), Ports: []netconf.HostPort{{Transport: netconf.UDP, Port: 80, PodPort: 80}}}}
}

func TestHostPortsComeAndGoAsElements(t *testing.T) {
	newNode(t)
	f := netconf.NewFirewall(nodeState(ipam.Nftables, eni.IPv4, eni.IPv6))
	apply(t, f)
	f.Ports = somePorts()
	if diff := cmp.Diff([]string{
		"nftables: enipool-pods: put map addrport4 right: add 10.0.0.10 . udp . 53",
		"nftables: enipool-pods: put set hairpin4 right: add 10.0.0.11 . 10.0.0.11, 10.0.0.21 . 10.0.0.21",
		"nftables: enipool-pods: put map hostport4 right: add tcp . 80, udp . 80",
		"nftables: enipool-pods: put map addrport6 right: add fd00::10 . tcp . 443",
		"nftables: enipool-pods: put set hairpin6 right: add fd00::21 . fd00::21",
		"nftables: enipool-pods: put map hostport6 right: add tcp . 80, sctp . 80",
	}, apply(t, f)); diff != "" {
		t.Error(diff)
	}
	holds(t, f)
	// The port moves to another pod: the same key, another value.
	f.Ports[0].Ports, f.Ports[2].Ports = nil, f.Ports[0].Ports[:1]
	if diff := cmp.Diff([]string{
		"nftables: enipool-pods: put map addrport4 right: remove 10.0.0.10 . udp . 53",
		"nftables: enipool-pods: put map hostport4 right: remove tcp . 80, udp . 80 add tcp . 80",
	}, apply(t, f)); diff != "" {
		t.Error(diff)
	}
	holds(t, f)
}

func TestOfTwoPodsThatClaimAPortTheFirstHasIt(t *testing.T) {
	newNode(t)
	f := netconf.NewFirewall(nodeState(ipam.Nftables, eni.IPv4))
	port := []netconf.HostPort{{Transport: netconf.TCP, Port: 80, PodPort: 80}}
	f.Ports = []netconf.PodPorts{{Pod: netip.MustParseAddr("10.0.0.11"), Ports: port}, {Pod: netip.MustParseAddr("10.0.0.21"), Ports: port}}
	apply(t, f)
	holds(t, f)
}

func TestIptablesHoldsHostPortsInChainsThatStay(t *testing.T) {
	for _, variant := range []string{"nf_tables", "legacy"} {
		t.Run(variant, func(t *testing.T) {
			newNode(t)
			if variant == "legacy" {
				legacyIptables(t)
			}
			f := netconf.NewFirewall(nodeState(ipam.Iptables, eni.IPv4, eni.IPv6))
			apply(t, f)
			f.Ports = somePorts()
			if diff := cmp.Diff([]string{
				"iptables -t nat: put the rules of chain ENIPODS-ports right", "iptables -t nat: put the rules of chain ENIPODS-self right",
				"ip6tables -t nat: put the rules of chain ENIPODS-ports right", "ip6tables -t nat: put the rules of chain ENIPODS-self right",
			}, apply(t, f)); diff != "" {
				t.Error(diff)
			}
			holds(t, f)
			f.Ports = f.Ports[2:]
			apply(t, f)
			holds(t, f)
			if _, err := firewall.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := sh(t, "iptables-save; ip6tables-save"); strings.Contains(left, "ENIPO") {
				t.Errorf("left after Remove:\n%s", left)
			}
		})
	}
}
