package node

import (
	"context"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
)

// Blocked returns a line for each chain of others that drops what pods send or get,
// with the command that mends it. Such chains are not enipool's to change.
func (n Node) Blocked(ctx context.Context) ([]string, error) {
	var flows []firewall.Flow
	err := n.Cache.View(ctx, func(s *ipam.State) error {
		flows = podFlows(s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	lines, err := firewall.Blocked(ctx, flows)
	return prefix("pods are cut off: ", lines), err
}

// podFlows returns what a pod of each ENI and family sends and gets.
func podFlows(s *ipam.State) []firewall.Flow {
	var flows []firewall.Flow
	for _, nic := range s.ENIs {
		seen := map[eni.Family]bool{}
		for _, a := range s.Addresses {
			if a.ENI != nic.Index || seen[a.Family()] || a.State == eni.Held {
				continue
			}
			seen[a.Family()] = true
			flows = append(flows, firewall.PodFlows(a.Family(), nic.Device)...)
			out, in := &flows[len(flows)-2], &flows[len(flows)-1]
			out.Src, in.Dst = a.Addr, a.Addr
		}
	}
	return flows
}
