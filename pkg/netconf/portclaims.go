package netconf

import (
	"fmt"
	"net/netip"
	"slices"
)

// A host port may take from a program of the node what that waits for, lose to a rule of
// another plugin, or be of an address that the node does not have. The portmap plugin opens
// such a port without a word. No pod is refused for it here either, but it is told.

// Listener is a socket of the node that waits for what comes to a port.
type Listener struct {
	Transport Transport
	Addr      netip.Addr // the unspecified address: all of the family
	Both      bool       // all IPv6 addresses, and all IPv4 addresses too
	Port      uint16
	Service   bool // Addr is a service's, see IsServiceLink: ports of all addresses spare it
}

// PortClaims is what else there is about ports of the node.
type PortClaims struct {
	Listeners []Listener
	Absent    []netip.Addr // hosts of ports that the node does not have
	Taken     []TakenPort  // what rules of others take before enipool's
}

// Lines returns a line for each of the pod's host ports that rules of others take, for each
// listener that gets nothing any more for one, and for each address that nobody can reach
// them by, with what to do about it.
func (c PortClaims) Lines(ports []PodPorts) []string {
	return slices.Concat(c.takenLines(ports), c.deprivedLines(ports), c.unreachableLines(ports))
}

// deprivedLines goes once through the ports, of which there may be thousands.
func (c PortClaims) deprivedLines(ports []PodPorts) (lines []string) {
	var numbers [1 << 16 / 64]uint64
	for _, l := range c.Listeners {
		numbers[l.Port/64] |= 1 << (l.Port % 64)
	}
	for _, p := range ports {
		for _, port := range p.Ports {
			if numbers[port.Port/64]&(1<<(port.Port%64)) == 0 {
				continue
			}
			for _, l := range c.Listeners {
				if !port.takesFrom(p.Pod, l) || c.keepsListener(p.Pod, port, l) {
					continue
				}
				line := fmt.Sprintf("%s leads to the pod: a program of the node that listens there at %s gets nothing of it any more; `ss -lnp --%s 'sport = :%d'` names it; give one of them another port",
					port, l.Addr, l.Transport, l.Port)
				if !slices.Contains(lines, line) { // once for both families
					lines = append(lines, line)
				}
			}
		}
	}
	return lines
}

// takesFrom tells whether the port leads to the pod what the listener waits for.
func (p HostPort) takesFrom(pod netip.Addr, l Listener) bool {
	if p.Transport != l.Transport || p.Port != l.Port || !p.Serves(pod) || l.Addr.Is4() != pod.Is4() && !l.Both {
		return false
	}
	if !p.isSingle() {
		return !l.Service
	}
	return l.Addr.IsUnspecified() || l.Addr == p.Host
}

// isSingle tells whether the port is one of a single address of the node.
func (p HostPort) isSingle() bool { return p.Host.IsValid() && !p.Host.IsUnspecified() }

// unreachableLines names the first port of each address, which may come yet.
func (c PortClaims) unreachableLines(ports []PodPorts) (lines []string) {
	for _, host := range c.Absent {
		var first HostPort
		more := -1
		for _, p := range ports {
			for _, port := range p.Ports {
				if port.Host == host && port.Serves(p.Pod) {
					if more++; more == 0 {
						first = port
					}
				}
			}
		}
		if more < 0 {
			continue
		}
		line := first.String()
		if more > 0 {
			line += fmt.Sprintf(" and %d more of it", more)
		}
		lines = append(lines, line+": the node does not have this address now, so nobody reaches the pod by it; choose a hostIP that the node has, or none for all of its addresses")
	}
	return lines
}

// Hosts returns the single addresses of the node that the ports are of.
func Hosts(ports []PodPorts) (list []netip.Addr) {
	for _, p := range ports {
		for _, port := range p.Ports {
			if port.isSingle() && port.Serves(p.Pod) && !slices.Contains(list, port.Host) {
				list = append(list, port.Host)
			}
		}
	}
	return list
}

// Unserved returns the ports that can never lead to a pod with the addresses, because they
// are of a family that it has none in. A runtime may say "all addresses" once for each
// family: where the same port works in another one, it is none of those.
func Unserved(ports []HostPort, addrs []netip.Addr) (list []HostPort) {
	works := map[HostPort]int{}
	serves := func(p HostPort) bool { return slices.ContainsFunc(addrs, p.Serves) }
	number := func(p HostPort) HostPort { return HostPort{Transport: p.Transport, Port: p.Port} }
	for _, p := range ports {
		if serves(p) {
			works[number(p)]++
		}
	}
	for _, p := range ports {
		if works[number(p)] == 0 {
			list = append(list, p)
		}
	}
	return list
}
