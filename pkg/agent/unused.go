package agent

import (
	"fmt"
	"net/netip"
)

// unusedLines says which addresses on ENIs below the first one for pods the node cache does not have.
// They may be from a time when such an ENI had pods' addresses: after a reboot nobody knows that any
// more, and others may have them, so that nobody but people can give them back.
func (a *Agent) unusedLines() (lines []string) {
	if a.cached == nil {
		return nil
	}
	var known map[netip.Addr]bool
	for _, nic := range a.view.enis {
		others := nic.Index > 0 && !nic.Ours // attached by them, with what they need there
		if others || nic.Index < 0 || nic.Index >= a.firstIndex() || len(nic.Addresses) == 0 {
			continue
		}
		if known == nil { // hardly ever
			known = knownOf(a.cached)
		}
		var unused []netip.Addr
		for _, addr := range nic.Addresses {
			if !known[addr] {
				unused = append(unused, addr)
			}
		}
		if len(unused) > 0 {
			lines = append(lines, fmt.Sprintf("%s, an ENI that gets no addresses for pods, has %d that no pod uses (%s): unassign them in the cloud unless something else on the node uses them",
				nic.ID, len(unused), brief(unused)))
		}
	}
	return lines
}
