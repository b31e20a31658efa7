package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// vpcHost is the address of the far end while it is a host of the VPC.
var vpcHost = netip.MustParseAddr("10.0.200.1")

// answer makes the far end a host of the VPC that pods and the node can talk to, until
// stop: packets to the router reach it, and what it sends to the node's own address comes
// in at the first ENI, to pods' addresses at the one where the cloud would deliver it.
func (n *node) answer(pool netip.Prefix, podENI int) (stop func() error, err error) {
	addresses := []netip.Prefix{netip.PrefixFrom(nodeAddr, 32), pool}
	devices := []string{n.enis[0], n.enis[podENI]}
	macs := map[string]net.HardwareAddr{}
	readMACs := func() (err error) {
		for _, dev := range n.enis {
			if macs[dev], err = macOf(dev); err != nil {
				return err
			}
		}
		return nil
	}
	if err := n.space.do(readMACs); err != nil {
		return nil, err
	}
	err = n.far.do(func() error {
		if err := hostAddress(); err != nil {
			return err
		}
		for i, to := range addresses {
			if err := sendBy(devices[i], macs[devices[i]], to); err != nil {
				return err
			}
		}
		return readMACs()
	})
	if err != nil {
		return nil, err
	}
	routers := func(mac func(dev string) net.HardwareAddr) func() error {
		return func() error {
			return n.space.do(func() error {
				for _, dev := range n.enis {
					if err := setRouter(dev, mac(dev)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	far := routers(func(dev string) net.HardwareAddr { return macs[dev] })
	return routers(func(string) net.HardwareAddr { return nobody }), far()
}

// hostAddress gives the calling thread's namespace the host's address, and lets it
// take packets that come in elsewhere than answers leave.
func hostAddress() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("look up lo: %w", err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: vpcHost.AsSlice(), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrReplace(lo, addr); err != nil {
		return fmt.Errorf("add %s: %w", vpcHost, err)
	}
	files, err := filepath.Glob("/proc/sys/net/ipv4/conf/*/rp_filter")
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
}

// sendBy routes the addresses to a link with this MAC at the other end.
func sendBy(dev string, mac net.HardwareAddr, to netip.Prefix) error {
	l, err := netlink.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("look up %s: %w", dev, err)
	}
	if err := setRouter(dev, mac); err != nil {
		return err
	}
	err = netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: gateway.AsSlice(), Flags: unix.RTNH_F_ONLINK, Src: vpcHost.AsSlice(),
		Dst: &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), 32)}})
	if err != nil {
		return fmt.Errorf("add route to %s: %w", to, err)
	}
	return nil
}

func macOf(dev string) (net.HardwareAddr, error) {
	l, err := netlink.LinkByName(dev)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", dev, err)
	}
	return l.Attrs().HardwareAddr, nil
}

// forgetConnections empties the node's table of connections. The kernel keeps the closed ones
// for seconds, in one hash table for all namespaces: whoever is measured later would pay for them.
func (n *node) forgetConnections() error {
	return n.space.do(func() error {
		if err := netlink.ConntrackTableFlush(netlink.ConntrackTable); err != nil {
			return fmt.Errorf("forget connections: %w", err)
		}
		return nil
	})
}
