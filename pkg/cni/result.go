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
func vethResult(prev *current.Result, pod netconf.Pod, netns string) *current.Result {
	res := &current.Result{}
	if prev != nil {
		*res = *prev
	}
	res.Interfaces = append(res.Interfaces,
		&current.Interface{Name: pod.HostDev, Mac: pod.HostMAC.String(), Mtu: pod.MTU},
		&current.Interface{Name: pod.Dev, Mac: pod.MAC.String(), Mtu: pod.MTU, Sandbox: netns})
	at := len(res.Interfaces) - 1
	for i, a := range pod.Addrs {
		res.IPs = append(res.IPs, &current.IPConfig{Interface: &at, Address: cniNet(a.Prefix), Gateway: pod.Neighs[i].Addr.AsSlice()})
	}
	for _, r := range pod.Routes {
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
	addrs, routes := insideLink(dev, lease.Interface, lease.Addresses)
	for _, a := range addrs {
		gateway := lease.Interface.Net(eni.FamilyOf(a.Prefix.Addr())).Gateway
		ip := &current.IPConfig{Address: cniNet(a.Prefix), Gateway: gateway.AsSlice()}
		if at >= 0 {
			ip.Interface = &at
		}
		res.IPs = append(res.IPs, ip)
	}
	for _, r := range routes {
		if r.Gateway.IsValid() { // that to the router itself follows from the link
			res.Routes = append(res.Routes, cniRoute(r))
		}
	}
	return res, host.Inside{Dev: dev, Addrs: addrs, Routes: routes}
}
