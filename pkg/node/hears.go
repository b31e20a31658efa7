package node

import (
	"context"

	"github.com/enipool/enipool/pkg/ipam"
)

// Hears tells whether the kernel announces nearly all that others change of what the node
// needs. What iptables does in its legacy form it does not.
func (n Node) Hears(ctx context.Context) bool {
	if n.Watch == nil || !n.Watch.hearsAll() {
		return false
	}
	announced := false
	err := n.Cache.View(ctx, func(s *ipam.State) error {
		announced = s.Settings.Firewall == ipam.Nftables
		return nil
	})
	return err == nil && announced
}

func (w *Watch) hearsAll() bool { return w.listener == nil || w.listener.HearsAll() }
