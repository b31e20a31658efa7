package sim

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// veth is a pair of links between the router and another namespace.
type veth struct {
	name string // in the router
	peer string // in ns
	ns   Namespace
	mac  net.HardwareAddr // of the peer, nil for one of the kernel's choice
	mtu  int              // bytes, of both ends
}

// addVeth makes the pair, the router's end up, and returns the index of either
// end in its namespace.
func (n *Network) addVeth(v veth) (port, peer int, err error) {
	f, err := os.Open(v.ns.Path())
	if err != nil {
		return 0, 0, fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Flags = v.name, v.mtu, net.FlagUp
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerHardwareAddr, pair.PeerMTU = v.peer, v.mac, uint32(v.mtu)
	pair.PeerNamespace = netlink.NsFd(f.Fd())
	err = n.h.LinkAdd(pair)
	if errors.Is(err, unix.EEXIST) {
		return 0, 0, fmt.Errorf("create link %s in %s: a link of that name %w", v.peer, v.ns.Name, os.ErrExist)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("create link %s in %s: %w", v.peer, v.ns.Name, isolate.Hint(err))
	}
	link, err := n.h.LinkByName(v.name)
	if err != nil {
		return 0, 0, fmt.Errorf("look up link %s in %s: %w", v.name, n.router.Name, err)
	}
	return link.Attrs().Index, link.Attrs().ParentIndex, nil
}

// delLink removes a link of the router and with it the other end.
func (n *Network) delLink(index int) error {
	if err := ignoreGone(n.h.LinkDel(byIndex(index))); err != nil {
		return fmt.Errorf("remove link %d of %s: %w", index, n.router.Name, err)
	}
	return nil
}

// plugIn sets the other end of a pair up, and returns when both can send.
func (n *Network) plugIn(port int, ns Namespace, peer int) error {
	h, err := ns.handle()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.LinkSetUp(byIndex(peer)); err != nil {
		return fmt.Errorf("set link %d of %s up: %w", peer, ns.Name, err)
	}
	if err := awaitCarrier(n.h, port); err != nil {
		return fmt.Errorf("%w in %s", err, n.router.Name)
	}
	if err := awaitCarrier(h, peer); err != nil {
		return fmt.Errorf("%w in %s", err, ns.Name)
	}
	return nil
}

// awaitCarrier returns when the link can send. An end of a veth pair that is set
// up before the other drops what it should send until the kernel gets round to
// noticing its carrier. Kernels since 6.8 notice it when they are asked.
func awaitCarrier(h *netlink.Handle, index int) error {
	return await(func() (bool, error) {
		link, err := h.LinkByIndex(index)
		if err != nil {
			return false, fmt.Errorf("look up link %d: %w", index, err)
		}
		return link.Attrs().OperState == netlink.OperUp, nil
	}, fmt.Sprintf("carrier of link %d", index))
}

// await asks until the kernel has done what it does in the background, normally
// within microseconds.
func await(done func() (bool, error), what string) error {
	const tries = 5000
	for range tries {
		if ok, err := done(); ok || err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("wait for %s: nothing after %d ms", what, tries)
}

// addAddr adds an address that needs no duplicate address detection, and returns
// when it takes packets.
func addAddr(h *netlink.Handle, link int, p netip.Prefix, flags int) error {
	a := &netlink.Addr{IPNet: ipNet(p), Flags: flags}
	if p.Addr().Is6() {
		a.Flags |= unix.IFA_F_NODAD
	}
	if err := h.AddrReplace(byIndex(link), a); err != nil {
		return fmt.Errorf("add address %s: %w", p, err)
	}
	if p.Addr().Is4() {
		return nil
	}
	// The kernel adds the local route of an IPv6 address in the background.
	return await(func() (bool, error) {
		routes, err := h.RouteGet(p.Addr().AsSlice())
		return err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL, nil
	}, fmt.Sprintf("local route of %s", p.Addr()))
}

// addRoute adds or replaces a route; without a valid gateway dst is on the link.
func addRoute(h *netlink.Handle, link int, dst netip.Prefix, gateway netip.Addr) error {
	if err := h.RouteReplace(route(link, dst, gateway)); err != nil {
		return fmt.Errorf("add route %s: %w", dst, err)
	}
	return nil
}

func route(link int, dst netip.Prefix, gateway netip.Addr) *netlink.Route {
	r := &netlink.Route{LinkIndex: link, Dst: ipNet(dst)}
	if gateway.IsValid() {
		r.Gw = gateway.AsSlice()
	} else if dst.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	return r
}

// neighbour is the permanent entry of an address behind a link.
func neighbour(link int, a netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: link, Family: netlinkFamily(a), State: netlink.NUD_PERMANENT,
		IP: a.AsSlice(), HardwareAddr: mac}
}

// proxy is the entry that makes a link answer for an address.
func proxy(link int, a netip.Addr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: link, Family: netlinkFamily(a), Flags: netlink.NTF_PROXY, IP: a.AsSlice()}
}

// answerAtOnce sets a link's proxy_delay, by default a random time of up to 0.8 s
// before a proxy answers, to 0. The sysctls of neighbours do not exist in a user
// namespace, the netlink message does.
func answerAtOnce(ns Namespace, link int) error {
	const (
		ndtaName, ndtaParms           = 1, 6 // linux/neighbour.h
		ndtpaIfindex, ndtpaProxyDelay = 1, 13
	)
	tables := map[uint8]string{unix.AF_INET: "arp_cache", unix.AF_INET6: "ndisc_cache"}
	return ns.Do(func() error {
		for family, name := range tables {
			req := nl.NewNetlinkRequest(unix.RTM_SETNEIGHTBL, unix.NLM_F_ACK)
			req.AddData(ndtMsg{family})
			req.AddData(nl.NewRtAttr(ndtaName, nl.ZeroTerminated(name)))
			parms := nl.NewRtAttr(ndtaParms|unix.NLA_F_NESTED, nil)
			parms.AddRtAttr(ndtpaIfindex, nl.Uint32Attr(uint32(link)))
			parms.AddRtAttr(ndtpaProxyDelay, nl.Uint64Attr(0))
			req.AddData(parms)
			if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
				return fmt.Errorf("set proxy_delay of %s for link %d in %s: %w", name, link, ns.Name, err)
			}
		}
		return nil
	})
}

// ndtMsg is struct ndtmsg: a family and padding.
type ndtMsg struct{ family uint8 }

func (m ndtMsg) Len() int          { return 4 }
func (m ndtMsg) Serialize() []byte { return []byte{m.family, 0, 0, 0} }

// ignoreGone makes a removal succeed if there was nothing to remove.
func ignoreGone(err error) error {
	for _, e := range []error{unix.ENOENT, unix.ESRCH, unix.ENODEV, unix.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

func byIndex(index int) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

func netlinkFamily(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
