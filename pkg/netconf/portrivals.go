package netconf

import (
	"fmt"
	"net/netip"
)

// OthersPort is a port of the node that a rule of another plugin leads to a pod.
type OthersPort struct {
	Port HostPort
	Pod  netip.Addr
	By   string // for people: whose rule it is, and where
}

// Rivals returns a line for each of the pod's host ports that others lead elsewhere. Which of
// two such rules comes first depends on the packet filter and on who was there first.
func Rivals(ports []PodPorts, others []OthersPort) (lines []string) {
	for _, p := range ports {
		for _, other := range others {
			if port, found := p.rivalPort(other); found {
				lines = append(lines, fmt.Sprintf("%s: %s leads it to %s, and only one of both gets its packets; delete one of the pods, or give it another hostPort",
					port, other.By, netip.AddrPortFrom(other.Pod, other.Port.PodPort)))
			}
		}
	}
	return lines
}

// rivalPort returns the port that the other rule leads elsewhere, at one of its addresses at least.
func (p PodPorts) rivalPort(other OthersPort) (HostPort, bool) {
	if other.Pod.Is4() != p.Pod.Is4() || other.Pod == p.Pod {
		return HostPort{}, false
	}
	for _, port := range p.Ports {
		if port.Port == other.Port.Port && port.Transport == other.Port.Transport && port.Serves(p.Pod) &&
			(!port.isSingle() || !other.Port.isSingle() || port.Host == other.Port.Host) {
			return port, true
		}
	}
	return HostPort{}, false
}
