package node

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Blocked returns a line for each chain of others that drops what pods send or get, or takes
// the marks that choose their ENI away, with what mends it. Such chains are not enipool's to change.
func (n Node) Blocked(ctx context.Context) ([]string, error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	links, err := h.PodDevices()
	if err != nil {
		return nil, err
	}
	var flows, marked []firewall.Flow
	err = n.Cache.View(ctx, func(s *ipam.State) error {
		flows, marked = podFlows(s, links, n.Now()), markedFlows(s, links, n.Now())
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

// podFlows returns what pods of each ENI and family send and get.
func podFlows(s *ipam.State, links []string, now time.Duration) []firewall.Flow {
	var flows []firewall.Flow
	for _, nic := range s.ENIs {
		for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
			for _, a := range settledPods(s, nic.Index, f, links, now) {
				of := firewall.PodFlows(f, linkOf(a), nic.Device)
				of[0].Src, of[1].Dst = a.Addr, a.Addr
				flows = append(flows, of...)
			}
		}
	}
	return flows
}

// markedFlows returns what a pod of each ENI and family sends whose mark chooses its ENI.
func markedFlows(s *ipam.State, links []string, now time.Duration) []firewall.Flow {
	if s.Settings.Routing != ipam.Map {
		return nil
	}
	var flows []firewall.Flow
	for _, nic := range s.ENIs {
		for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
			pods := settledPods(s, nic.Index, f, links, now)
			if nic.Index == 0 || len(pods) == 0 {
				continue
			}
			out := firewall.PodFlows(f, linkOf(pods[0]), "")[0]
			out.Src, out.Mark, out.Mask = pods[0].Addr, netconf.Mark(nic.Index, s.Settings.MarkMask), s.Settings.MarkMask
			flows = append(flows, out)
		}
	}
	return flows
}
