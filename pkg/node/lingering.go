package node

import (
	"context"
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Lingering returns a line for each pod whose namespace's name is gone and that is not
// provably gone itself: its addresses stay its own.
func (n Node) Lingering(ctx context.Context) ([]string, error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	var used []eni.Address
	err = n.Cache.View(ctx, func(s *ipam.State) error { used = s.Used(); return nil })
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, a := range used {
		if a.Owner.Netns == "" || !host.NetnsGone(a.Owner.Netns, a.Owner.NetnsInode) {
			continue
		}
		why, err := lingers(h, *a.Owner)
		if err != nil {
			return lines, err
		}
		if why != "" {
			lines = append(lines, fmt.Sprintf("%s of %s: %s", a.Addr, a.Owner.PodName(), why))
		}
	}
	return lines, nil
}

// lingers says why an owner whose namespace's name is gone is not taken for gone, "" if
// it is. Its link of ours goes with the namespace and not with the name: what still runs
// in there still has the address.
func lingers(h *host.Host, o eni.Owner) (string, error) {
	if o.Kind != eni.Veth {
		if !host.NetnsOfProcess(o.Netns) {
			return "", nil
		}
		return fmt.Sprintf("the process of its namespace %s is gone, and whether a socket or an open file keeps the namespace can't be told; the runtime's DEL or GC frees the address", o.Netns), nil
	}
	linked, err := h.HasLink(netconf.HostDevice(o.Key))
	if err != nil || !linked {
		return "", err
	}
	return fmt.Sprintf("its namespace has lost its name %s and lives on: %s; the address is freed when that ends, or by the runtime's DEL", o.Netns, host.NetnsHolder(o.NetnsInode)), nil
}
