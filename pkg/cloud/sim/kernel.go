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
func (n *Network) addVeth(want veth) (port, peer int, err error) {
	f, err := os.Open(want.ns.Path())
	if err != nil {
		return 0, 0, fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Flags = want.name, want.mtu, net.FlagUp
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerHardwareAddr, pair.PeerMTU = want.peer, want.mac, uint32(want.mtu)
	pair.PeerNamespace = netlink.NsFd(f.Fd())
	// The peer is made in its namespace at once: moved there later, it could clash with a name.
	err = n.h.LinkAdd(pair)
	if errors.Is(err, unix.EEXIST) {
		return 0, 0, fmt.Errorf("create link %s in %s: a link of that name %w", want.peer, want.ns.Name, os.ErrExist)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("create link %s in %s: %w", want.peer, want.ns.Name, isolate.Hint(err))
	}
	link, err := n.h.LinkByName(want.name)
	if err != nil {
		return 0, 0, fmt.Errorf("look up link %s in %s: %w", want.name, n.router.Name, err)
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

// plugIn sets the other end of a pair up, and returns when both ends can send.
func (n *Network) plugIn(port int, ns Namespace, peer int) error {
	handle, err := ns.openNetlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	if err := handle.LinkSetUp(byIndex(peer)); err != nil {
		return fmt.Errorf("set link %d of %s up: %w", peer, ns.Name, err)
	}
	if err := awaitCarrier(n.h, port); err != nil {
		return fmt.Errorf("%w in %s", err, n.router.Name)
	}
	if err := awaitCarrier(handle, peer); err != nil {
		return fmt.Errorf("%w in %s", err, ns.Name)
	}
	return nil
}

// awaitCarrier returns when the link can send. An end of a veth pair that is set
// up before the other drops what it should send until the kernel gets round to
// noticing its carrier. Kernels since 6.8 notice it when they are asked.
func awaitCarrier(h *netlink.Handle, index int) error {
	return awaitKernel(func() (bool, error) {
		link, err := h.LinkByIndex(index)
		if err != nil {
			return false, fmt.Errorf("look up link %d: %w", index, err)
		}
		return link.Attrs().OperState == netlink.OperUp, nil
	}, fmt.Sprintf("carrier of link %d", index))
}

// awaitKernel asks until the kernel has done something that it does in the background, normally
// within microseconds. It gives up after five seconds.
func awaitKernel(done func() (bool, error), what string) error {
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
func addAddr(handle *netlink.Handle, link int, prefix netip.Prefix, flags int) error {
	a := &netlink.Addr{IPNet: ipNet(prefix), Flags: flags}
	if prefix.Addr().Is6() {
		a.Flags |= unix.IFA_F_NODAD
	}
	if err := handle.AddrReplace(byIndex(link), a); err != nil {
		return fmt.Errorf("add address %s: %w", prefix, err)
	}
	if prefix.Addr().Is4() {
		return nil
	}
	// The kernel adds the local route of an IPv6 address in the background.
	return awaitKernel(func() (bool, error) {
		routes, err := handle.RouteGet(prefix.Addr().AsSlice())
		return err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL, nil
	}, fmt.Sprintf("local route of %s", prefix.Addr()))
}

// addRoute adds or replaces a route; without a valid gateway dst is on the link.
func addRoute(h *netlink.Handle, link int, dst netip.Prefix, gateway netip.Addr) error {
	if err := h.RouteReplace(newRoute(link, dst, gateway)); err != nil {
		return fmt.Errorf("add route %s: %w", dst, err)
	}
	return nil
}

func newRoute(link int, dst netip.Prefix, gateway netip.Addr) *netlink.Route {
	r := &netlink.Route{LinkIndex: link, Dst: ipNet(dst)}
	if gateway.IsValid() {
		r.Gw = gateway.AsSlice()
	} else if dst.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	return r
}

// newNeighbour is the permanent entry of an address behind a link.
func newNeighbour(link int, a netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: link, Family: netlinkFamily(a), State: netlink.NUD_PERMANENT,
		IP: a.AsSlice(), HardwareAddr: mac}
}

// newProxy is the entry that makes a link answer for an address.
func newProxy(link int, a netip.Addr) *netlink.Neigh {
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
