package firewall

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// Destination is where pods send to, by a flow to some addresses there. A chain that
// catches each of them is told.
type Destination struct {
	Flows []Flow
	SNAT  netip.Addr // the source that enipool gives them; not valid: they keep the pod's
}

// findTranslated returns a line for each chain of others that gives what pods send another
// source than enipool does, for certain.
func findTranslated(chains []baseChain, w Ways) ([]string, error) {
	var lines []string
	for _, c := range chains {
		if c.hook != *nftables.ChainHookPostrouting || c.kind != nftables.ChainTypeNAT {
			continue
		}
		before, err := c.beforeSNAT(w.Backend)
		if err != nil {
			return nil, err
		}
		for _, d := range w.Leaving {
			if d.SNAT.IsValid() && !before {
				continue // ours comes first, or may do so
			}
			given, err := d.sourceGiven(c)
			if err != nil {
				return nil, err
			}
			if line := d.lineFor(c, given); line != "" {
				lines = append(lines, line)
				break
			}
		}
	}
	return lines, nil
}

// beforeSNAT tells whether packets come to the chain before they come to ours, or to ours
// by it. Which of two chains of the same priority is the first nobody can tell.
func (c baseChain) beforeSNAT(b ipam.Firewall) (bool, error) {
	if b == ipam.Iptables && c.iptables == "nat" {
		ours, err := c.leadsTo(iptSNAT)
		return ours != "" || c.priority < priorityOfSNAT, err
	}
	return c.priority < priorityOfSNAT, nil
}

// iptSNAT begins the name of our chain that translates.
const iptSNAT = netconf.IptChainPrefix + "SNAT"

// sourceGiven returns what source the chain gives all flows, none if it is not the same for all.
func (d Destination) sourceGiven(c baseChain) (given source, err error) {
	for i, f := range d.Flows {
		if !slices.Contains(c.families, f.Family) {
			return source{}, nil
		}
		w := walk{flow: f, atOurs: func(chain string) bool { return d.SNAT.IsValid() && hasOurPrefix(chain, iptSNAT) }}
		if _, err := w.followBase(c.rules, c.name); err != nil {
			return source{}, err
		}
		if i > 0 && w.source != given {
			return source{}, nil
		}
		given = w.source
	}
	return given, nil
}

// lineFor tells people of what the chain gives, "" where there is nothing wrong with it.
func (d Destination) lineFor(c baseChain, given source) string {
	what := d.Flows[0].What
	switch {
	case !given.given:
		return ""
	case !d.SNAT.IsValid():
		return fmt.Sprintf("%s: chain %s gives %s another source address than the pod's; have its rules leave that out", c.table, c.name, what)
	case given.addr.IsValid() && given.addr != d.SNAT:
		return fmt.Sprintf("%s: chain %s gives %s the source address %s before enipool gives them %s; have its rules leave pods' addresses out, or switch snat off in enipool's configuration",
			c.table, c.name, what, given.addr, d.SNAT)
	}
	return "" // masqueraded they get the address that enipool gives them
}
