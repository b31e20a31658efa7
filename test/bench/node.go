package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/enipool/enipool/pkg/config/inventory"
	pkgnode "github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/vishvananda/netlink"
)

// The addresses of the VPC that all nodes here are in.
var (
	vpc      = netip.MustParsePrefix("10.0.0.0/16")
	gateway  = netip.MustParseAddr("10.0.0.1")
	nodeAddr = netip.MustParseAddr("10.0.0.10") // the first ENI's
)

// node is a node that enipool serves, with a veth pair for each ENI whose far
// end does nothing.
type node struct {
	space space
	far   space
	cache string // path of the node cache
	enis  []string
}

// newNode makes a node with an ENI for each pool of addresses ("" for none) and
// loads it the way `enipoolctl pool load` does.
func newNode(s space, routing string, pools ...string) (node, error) {
	n := node{space: s, cache: filepath.Join("/run/enipool", s.Name, "node.cache")}
	inv, err := inventory.Parse([]byte(inventoryText(routing, pools)))
	if err != nil {
		return n, err
	}
	if n.far, err = newSpace(s.Name + "vpc"); err != nil {
		return n, err
	}
	return n, s.do(func() error {
		for i := range pools {
			n.enis = append(n.enis, fmt.Sprint("eth", i))
			if err := cable(n.enis[i], n.far); err != nil {
				return err
			}
		}
		loader := pkgnode.Node{Cache: nodecache.Cache{Path: n.cache}, Now: nodecache.SinceBoot}
		if _, err := loader.Load(context.Background(), inv); err != nil {
			return err
		}
		for _, dev := range n.enis {
			if err := silence(dev); err != nil {
				return err
			}
		}
		return nil
	})
}

// inventoryText has no cool-down: a run releases addresses faster than a node does.
func inventoryText(routing string, pools []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{routing: %s, vpcCIDRs: [%s], coolDown: 0s, families: [ipv4], enis: [", routing, vpc)
	for i, pool := range pools {
		fmt.Fprintf(&b, "{id: eni-%d, device: eth%d, primary: 10.0.0.%d/20, gateway: %s, addresses: [%s]},", i, i, 10+i, gateway, pool)
	}
	return b.String() + "]}"
}

// nobody is the MAC of no link.
var nobody = net.HardwareAddr{2, 0, 0, 0, 0, 0xff}

// silence names a router that is not there: the far end drops what is sent to
// its MAC as early as the kernel can, and still counts it.
func silence(dev string) error { return setRouter(dev, nobody) }

// setRouter makes the MAC the router's behind a link.
func setRouter(dev string, mac net.HardwareAddr) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("look up %s: %w", dev, err)
	}
	return netlink.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT,
		IP: gateway.AsSlice(), HardwareAddr: mac})
}

// arrived returns how many packets have reached the far end of each ENI.
func (n node) arrived() (counts []uint64, err error) {
	err = n.far.do(func() error {
		for _, dev := range n.enis {
			link, err := netlink.LinkByName(dev)
			if err != nil {
				return fmt.Errorf("look up far end of %s: %w", dev, err)
			}
			counts = append(counts, link.Attrs().Statistics.RxPackets)
		}
		return nil
	})
	return counts, err
}
