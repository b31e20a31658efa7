package sim

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The addresses of the internet, from the ranges for documentation.
var (
	InternetV4 = netip.MustParseAddr("203.0.113.2")
	InternetV6 = netip.MustParseAddr("2001:db8:ffff::2")

	internetNetV4 = netip.MustParsePrefix("203.0.113.0/24")
	internetNetV6 = netip.MustParsePrefix("2001:db8:ffff::/64")
	routerNetV4   = netip.MustParsePrefix("203.0.113.1/24")
	routerNetV6   = netip.MustParsePrefix("2001:db8:ffff::1/64")
)

// The link between router and internet, at its two ends.
const (
	internetPort = "internet"
	vpcPort      = "vpc"
	internetMTU  = 1500 // bytes, as of real internet gateways
)

// setUpRouter makes an empty router with its way to the internet.
func (n *Network) setUpRouter() error {
	err := n.router.setSysctls(
		"ipv4/ip_forward 1",
		"ipv6/conf/all/forwarding 1",
		// A new namespace may have the machine's settings. The source check is
		// sourceCheck's; rp_filter would judge ARP too, where a node may well name
		// the address of another of its ENIs.
		"ipv4/conf/all/rp_filter 0", "ipv4/conf/default/rp_filter 0",
		"ipv4/conf/all/send_redirects 0", "ipv4/conf/default/send_redirects 0",
		"ipv6/conf/all/disable_ipv6 0", "ipv6/conf/default/disable_ipv6 0",
		"ipv6/conf/all/accept_dad 0", "ipv6/conf/default/accept_dad 0",
	)
	if err != nil {
		return err
	}
	if err := n.sourceCheck(); err != nil {
		return err
	}
	for _, c := range n.cidrs {
		// Else what goes to an address of nobody would go to the internet and back
		// until its TTL ends.
		if err := n.h.RouteAdd(&netlink.Route{Dst: ipNet(c), Type: unix.RTN_BLACKHOLE}); err != nil {
			return fmt.Errorf("add route blackhole %s in %s: %w", c, n.router.Name, err)
		}
	}
	if err := n.linkInternet(); err != nil {
		return err
	}
	if resolver := n.Resolver(); resolver.IsValid() {
		lo, err := n.h.LinkByName("lo")
		if err == nil {
			err = addAddr(n.h, lo.Attrs().Index, hostPrefix(resolver), 0)
		}
		if err != nil {
			return fmt.Errorf("add resolver %s: %w", resolver, err)
		}
	}
	// The ports to come answer for the addresses behind the other ones.
	return n.router.setSysctls("ipv4/conf/default/proxy_arp 1", "ipv6/conf/default/proxy_ndp 1")
}

// linkInternet connects the router and the internet, with routes both ways.
func (n *Network) linkInternet() error {
	if err := n.internet.setSysctls("ipv6/conf/all/disable_ipv6 0", "ipv6/conf/default/disable_ipv6 0",
		"ipv6/conf/default/accept_dad 0"); err != nil {
		return err
	}
	far, err := n.internet.openNetlink()
	if err != nil {
		return err
	}
	defer far.Close()
	// The MTU of an internet gateway, smaller than that of the ENIs: the router has to send ICMP
	// errors for larger packets, as in a cloud.
	nearIndex, farIndex, err := n.addVeth(veth{name: internetPort, peer: vpcPort, ns: n.internet, mtu: internetMTU})
	if err != nil {
		return err
	}
	if err := n.plugIn(nearIndex, n.internet, farIndex); err != nil {
		return err
	}
	defaults := []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	inner := []netip.Prefix{routerNetV4, routerNetV6}
	outer := []netip.Prefix{netip.PrefixFrom(InternetV4, internetNetV4.Bits()), netip.PrefixFrom(InternetV6, internetNetV6.Bits())}
	if err := addressAndRoute(n.h, nearIndex, inner, outer, defaults); err != nil {
		return fmt.Errorf("link router to internet: %w", err)
	}
	if err := addressAndRoute(far, farIndex, outer, inner, n.cidrs); err != nil {
		return fmt.Errorf("link internet to router: %w", err)
	}
	return nil
}

// addressAndRoute gives a link its addresses and routes dsts through those of vias.
func addressAndRoute(handle *netlink.Handle, link int, addrs, vias, dsts []netip.Prefix) error {
	for _, a := range addrs {
		if err := addAddr(handle, link, a, 0); err != nil {
			return err
		}
	}
	for _, dst := range dsts {
		for _, via := range vias {
			if via.Addr().Is4() != dst.Addr().Is4() {
				continue
			}
			if err := addRoute(handle, link, dst, via.Addr()); err != nil {
				return err
			}
		}
	}
	return nil
}

// sourceCheck drops packets that arrive on a port from a source address whose route is not that
// port: only the routes say which ENI has an address. Link-local sources pass, because neighbour
// discovery needs them, and nothing forwards them.
//
//	table inet vpc {
//		chain sources {
//			type filter hook prerouting priority raw; policy accept;
//			ip6 saddr fe80::/10 accept
//			fib saddr . iif oif missing drop
//		}
//	}
func (n *Network) sourceCheck() error {
	f, err := os.Open(n.router.Path())
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	c, err := nftables.New(nftables.WithNetNSFd(int(f.Fd())))
	if err != nil {
		return fmt.Errorf("open nftables in %s: %w", n.router.Name, err)
	}
	table := c.AddTable(&nftables.Table{Name: "vpc", Family: nftables.TableFamilyINet})
	chain := c.AddChain(&nftables.Chain{Name: "sources", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw})
	for _, exprs := range [][]expr.Any{linkLocalAccept(), sourceMissingDrop()} {
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("add source check to %s: %w", n.router.Name, isolate.Hint(err))
	}
	return nil
}

// linkLocalAccept is: ip6 saddr fe80::/10 accept.
func linkLocalAccept() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: []byte{unix.NFPROTO_IPV6}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 8, Len: 16},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 16, Mask: net.CIDRMask(10, 128), Xor: make([]byte, 16)},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: append([]byte{0xfe, 0x80}, make([]byte, 14)...)},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}
}

// sourceMissingDrop is: fib saddr . iif oif missing drop.
func sourceMissingDrop() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: 1, FlagSADDR: true, FlagIIF: true, FlagPRESENT: true, ResultOIF: true},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: make([]byte, 4)},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}
}
