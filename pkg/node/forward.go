package node

import (
	"context"
	"slices"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
)

// Blocked returns a line for each chain of others that drops what pods send or get, takes
// the marks away that choose their ENI, or gives them another source address than enipool
// does, with what mends it. Such chains are not enipool's to change.
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
	var ways firewall.Ways
	err = n.Cache.View(ctx, func(s *ipam.State) error {
		ways = waysOf(s, links, n.Now())
		return nil
	})
	if err != nil {
		return nil, err
	}
	d, err := firewall.FindDamage(ctx, ways)
	return slices.Concat(prefixLines("pods are cut off: ", d.Blocked), prefixLines("pods' addresses are changed: ", d.Translated)), err
}
