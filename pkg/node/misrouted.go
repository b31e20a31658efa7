package node

import (
	"context"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Misrouted returns a line for each route of others in a routing table of ours that
// packets of pods take instead of ours, with the command that mends it. Such routes are
// not enipool's to change.
func (n Node) Misrouted(ctx context.Context) ([]string, error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	others, err := h.OthersRoutes()
	if err != nil || len(others) == 0 {
		return nil, err
	}
	v6 := host.HasIPv6()
	var lines []string
	err = n.Cache.View(ctx, func(s *ipam.State) error {
		lines = netconf.Misrouted(others, wantedNode(s, v6))
		return nil
	})
	return lines, err
}
