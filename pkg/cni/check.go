package cni

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Check compares the runtime's last result, the node state and the kernel. What later
// plugins of the chain changed is tolerated.
func (p *Plugin) Check(ctx context.Context, request Request) error {
	if request.Prev == nil {
		return &config.KeyError{Key: "prevResult", Value: "absent", Want: "the result of the ADD that is to be checked"}
	}
	held, settings, err := p.leaseOf(ctx, request.Owner.Key)
	if err != nil {
		return err
	}
	if len(held.Addresses) == 0 {
		return &mismatchError{[]string{fmt.Sprintf("the node cache has no address for %s", request.Owner.Key)}}
	}
	request.Owner.Kind = held.Addresses[0].Owner.Kind
	lines := request.compareResult(held)
	more, err := p.compareKernel(ctx, request, settings, held)
	if err != nil {
		return err
	}
	sources, err := checkSources(settings, held)
	if err != nil {
		return err
	}
	if lines = slices.Concat(lines, more, sources); len(lines) > 0 {
		return &mismatchError{lines}
	}
	return nil
}

// compareResult looks for the node state's addresses in the result, on the right
// interface of the right sandbox.
func (r Request) compareResult(held ipam.Lease) []string {
	var lines []string
	at := r.podInterface(r.Prev)
	switch {
	case r.Owner.Kind == eni.Delegated:
	case at < 0:
		lines = append(lines, fmt.Sprintf("prevResult has no interface %s in a sandbox", r.Owner.IfName))
	case r.Prev.Interfaces[at].Sandbox != r.Owner.Netns:
		lines = append(lines, fmt.Sprintf("prevResult's sandbox is %s, CNI_NETNS is %s", r.Prev.Interfaces[at].Sandbox, r.Owner.Netns))
	}
	for _, a := range held.Addresses {
		has := slices.ContainsFunc(r.Prev.IPs, func(ip *current.IPConfig) bool { return ip.Address.IP.Equal(a.Addr.AsSlice()) })
		if !has {
			lines = append(lines, fmt.Sprintf("prevResult lacks %s, which the node cache has for %s", a.Addr, r.Owner.Key))
		}
	}
	return lines
}

func (p *Plugin) compareKernel(ctx context.Context, request Request, settings ipam.Settings, held ipam.Lease) ([]string, error) {
	if request.Owner.Kind == eni.Delegated {
		return nil, nil // the links are the caller's to check
	}
	ns, err := host.OpenNetns(request.Owner.Netns)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	kernel, err := host.NewHere()
	if err != nil {
		return nil, err
	}
	defer kernel.Close()
	if request.Owner.Kind == eni.Chained {
		var addrs []netip.Addr
		for _, a := range held.Addresses {
			addrs = append(addrs, a.Addr)
		}
		return kernel.CheckAddrs(ns, request.Owner.IfName, addrs)
	}
	lines, err := kernel.CheckPod(ns, netconf.NewPod(settings, held, request.Conf.MTU))
	if err != nil {
		return lines, err
	}
	more, err := p.checkExtras(ctx, kernel, request, settings)
	return append(lines, more...), err
}

// Status returns an error where no ADD can be served. An exhausted pool is a warning only,
// unless the configuration says otherwise: runtimes report a node with an error as not
// ready, and its running pods would be evicted.
func (p *Plugin) Status(ctx context.Context, request Request) (warning string, err error) {
	var damage []ipam.Damage
	var none *ipam.Exhausted
	var known *ipam.State
	nobody := eni.Owner{Key: eni.Key{Network: request.Conf.Name, Container: "status"}}
	err = p.Cache.View(ctx, func(state *ipam.State) error {
		damage, known = state.Damaged, state
		// What View hands out is never written back, so this takes no address.
		_, err := state.AssignPod(nobody, "", p.Now())
		errors.As(err, &none)
		return nil
	})
	if err == nil {
		err = p.Cache.CheckWritable()
	}
	if err == nil {
		err = p.tellAgentAway(p.tellRepair(refuseAllCutOff(known)))
	}
	if err != nil {
		return "", types.NewError(types.ErrPluginNotAvailable, err.Error(), errorDetails(err))
	}
	if len(damage) > 0 {
		return "", types.NewError(types.ErrPluginNotAvailable, fmt.Sprintf("node cache is damaged: %s", damage[0].Cause),
			"other addresses are still served; the agent or `enipoolctl pool load` rebuilds the cache")
	}
	if none == nil {
		return "", nil
	}
	if request.Conf.StatusFailsWhenExhausted {
		return "", types.NewError(types.ErrPluginNotAvailable, none.Error(), "")
	}
	return none.Error(), nil
}
