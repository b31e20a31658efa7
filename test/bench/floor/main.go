// Command floor makes or removes a pod's veth pair with nothing but the netlink
// calls that package host needs for it: what no plugin in Go can be faster than.
//
//	floor add NETNS IFNAME HOSTDEV ADDRESS MTU ALIAS
//	floor del HOSTDEV
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
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
		ns, err := os.Open(args[1])
		if err != nil {
			return err
		}
		return add(int(ns.Fd()), pod{dev: args[2], hostDev: args[3], addr: net.ParseIP(args[4]).To4(), mtu: mtu, alias: args[6]})
	case len(args) == 2 && args[0] == "del":
		return del(args[1])
	}
	return fmt.Errorf("want add NETNS IFNAME HOSTDEV ADDRESS MTU ALIAS, or del HOSTDEV")
}

type pod struct {
	dev, hostDev, alias string
	addr                net.IP
	mtu                 int
}

var (
	hostMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	podMAC  = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	gateway = net.IPv4(169, 254, 1, 1).To4()
)

func host(ip net.IP) *net.IPNet { return &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)} }

func add(ns int, p pod) error {
	node, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	inside, err := netlink.NewHandleAt(netns.NsHandle(ns), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	v := netlink.NewVeth(netlink.LinkAttrs{Name: p.hostDev, MTU: p.mtu, TxQLen: -1, NumTxQueues: 1, NumRxQueues: 1, HardwareAddr: hostMAC, Flags: net.FlagUp})
	v.PeerName, v.PeerHardwareAddr, v.PeerMTU, v.PeerNamespace = p.dev, podMAC, uint32(p.mtu), netlink.NsFd(ns)
	if err := node.LinkAdd(v); err != nil {
		return fmt.Errorf("create veth: %w", err)
	}
	link, err := node.LinkByName(p.hostDev)
	if err != nil {
		return err
	}
	if err := node.LinkSetAlias(link, p.alias); err != nil {
		return fmt.Errorf("set alias: %w", err)
	}
	if err := fill(inside, p, link.Attrs().ParentIndex); err != nil {
		return err
	}
	at := link.Attrs().Index
	if err := node.NeighSet(neigh(at, p.addr, podMAC)); err != nil {
		return fmt.Errorf("set neighbour: %w", err)
	}
	if err := node.RouteReplace(&netlink.Route{LinkIndex: at, Dst: host(p.addr), Scope: netlink.SCOPE_LINK, Table: unix.RT_TABLE_MAIN}); err != nil {
		return fmt.Errorf("add route: %w", err)
	}
	// Asked for, the carrier of the end that was up first is noticed.
	_, err = node.LinkByIndex(at)
	return err
}

// fill does the part inside the pod.
func fill(h *netlink.Handle, p pod, at int) error {
	link := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: at, Name: p.dev}}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("set link up: %w", err)
	}
	if err := h.AddrAdd(link, &netlink.Addr{IPNet: host(p.addr)}); err != nil {
		return fmt.Errorf("add address: %w", err)
	}
	if err := h.NeighSet(neigh(at, gateway, hostMAC)); err != nil {
		return fmt.Errorf("set neighbour: %w", err)
	}
	if err := h.RouteReplace(&netlink.Route{LinkIndex: at, Dst: host(gateway), Scope: netlink.SCOPE_LINK, Table: unix.RT_TABLE_MAIN}); err != nil {
		return fmt.Errorf("add route: %w", err)
	}
	everywhere := &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	return h.RouteReplace(&netlink.Route{LinkIndex: at, Dst: everywhere, Gw: gateway, Table: unix.RT_TABLE_MAIN})
}

func neigh(at int, ip net.IP, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: at, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT, IP: ip, HardwareAddr: mac}
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
