package netconf

import (
	"fmt"
	"net/netip"
	"slices"
)

// TakenPort is a host port of a pod that a rule of others leads elsewhere.
type TakenPort struct {
	Port  HostPort // as the pod asked for it
	Pod   netip.Addr
	Owner PortOwner
	By    string // for people: where the rule is
	To    string // for people: where it leads
	// Doubtful: the kernel asks the other rule and enipool's at the same point, and which
	// of them comes first can't be told.
	Doubtful bool
}

// PortOwner is the program whose rule takes a port, "" if its name is not known.
type PortOwner string

// The programs that lead ports of the node to somebody.
const (
	Docker    PortOwner = "docker"
	KubeProxy PortOwner = "kube-proxy"
	Podman    PortOwner = "podman"
)

// String returns the line for people, with what to do.
func (t TakenPort) String() string {
	owner := string(t.Owner)
	if owner == "" {
		owner = "a rule of others"
	}
	what := "comes before enipool's rule and leads it to " + t.To + ": what is sent to the node does not reach the pod"
	if t.Doubtful {
		what = "leads it to " + t.To + ", and only one of both gets its packets"
	}
	return fmt.Sprintf("%s: %s (%s) %s; %s, or give the pod another hostPort", t.Port, owner, t.By, what, t.remedy())
}

func (t TakenPort) remedy() string {
	switch t.Owner {
	case Docker, Podman:
		return fmt.Sprintf("publish the port of the container that `%s ps --filter publish=%d/%s` names by another number", t.Owner, t.Port.Port, t.Port.Transport)
	case KubeProxy:
		return fmt.Sprintf("give the Service another nodePort (`kubectl get services -A | grep %d/`)", t.Port.Port)
	}
	return "remove that rule"
}

// takenLines returns a line for each of the ports that others have.
func (c PortClaims) takenLines(ports []PodPorts) (lines []string) {
	for _, p := range ports {
		for _, t := range c.Taken {
			if t.Pod == p.Pod && slices.Contains(p.Ports, t.Port) {
				lines = append(lines, t.String())
			}
		}
	}
	return lines
}

// keepsListener tells whether the listener is no worse off for the pod's port: others have
// the port already. A container's port often has both, a rule and a proxy that listens.
// To the loopback such rules do not lead.
func (c PortClaims) keepsListener(pod netip.Addr, port HostPort, l Listener) bool {
	return !l.Addr.IsLoopback() && slices.ContainsFunc(c.Taken, func(t TakenPort) bool { return t.Pod == pod && t.Port == port })
}
