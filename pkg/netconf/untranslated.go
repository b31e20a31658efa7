package netconf

import (
	"net/netip"
	"slices"
)

// Flow is a connection as the kernel tracks it.
type Flow struct {
	From, To  netip.Addr // of the first packet, as its sender wrote it
	Transport Transport
	Port      uint16     // that it was sent to
	Target    netip.Addr // whom it reached: To, or what it was translated to
	Back      netip.Addr // where answers go: From, or what it was translated to
	Answered  bool
}

// Untranslated returns what tells whether a flow has to be translated and is not: it began
// while the rule for that was missing, and the kernel asks no rule again as long as packets
// come. One that was answered got through, so it is none of them. Local are the node's
// addresses; exit names the link by which a packet of a pod leaves the node.
func (f Firewall) Untranslated(local []netip.Addr, exit func(from, to netip.Addr) string) func(Flow) bool {
	ports, pods := NewPortSet(f.Ports...), map[netip.Addr]bool{}
	for _, p := range f.Ports {
		pods[p.Pod] = true
	}
	return func(c Flow) bool {
		return !c.Answered && (f.lacksSNAT(c, exit) || ports.lacksDNAT(c, local) || pods[c.Target] && c.lacksReturn())
	}
}

// lacksReturn tells whether the flow was led to a pod with host ports that can't answer to
// its source: itself, or the node's loopback address. Such a flow has to have the node's.
func (c Flow) lacksReturn() bool {
	return c.Back == c.From && c.Target != c.To && (c.From == c.Target || loopback4.Contains(c.From))
}

// lacksSNAT tells whether the flow leaves the VPC with a pod's address and has to have the
// node's. What leaves by a tunnel or another link of the node's keeps the pod's.
func (f Firewall) lacksSNAT(c Flow, exit func(from, to netip.Addr) string) bool {
	if !f.SNAT.IsValid() || c.Back != c.From {
		return false
	}
	_, pods := slices.BinarySearchFunc(f.Pool, c.From, netip.Addr.Compare)
	return pods && !f.keepsSource(c.Target) && exit(c.From, c.Target) == f.OutDevice
}

// lacksDNAT tells whether the flow is to a port of the node that leads to a pod, and stayed on
// the node. What others translated, such as a service with the same port, is theirs.
func (s PortSet) lacksDNAT(c Flow, local []netip.Addr) bool {
	if !c.To.IsValid() || c.Target != c.To || !s.Leads(c.To, c.Transport, c.Port) {
		return false
	}
	return c.To.IsLoopback() || slices.Contains(local, c.To)
}
