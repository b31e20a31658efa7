package fastpath

import (
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
)

// Others reads the rest of what other programs have in the network namespace, besides
// what is in g already.
func (g Generation) Others() (netconf.Others, error) {
	o := netconf.Others{Legacy: strings.Fields(g.legacy), IPsec: g.ipsec, IPVS: g.ipvs, Programs: g.programs}
	var err error
	if o.Chains, err = readChains(); err != nil {
		return o, fmt.Errorf("read nftables: %w", err)
	}
	return o, nil
}
