package firewall

import (
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/nftables"
)

// findUnreached returns a line for each chain of iptables that ends the way of a flow for
// certain before the jump to enipool's chain, which stands behind.
func findUnreached(chains []baseChain, w Ways) ([]string, error) {
	if w.Backend != ipam.Iptables {
		return nil, nil
	}
	var lines []string
	for _, c := range chains {
		var list []string
		var err error
		switch {
		case c.iptables == "mangle" && c.hook == *nftables.ChainHookPrerouting:
			list, err = c.endsMarked(w.Marked)
		case c.iptables == "nat" && c.hook == *nftables.ChainHookPostrouting:
			list, err = c.endsLeaving(w.Leaving)
		}
		if lines = append(lines, list...); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

func (c baseChain) endsMarked(flows []Marked) ([]string, error) {
	var lines []string
	for _, m := range flows {
		ours, err := c.leadsTo(m.Way.iptChain())
		if err != nil {
			return nil, err
		}
		ends, err := c.endsBefore(ours, m.Flow)
		if err != nil {
			return nil, err
		}
		line := fmt.Sprintf("%s: chain %s accepts %s before enipool's chain %s gives the mark by which answers leave by the right ENI; "+
			"let its rules RETURN instead of ACCEPT (Calico: FELIX_IPTABLESMANGLEALLOWACTION=Return), or put them behind enipool's", c.table, c.name, m.What, ours)
		if ends && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

func (c baseChain) endsLeaving(to []Destination) ([]string, error) {
	for _, d := range to {
		if !d.SNAT.IsValid() {
			continue
		}
		ours, err := c.leadsTo(iptSNAT)
		if err != nil {
			return nil, err
		}
		// A rule may end single flows for a reason of its own. Only one that ends all of them is
		// for everything there.
		all := len(d.Flows) > 0
		for _, f := range d.Flows {
			ends, err := c.endsBefore(ours, f)
			if err != nil {
				return nil, err
			}
			all = all && ends
		}
		if all {
			return []string{fmt.Sprintf("%s: chain %s accepts %s before enipool's chain %s gives them the address %s, and nobody answers to a pod's address there; "+
				"have its rules leave pods' addresses out, or put them behind enipool's", c.table, c.name, d.Flows[0].What, ours, d.SNAT)}, nil
		}
	}
	return nil, nil
}

// endsBefore tells whether the flow is accepted before it comes to our chain, which the
// chain leads to.
func (c baseChain) endsBefore(ours string, f Flow) (bool, error) {
	if ours == "" || !slices.Contains(c.families, f.Family) {
		return false, nil // to put a jump there is a repair's
	}
	reached := false
	w := walk{flow: f, atOurs: func(chain string) bool {
		reached = reached || chain == ours
		return false
	}}
	end, err := w.followBase(c.rules, c.name)
	return end == isAccepted && !reached && !w.source.given, err
}
