package agent

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// vacate plans what is free on ENIs below the first one for pods to go back. The cache has
// addresses there from a time when the first one was another: the configuration changed, or
// what is known of the instance. The pool's plan never looks at them, and an ADD would go on
// handing them out. Where they come in blocks that means single ones, too: an ADD takes the
// fullest block of the first ENI that has any, so that none would ever be free as a whole. The
// cloud is asked once all of a block are on their way back. What others put on such an ENI is not
// in the cache, and what they held from before leaves it when they let it go (others.go).
func vacate(cached *ipam.State, snap pool.Snapshot, first int, now time.Duration) (steps []pool.Step) {
	for _, e := range snap.ENIs {
		if e.Index >= first || e.Busy || e.Leaving {
			continue
		}
		var free []netip.Addr
		for _, line := range cached.Addresses {
			if _, rested := cached.FreeSince(&line, now); rested && line.ENI == e.Index {
				free = append(free, line.Addr)
			}
		}
		if len(free) > 0 { // hardly ever
			steps = append(steps, pool.Step{Do: pool.Release, ENI: e.ID, Index: e.Index, Subnet: e.Subnet, Addrs: free,
				Reason: fmt.Sprintf("%s carries no addresses for pods any more", e.ID)})
		}
	}
	return steps
}
