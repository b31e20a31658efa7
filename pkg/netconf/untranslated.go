package netconf

import (
	"net/netip"
	"slices"
)

// Flow is a connection as the kernel tracks it.
type Flow struct {
	From     netip.Addr // who sent the first packet
	Target   netip.Addr // whom it reached, behind every translation
	Back     netip.Addr // where answers go: From, or what it was translated to
	Answered bool
}

// LacksSNAT tells whether the flow leaves the VPC with a pod's address and has to have the
// node's: it began while the rule for that was missing, and the kernel asks no rule again
// as long as packets come. One that was answered is left alone, as it got through.
func (f Firewall) LacksSNAT(c Flow) bool {
	if !f.SNAT.IsValid() || c.Answered || c.Back != c.From {
		return false
	}
	_, pods := slices.BinarySearchFunc(f.Pool, c.From, netip.Addr.Compare)
	return pods && !slices.ContainsFunc(f.VPC, func(p netip.Prefix) bool { return p.Contains(c.Target) })
}
