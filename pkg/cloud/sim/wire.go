package sim

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/vishvananda/netlink"
)

// What follows is how the account's ENIs become links. Without a Network all of
// it does nothing.

// wiredOfBlock is how many addresses of an IPv6 prefix the Network delivers where the
// instance's type does not say.
const wiredOfBlock = 64

// hiddenOwner has the IPv6 addresses that ports of the Network need and no ENI has.
const hiddenOwner = "port"

// hide takes the address that the ENI's port in the Network has: a port takes part
// in an IPv6 subnet by an address that it keeps, while an ENI's come and go.
func (a *Account) hide(n *nic, s *subnet) (netip.Addr, error) {
	p := s.pool6
	switch {
	case a.o.Network == nil || p == nil:
		return netip.Addr{}, nil
	case n.First6:
		return n.V6[0], nil // which stays as long as the ENI
	}
	for addr := lastOf(p.net); p.net.Contains(addr); addr = addr.Prev() {
		if p.isFree(addr) {
			p.use(addr, hiddenOwner)
			return addr, nil
		}
	}
	return netip.Addr{}, fail(SubnetFull, s.ID, "no IPv6 address for a port")
}

// boot makes the node with its own ENI as its system would leave it.
func (a *Account) boot(m *machine, n *nic) error {
	if a.o.Network == nil {
		return nil
	}
	ns, err := a.o.Network.AddNode(m.Node)
	if err != nil {
		return err
	}
	if len(n.V6) > 0 && n.hidden != n.V6[0] {
		// The system configures what the port has.
		a.subnets[n.Subnet].pool(eni.IPv6).give(n.hidden)
		n.hidden = n.V6[0]
	}
	if err := a.plug(m, n); err != nil {
		return err
	}
	if err := a.o.Network.DHCP(n.ID); err != nil || len(n.V6) > 0 || !n.hidden.IsValid() {
		return err
	}
	return unconfigure(ns, deviceName(n.Attachment), netip.PrefixFrom(n.hidden, a.subnets[n.Subnet].V6.Bits()))
}

// plug makes the ENI a link of its node, with its addresses: all or nothing.
func (a *Account) plug(m *machine, n *nic) error {
	if a.o.Network == nil {
		return nil
	}
	s := a.subnets[n.Subnet]
	i := eni.Interface{ID: n.ID, Index: n.Attachment.Index, MTU: a.o.MTU, Device: deviceName(n.Attachment)}
	if n.Primary.IsValid() {
		i.V4 = eni.Net{Primary: netip.PrefixFrom(n.Primary, s.V4.Bits()), Gateway: s.gateway(eni.IPv4)}
	}
	if n.hidden.IsValid() {
		i.V6 = eni.Net{Primary: netip.PrefixFrom(n.hidden, s.V6.Bits()), Gateway: s.gateway(eni.IPv6)}
	}
	mac, err := a.o.Network.Attach(m.Node, i)
	if err != nil {
		return err
	}
	n.wired = true
	if mac.String() != n.MAC {
		err = fmt.Errorf("the network gave ENI %s the MAC %s, not %s", n.ID, mac, n.MAC)
	}
	if err == nil {
		err = a.route(n, Got{V4: n.V4, V6: n.V6, Prefixes: n.Prefixes})
	}
	if err != nil {
		return errors.Join(err, a.unplug(n))
	}
	return nil
}

// deviceName is the name that the kernel gives the link. Links are found by their MAC.
func deviceName(at *Attachment) string {
	if at.Card > 0 {
		return fmt.Sprintf("eth%dn%d", at.Card, at.Index)
	}
	return fmt.Sprintf("eth%d", at.Index)
}

func (a *Account) unplug(n *nic) error {
	if !n.wired {
		return nil
	}
	if err := a.o.Network.Detach(n.ID); err != nil {
		return err
	}
	n.wired = false
	return nil
}

// route makes the VPC deliver the addresses to the ENI: all or none.
func (a *Account) route(n *nic, g Got) error {
	if !n.wired {
		return nil
	}
	return a.o.Network.Assign(n.ID, a.wires(n, g)...)
}

func (a *Account) unroute(n *nic, g Got) error {
	if !n.wired {
		return nil
	}
	return a.o.Network.Unassign(n.ID, a.wires(n, g)...)
}

// wires are the addresses that the Network is told of.
func (a *Account) wires(n *nic, g Got) []netip.Addr {
	addrs := slices.Concat(g.V4, g.V6)
	for _, p := range g.Prefixes {
		most := 1 << 16
		if m := a.machineOf(n); p.Addr().Is6() && m != nil {
			most = cmp.Or(a.types[m.Type].WiredV6, wiredOfBlock)
		}
		addrs = append(addrs, firstOf(p, most)...)
	}
	return slices.DeleteFunc(addrs, func(addr netip.Addr) bool { return addr == n.hidden })
}

// firstOf returns the lowest n addresses of a prefix, or all of them.
func firstOf(p netip.Prefix, n int) []netip.Addr {
	if host := p.Addr().BitLen() - p.Bits(); host < 30 {
		n = min(n, 1<<host)
	}
	list := make([]netip.Addr, 0, n)
	for addr := p.Addr(); len(list) < n; addr = addr.Next() {
		list = append(list, addr)
	}
	return list
}

// name is part of the MACs of the account's ENIs: the Network's, so that an ENI has its
// own before it is attached.
func (a *Account) name() string {
	if a.o.Network == nil {
		return "account"
	}
	return a.o.Network.name
}

// unconfigure takes an IPv6 address that no ENI has off a node's link, and the default
// route with it.
func unconfigure(ns Namespace, device string, hidden netip.Prefix) error {
	h, err := ns.handle()
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
