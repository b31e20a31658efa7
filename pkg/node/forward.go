package node

import (
	"context"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Blocked returns a line for each chain of others that drops what pods send or get, or takes
// the marks that choose their ENI away, with what mends it. Such chains are not enipool's to change.
func (n Node) Blocked(ctx context.Context) ([]string, error) {
	var flows, marked []firewall.Flow
	err := n.Cache.View(ctx, func(s *ipam.State) error {
		flows, marked = podFlows(s), markedFlows(s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	lines, err := firewall.Blocked(ctx, flows)
	if err != nil {
		return prefix("pods are cut off: ", lines), err
	}
	more, err := firewall.Unmarked(marked)
	return prefix("pods are cut off: ", append(lines, more...)), err
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

// markedFlows returns what a pod of each ENI and family sends whose mark chooses its ENI.
func markedFlows(s *ipam.State) []firewall.Flow {
	if s.Settings.Routing != ipam.Map {
		return nil
	}
	var flows []firewall.Flow
	for _, nic := range s.ENIs {
		for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
			at := slices.IndexFunc(s.Addresses, func(a eni.Address) bool { return a.ENI == nic.Index && a.Family() == f && a.State != eni.Held })
			if nic.Index == 0 || at < 0 {
				continue
			}
			out := firewall.PodFlows(f, "")[0]
			out.Src, out.Mark, out.Mask = s.Addresses[at].Addr, netconf.Mark(nic.Index, s.Settings.MarkMask), s.Settings.MarkMask
			flows = append(flows, out)
		}
	}
	return flows
}
