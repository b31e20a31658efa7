// Command floor makes or removes a pod's veth pair with nothing but the calls of the
// kernel that package host makes for it, by the same code: what no plugin in Go that
// sets up the same can be faster than. It has no configuration, no node cache, no
// result, and takes nothing back.
//
//	floor add NETNS IFNAME HOSTDEV ADDRESS MTU ALIAS
//	floor del HOSTDEV
package main

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 7 && args[0] == "add":
		mtu, err := strconv.Atoi(args[5])
		if err != nil {
			return err
		}
		addr, err := netip.ParseAddr(args[4])
		if err != nil {
			return err
		}
		return add(args[1], netconf.Pod{Dev: args[2], HostDev: args[3], MTU: mtu, Alias: args[6],
			HostMAC: netconf.MAC{2, 0, 0, 0, 0, 1}, MAC: netconf.MAC{2, 0, 0, 0, 0, 2}}, netip.PrefixFrom(addr, 32))
	case len(args) == 2 && args[0] == "del":
		return del(args[1])
	}
	return fmt.Errorf("want add NETNS IFNAME HOSTDEV ADDRESS MTU ALIAS, or del HOSTDEV")
}

// add fills in what netconf.NewPod derives from a lease, and has it made.
func add(netns string, p netconf.Pod, addr netip.Prefix) error {
	gateway := netip.AddrFrom4([4]byte{169, 254, 1, 1})
	p.Addrs = []netconf.Addr{{Prefix: addr, Dev: p.Dev}}
	p.Neighs = []netconf.Neigh{{Addr: gateway, MAC: p.HostMAC, Dev: p.Dev}}
	p.Routes = []netconf.Route{
		{Dst: netip.PrefixFrom(gateway, 32), Dev: p.Dev, Table: netconf.MainTable},
		{Dst: netconf.Anywhere(false), Gateway: gateway, Dev: p.Dev, Table: netconf.MainTable}}
	p.HostNeighs = []netconf.Neigh{{Addr: addr.Addr(), MAC: p.MAC, Dev: p.HostDev}}
	p.HostRoutes = []netconf.Route{{Dst: addr, Dev: p.HostDev, Table: netconf.PodsTable}}
	p.HostSysctls = []netconf.Sysctl{
		{Key: "net/ipv4/conf/" + p.HostDev + "/rp_filter", Value: "1"},
		{Key: "net/ipv4/conf/" + p.HostDev + "/forwarding", Value: "1"},
		{Key: "net/ipv6/conf/" + p.HostDev + "/disable_ipv6", Value: "1"}}
	ns, err := host.OpenNetns(netns)
	if err != nil {
		return err
	}
	defer ns.Close()
	h, err := host.NewHere()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.CheckFree(addr.Addr()); err != nil {
		return err
	}
	return h.AddPod(ns, p)
}

func del(hostDev string) error {
	node, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	link, err := node.LinkByName(hostDev)
	if err != nil {
		return err
	}
	return node.LinkDel(link)
}
