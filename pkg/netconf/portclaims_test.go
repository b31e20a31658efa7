package netconf

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hostPort(t Transport, number uint16, host string) HostPort {
	p := HostPort{Transport: t, Port: number, PodPort: 80}
	if host != "" {
		p.Host = netip.MustParseAddr(host)
	}
	return p
}

func TestAListenerThatAHostPortTakesFromIsNamed(t *testing.T) {
	at := netip.MustParseAddr
	any4, any6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	for _, c := range []struct {
		name     string
		pods     []string
		port     HostPort
		listener Listener
		taken    bool
	}{
		{"all addresses", []string{"10.0.0.5"}, hostPort(TCP, 22, ""), Listener{TCP, any4, false, 22, false}, true},
		{"another port", []string{"10.0.0.5"}, hostPort(TCP, 22, ""), Listener{TCP, any4, false, 23, false}, false},
		{"another port that shares its word of the bits", []string{"10.0.0.5"}, hostPort(TCP, 22, ""), Listener{TCP, any4, false, 22 + 64, false}, false},
		{"another protocol", []string{"10.0.0.5"}, hostPort(TCP, 22, ""), Listener{UDP, any4, false, 22, false}, false},
		{"one address of the node", []string{"10.0.0.5"}, hostPort(TCP, 22, "10.0.0.1"), Listener{TCP, any4, false, 22, false}, true},
		{"of one address to one address", []string{"10.0.0.5"}, hostPort(TCP, 22, "10.0.0.1"), Listener{TCP, at("10.0.0.1"), false, 22, false}, true},
		{"of one address to another", []string{"10.0.0.5"}, hostPort(TCP, 22, "10.0.0.1"), Listener{TCP, at("10.0.0.2"), false, 22, false}, false},
		{"the loopback, which leads to the pod too", []string{"10.0.0.5"}, hostPort(UDP, 53, ""), Listener{UDP, at("127.0.0.53"), false, 53, false}, true},
		{"IPv6 that takes IPv4 too", []string{"10.0.0.5"}, hostPort(TCP, 22, ""), Listener{TCP, any6, true, 22, false}, true},
		{"IPv6 only", []string{"10.0.0.5"}, hostPort(TCP, 22, ""), Listener{TCP, any6, false, 22, false}, false},
		{"IPv6 only, of a pod with both", []string{"10.0.0.5", "fd00::5"}, hostPort(TCP, 22, ""), Listener{TCP, any6, false, 22, false}, true},
		{"both families twice", []string{"10.0.0.5", "fd00::5"}, hostPort(TCP, 22, ""), Listener{TCP, any6, true, 22, false}, true},
		{"IPv4 listener, IPv6 port", []string{"10.0.0.5", "fd00::5"}, hostPort(TCP, 22, "::"), Listener{TCP, any4, false, 22, false}, false},
		{"a service's address on the node", []string{"10.0.0.5"}, hostPort(TCP, 22, ""), Listener{TCP, at("10.96.0.1"), false, 22, true}, false},
		{"a service's address that the pod asks for", []string{"10.0.0.5"}, hostPort(TCP, 22, "10.96.0.1"), Listener{TCP, at("10.96.0.1"), false, 22, true}, true},
		{"the last port of all", []string{"10.0.0.5"}, hostPort(TCP, 65535, ""), Listener{TCP, any4, false, 65535, false}, true},
	} {
		var ports []PodPorts
		for _, pod := range c.pods {
			ports = append(ports, PodPorts{at(pod), []HostPort{hostPort(UDP, 1, ""), c.port}})
		}
		lines := PortClaims{Listeners: []Listener{c.listener}}.Lines(ports)
		if want := c.port.String() + " leads to the pod: a program of the node that listens there at " + c.listener.Addr.String(); c.taken != (len(lines) == 1) || c.taken && !strings.HasPrefix(lines[0], want) {
			t.Errorf("%s: %q, want it told %v", c.name, lines, c.taken)
		}
	}
}

func TestAHostIPThatTheNodeLacksIsToldOnce(t *testing.T) {
	at := netip.MustParseAddr
	list := []HostPort{hostPort(TCP, 80, "10.99.0.1"), hostPort(TCP, 81, "10.99.0.1"), hostPort(UDP, 80, "10.0.0.1"), hostPort(TCP, 82, "fd00::9"), hostPort(TCP, 1, ""), hostPort(TCP, 2, "0.0.0.0")}
	ports := []PodPorts{{at("10.0.0.5"), list}}
	if diff := cmp.Diff([]string{"10.99.0.1", "10.0.0.1"}, texts(Hosts(ports))); diff != "" {
		t.Errorf("hosts of the pod's family: %s", diff)
	}
	lines := PortClaims{Absent: []netip.Addr{at("10.99.0.1"), at("fd00::9")}}.Lines(ports)
	if want := "tcp port 80 of 10.99.0.1 and 1 more of it: the node does not have this address now"; len(lines) != 1 || !strings.HasPrefix(lines[0], want) {
		t.Errorf("%q, want one of %q", lines, want)
	}
}

func texts(addrs []netip.Addr) (list []string) {
	for _, a := range addrs {
		list = append(list, a.String())
	}
	return list
}

func TestAHostPortThatCanNeverLeadToThePodIsFound(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("fd00::5")
	for _, c := range []struct {
		name     string
		ports    []HostPort
		addrs    []netip.Addr
		unserved int
	}{
		{"none", nil, []netip.Addr{v4}, 0},
		{"all addresses", []HostPort{hostPort(TCP, 80, "")}, []netip.Addr{v4}, 0},
		{"an IPv6 address, pod of IPv4", []HostPort{hostPort(TCP, 80, "fd00::1")}, []netip.Addr{v4}, 1},
		{"an IPv6 address, pod of both", []HostPort{hostPort(TCP, 80, "fd00::1")}, []netip.Addr{v4, v6}, 0},
		{"all of IPv4, pod of IPv6", []HostPort{hostPort(TCP, 80, "0.0.0.0")}, []netip.Addr{v6}, 1},
		{"once for each family", []HostPort{hostPort(TCP, 80, "0.0.0.0"), hostPort(TCP, 80, "::")}, []netip.Addr{v4}, 0},
		{"once for each family, IPv6 first", []HostPort{hostPort(TCP, 80, "fd00::1"), hostPort(TCP, 80, "10.0.0.1")}, []netip.Addr{v4}, 0},
		{"the other family has another protocol", []HostPort{hostPort(TCP, 80, "::"), hostPort(UDP, 80, "0.0.0.0")}, []netip.Addr{v4}, 1},
		{"two", []HostPort{hostPort(TCP, 80, "::"), hostPort(TCP, 81, "fd00::1"), hostPort(TCP, 82, "")}, []netip.Addr{v4}, 2},
	} {
		if got := Unserved(c.ports, c.addrs); len(got) != c.unserved || slices.ContainsFunc(got, func(p HostPort) bool { return slices.ContainsFunc(c.addrs, p.Serves) }) {
			t.Errorf("%s: %v, want %d", c.name, got, c.unserved)
		}
	}
}

func TestARuleOfOthersForAHostPortIsNamed(t *testing.T) {
	at := netip.MustParseAddr
	for _, c := range []struct {
		name         string
		ours, theirs HostPort
		pod          string
		told         bool
	}{
		{"the same", hostPort(TCP, 80, ""), hostPort(TCP, 80, "0.0.0.0"), "10.1.0.5", true},
		{"another protocol", hostPort(TCP, 80, ""), hostPort(UDP, 80, "0.0.0.0"), "10.1.0.5", false},
		{"another number", hostPort(TCP, 80, ""), hostPort(TCP, 81, "0.0.0.0"), "10.1.0.5", false},
		{"theirs of one address", hostPort(TCP, 80, ""), hostPort(TCP, 80, "10.0.0.1"), "10.1.0.5", true},
		{"ours of one address", hostPort(TCP, 80, "10.0.0.1"), hostPort(TCP, 80, "0.0.0.0"), "10.1.0.5", true},
		{"of two addresses", hostPort(TCP, 80, "10.0.0.1"), hostPort(TCP, 80, "10.0.0.2"), "10.1.0.5", false},
		{"to the same pod", hostPort(TCP, 80, ""), hostPort(TCP, 80, "0.0.0.0"), "10.0.0.5", false},
		{"of the other family", hostPort(TCP, 80, ""), hostPort(TCP, 80, "::"), "fd00::9", false},
	} {
		others := []OthersPort{{Port: c.theirs, Pod: at(c.pod), By: "the other plugin"}}
		lines := Rivals([]PodPorts{{at("10.0.0.5"), []HostPort{c.ours}}}, others)
		if c.told != (len(lines) == 1) || c.told && !strings.Contains(lines[0], "the other plugin leads it to 10.1.0.5:80") {
			t.Errorf("%s: %q, want it told %v", c.name, lines, c.told)
		}
	}
}

// A container's port often has a proxy that listens too: where the rule has the port, that
// program loses nothing to the pod. To the loopback the pod's port leads nevertheless.
func TestAListenerAtAPortThatOthersTakeIsNotDeprived(t *testing.T) {
	pod, port := netip.MustParseAddr("10.0.0.5"), hostPort(TCP, 8080, "")
	ports := []PodPorts{{pod, []HostPort{port, hostPort(TCP, 22, "")}}}
	has := TakenPort{Port: port, Pod: pod, Owner: Docker, By: "iptables -t nat, chain DOCKER", To: "172.17.0.2:80"}
	for _, c := range []struct {
		name     string
		taken    TakenPort
		listener Listener
		want     []string
	}{
		{"docker's proxy", has, Listener{TCP, netip.IPv4Unspecified(), false, 8080, false}, []string{"tcp port 8080: docker (iptables -t nat, chain DOCKER) comes before"}},
		{"the loopback", has, Listener{TCP, netip.MustParseAddr("127.0.0.1"), false, 8080, false}, []string{"tcp port 8080: docker", "tcp port 8080 leads to the pod"}},
		{"another port", has, Listener{TCP, netip.IPv4Unspecified(), false, 22, false}, []string{"tcp port 8080: docker", "tcp port 22 leads to the pod"}},
		{"the port of another pod", TakenPort{Port: port, Pod: netip.MustParseAddr("10.0.0.6")}, Listener{TCP, netip.IPv4Unspecified(), false, 8080, false}, []string{"tcp port 8080 leads to the pod"}},
	} {
		lines := PortClaims{Listeners: []Listener{c.listener}, Taken: []TakenPort{c.taken}}.Lines(ports)
		if !slices.EqualFunc(lines, c.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", c.name, lines, c.want)
		}
	}
}

func TestWhatToDoAboutATakenHostPortDependsOnWhoHasIt(t *testing.T) {
	for owner, want := range map[PortOwner]string{
		Docker:    "docker ps --filter publish=8080/tcp",
		Podman:    "podman ps --filter publish=8080/tcp",
		KubeProxy: "give the Service another nodePort (`kubectl get services -A | grep 8080/`)",
		"":        "a rule of others (somewhere) leads it to 10.0.0.9:80, and only one of both gets its packets; remove that rule, or give the pod another hostPort",
	} {
		line := TakenPort{Port: hostPort(TCP, 8080, ""), Owner: owner, By: "somewhere", To: "10.0.0.9:80", Doubtful: owner == ""}.String()
		if !strings.Contains(line, want) {
			t.Errorf("%q: %q, want %q in it", owner, line, want)
		}
	}
}
