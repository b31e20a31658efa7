package firewall

import (
	"fmt"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// Unmarked returns a line for each chain of others behind enipool's at hook prerouting that
// takes a flow's mark away for certain: by that mark the packet would leave by its ENI.
func Unmarked(flows []Flow) ([]string, error) {
	c, err := nftConn()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	chains, err := c.ListChains()
	if err != nil {
		if noNftables(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	var lines []string
	for _, base := range chains {
		if !marksBehindOurs(base) {
			continue
		}
		rules := newNftRules(c, base.Table)
		for _, f := range flows {
			if f.Mask == 0 || !inFamily(base.Table.Family, f.Family) {
				continue
			}
			w := walk{flow: f, rules: rules}
			if _, err := w.chain(base.Name, 0); err != nil {
				return nil, err
			}
			if w.cleared {
				lines = append(lines, fmt.Sprintf("nftables table %s %s: chain %s changes the mark of %s, by which enipool chooses their ENI; have it leave the bits %#08x alone",
					familyName(base.Table.Family), base.Table.Name, base.Name, f.What, f.Mask))
				break
			}
		}
	}
	return lines, nil
}

// marksBehindOurs tells whether packets pass the base chain behind ours that marks them.
func marksBehindOurs(base *nftables.Chain) bool {
	return base.Hooknum != nil && *base.Hooknum == *nftables.ChainHookPrerouting && base.Type == nftables.ChainTypeFilter &&
		base.Priority != nil && *base.Priority > netconf.NftMarksPriority && forwards(base.Table.Family) &&
		!(base.Table.Family == nftables.TableFamilyINet && netconf.IsNftTable(base.Table.Name))
}
