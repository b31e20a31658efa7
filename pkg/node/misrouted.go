package node

import (
	"context"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Misrouted returns a line for each route of others in a routing table of ours, and each
// rule of others before ours, that packets of pods take instead of ours, with the command
// that mends it. Such routes and rules are not enipool's to change.
func (n Node) Misrouted(ctx context.Context) ([]string, error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	h.KeepLinks()
	others, err := h.OthersRoutes()
	if err != nil {
		return nil, err
	}
	links, err := h.PodDevices()
	if err != nil {
		return nil, err
	}
	rules := map[bool][]netconf.PolicyRule{}
	for _, v6 := range []bool{false, true} {
		if rules[v6], err = h.Rules(v6); err != nil {
			return nil, err
		}
	}
	v6 := host.HasIPv6()
	var lines []string
	var probes []netconf.Probe
	err = n.Cache.View(ctx, func(s *ipam.State) error {
		if len(others) > 0 {
			lines = netconf.Misrouted(others, wantedNode(s, v6))
		}
		// A kernel without IPv6 has no way for such a packet, whose pod would seem diverted.
		if !v6 {
			s = withoutIPv6(s)
		}
		probes = netconf.Probes(s, links, rules)
		return nil
	})
	if err != nil {
		return nil, err
	}
	diverted, err := divertedPods(h, probes)
	return append(lines, diverted...), err
}

// divertedPods asks the kernel for the ways of pods' packets. Only where one is not as it
// should be are rules and routes read, to find who decides.
func divertedPods(h *host.Host, probes []netconf.Probe) ([]string, error) {
	if len(probes) == 0 {
		return nil, nil
	}
	packets := make([]netconf.Packet, len(probes))
	for i, p := range probes {
		packets[i] = p.Packet
	}
	ways, err := h.Ways(packets)
	if err != nil {
		return nil, err
	}
	policy := map[bool]netconf.Policy{}
	for i, p := range probes {
		v6 := p.From.Is6()
		if _, read := policy[v6]; read || p.Fits(ways[i]) {
			continue
		}
		if policy[v6], err = h.Policy(v6); err != nil {
			return nil, err
		}
	}
	return netconf.Diverted(probes, ways, policy), nil
}
