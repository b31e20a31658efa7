package pool

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/node"
)

func tcpPorts(first, pod uint16, count int, step uint16) (list []node.ReportPort) {
	for i := range uint16(count) {
		list = append(list, node.ReportPort{HostPort: first + i, ContainerPort: pod + step*i, Protocol: "tcp"})
	}
	return list
}

func TestHostPortsAreToldShortAndNoneIsHidden(t *testing.T) {
	udp := node.ReportPort{HostPort: 53, ContainerPort: 53, Protocol: "udp", HostIP: netip.MustParseAddr("10.0.0.1")}
	six := node.ReportPort{HostPort: 53, ContainerPort: 53, Protocol: "udp", HostIP: netip.MustParseAddr("fd00::1")}
	single := func(ports ...uint16) (list []node.ReportPort) {
		for _, p := range ports {
			list = append(list, tcpPorts(p, 80, 1, 0)...)
		}
		return list
	}
	for want, ports := range map[string][]node.ReportPort{
		"-":                                           nil,
		"8080->80/tcp":                                single(8080),
		"8080->80/tcp, 8443->80/tcp":                  single(8443, 8080),
		"10.0.0.1:53->53/udp":                         {udp},
		"[fd00::1]:53->53/udp":                        {six},
		"8000-8009->9000-9009/tcp":                    tcpPorts(8000, 9000, 10, 1),
		"10000-12999->80/tcp":                         tcpPorts(10000, 80, 3000, 0),
		"1-65535->1-65535/tcp":                        tcpPorts(1, 1, 65535, 1),
		"80->80/tcp, 81->90/tcp":                      {tcpPorts(80, 80, 1, 0)[0], tcpPorts(81, 90, 1, 0)[0]},
		"53->53/tcp, 10.0.0.1:53->53/udp":             {udp, tcpPorts(53, 53, 1, 0)[0]},
		"1->80/tcp, 3->80/tcp, 5->80/tcp, 7->80/tcp":  single(1, 3, 5, 7),
		"1->80/tcp, 3->80/tcp, 5->80/tcp and 2 more":  single(1, 3, 5, 7, 9),
		"1->80/tcp, 3->80/tcp, 5->80/tcp and 11 more": slices.Concat(single(1, 3, 5, 7), tcpPorts(100, 80, 10, 0)),
		"1-2->80/tcp, 3->90/tcp":                      slices.Concat(single(1, 2), tcpPorts(3, 90, 1, 0)),
		"1-2->80-81/tcp, 3->81/tcp":                   slices.Concat(tcpPorts(1, 80, 2, 1), tcpPorts(3, 81, 1, 0)),
	} {
		if got := portsCell(node.ReportAddress{HostPorts: ports}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := portsCell(node.ReportAddress{RecordError: "damaged"}); got != notKnown {
		t.Errorf("of a record that can't be read: %q", got)
	}
}

func TestLimitsAreToldInTheWordsOfTc(t *testing.T) {
	for want, l := range map[string]*node.ReportLimits{"-": nil, "in 80Mbit, out 1Gbit": {IngressRate: 8e7, EgressRate: 1e9}, "out 1234567bit": {EgressRate: 1234567}, "in 8kbit": {IngressRate: 8000}} {
		if got := limitsCell(node.ReportAddress{Bandwidth: l}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhoHasAPortIsAskedByItsNumber(t *testing.T) {
	for text, want := range map[string]portFilter{"": {}, "80": {port: 80}, "53/udp": {53, "udp"}} {
		if got, err := parsePortFilter(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "65536", "http", "80/", "80/icmp", "-1", "/tcp"} {
		if _, err := parsePortFilter(text); err == nil || !strings.Contains(err.Error(), "--port "+text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
