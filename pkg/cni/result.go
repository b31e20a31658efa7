package cni

import (
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

func cniNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func cniRoute(r netconf.Route) *types.Route {
	return &types.Route{Dst: cniNet(r.Dst), GW: r.Gateway.AsSlice()}
}

// vethResult adds our pair to what earlier plugins made. Both ends carry their
// MAC: some runtimes fail without. Each address points at the pod's end, and the
// index is valid: one that is not makes containerd panic.
func vethResult(prev *current.Result, p netconf.Pod, netns string) *current.Result {
	res := &current.Result{}
	if prev != nil {
		*res = *prev
	}
	res.Interfaces = append(res.Interfaces,
		&current.Interface{Name: p.HostDev, Mac: p.HostMAC.String(), Mtu: p.MTU},
		&current.Interface{Name: p.Dev, Mac: p.MAC.String(), Mtu: p.MTU, Sandbox: netns})
	at := len(res.Interfaces) - 1
	for i, a := range p.Addrs {
		res.IPs = append(res.IPs, &current.IPConfig{Interface: &at, Address: cniNet(a.Prefix), Gateway: p.Neighs[i].Addr.AsSlice()})
	}
	for _, r := range p.Routes {
		if r.Gateway.IsValid() {
			res.Routes = append(res.Routes, cniRoute(r))
		}
	}
	return res
}

// linkResult adds addresses to another plugin's interface at position at, or,
// for a delegate, to none: at is then negative.
func linkResult(prev *current.Result, at int, lease ipam.Lease, dev string) (*current.Result, host.Inside) {
	res := &current.Result{}
	if prev != nil {
		*res = *prev
	}
	addrs, routes := inside(dev, lease.Interface, lease.Addresses)
	for _, a := range addrs {
		gateway := lease.Interface.Net(eni.FamilyOf(a.Prefix.Addr())).Gateway
		ip := &current.IPConfig{Address: cniNet(a.Prefix), Gateway: gateway.AsSlice()}
		if at >= 0 {
			ip.Interface = &at
		}
		res.IPs = append(res.IPs, ip)
	}
	for _, r := range routes {
		if r.Gateway.IsValid() { // a route to the router itself is the link's own affair
			res.Routes = append(res.Routes, cniRoute(r))
		}
	}
	return res, host.Inside{Dev: dev, Addrs: addrs, Routes: routes}
}
