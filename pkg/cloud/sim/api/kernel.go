package api

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// unconfigure takes an IPv6 address that no ENI has off a node's link, and the default
// route with it.
func unconfigure(ns sim.Namespace, device string, hidden netip.Prefix) error {
	h, err := handle(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(device)
	if err != nil {
		return fmt.Errorf("look up link %s in %s: %w", device, ns.Name, err)
	}
	addr, err := netlink.ParseAddr(hidden.String())
	if err == nil {
		err = h.AddrDel(link, addr)
	}
	if err != nil {
		return fmt.Errorf("remove address %s in %s: %w", hidden, ns.Name, err)
	}
	_, all, _ := net.ParseCIDR("::/0")
	if err := h.RouteDel(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: all}); err != nil {
		return fmt.Errorf("remove default route in %s: %w", ns.Name, err)
	}
	return nil
}

// handle opens netlink in a namespace.
func handle(ns sim.Namespace) (*netlink.Handle, error) {
	at, err := netns.GetFromPath(ns.Path())
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", ns.Name, err)
	}
	defer at.Close()
	h, err := netlink.NewHandleAt(at, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink in %s: %w", ns.Name, err)
	}
	return h, nil
}
