package agent

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// growKernel adds to the kernel what the cache needs, and returns by index which ENIs can't have that, for a
// cause of their own links: the others have all that they need.
func (a *Agent) growKernel(ctx context.Context, cached *ipam.State) (broken map[int]error, err error) {
	lines, err := a.Kernel.Grow(ctx, cached)
	for _, line := range lines {
		if strings.HasPrefix(line, "forget ") { // what it adds is the cache's own
			a.Log.Info("kernel updated", "change", line, "reason", "the node cache changed")
		}
	}
	devices, alone := netconf.BrokenLinks(err)
	if !alone {
		return nil, err
	}
	broken = map[int]error{}
	for _, nic := range cached.ENIs {
		if why := devices[nic.Device]; why != nil {
			broken[nic.Index] = why
		}
	}
	return broken, nil
}

// growKernelFor is growKernel for some of the cache's addresses, and returns those that the kernel has all for,
// or what is wrong if there are none.
func (a *Agent) growKernelFor(ctx context.Context, cached *ipam.State, addrs []netip.Addr) (good []netip.Addr, err error) {
	broken, err := a.growKernel(ctx, cached)
	if err != nil || len(broken) == 0 {
		return addrs, err
	}
	for i := range cached.Addresses {
		switch line := &cached.Addresses[i]; {
		case !slices.Contains(addrs, line.Addr):
		case broken[line.ENI] != nil:
			err = broken[line.ENI]
		default:
			good = append(good, line.Addr)
		}
	}
	if len(good) > 0 {
		err = nil
	}
	return good, err
}

// withoutBroken leaves out of a new cache what is free on ENIs whose links can't be set up. One that is built
// from an old one can't do without: what that lacks must cool down.
func withoutBroken(cached, old *ipam.State, broken map[int]error) error {
	for _, why := range broken {
		if old != nil {
			return why
		}
	}
	cached.Addresses = slices.DeleteFunc(cached.Addresses, func(line eni.Address) bool {
		return (line.State == eni.Free || line.State == eni.Cooling) && broken[line.ENI] != nil
	})
	return nil
}
