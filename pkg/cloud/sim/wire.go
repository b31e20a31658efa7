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

// takeHidden takes an IPv6 address for the ENI's port in the Network. A port is in an IPv6 subnet by
// an address that never changes, while the ENI's own may.
func (a *Account) takeHidden(n *nic, sub *subnet) (netip.Addr, error) {
	p := sub.pool6
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
	return netip.Addr{}, fail(SubnetFull, sub.ID, "no IPv6 address for a port")
}

// bootNode makes the node, with its primary ENI configured as its system would do it.
func (a *Account) bootNode(host *vm, nic *nic) error {
	if a.o.Network == nil {
		return nil
	}
	ns, err := a.o.Network.AddNode(host.Node)
	if err != nil {
		return err
	}
	if len(nic.V6) > 0 && nic.hidden != nic.V6[0] {
		// The system configures what the port has.
		a.subnets[nic.Subnet].pool(eni.IPv6).give(nic.hidden)
		nic.hidden = nic.V6[0]
	}
	if err := a.attachLink(host, nic); err != nil {
		return err
	}
	if err := a.o.Network.DHCP(nic.ID); err != nil || len(nic.V6) > 0 || !nic.hidden.IsValid() {
		return err
	}
	return removeHidden(ns, deviceName(nic.Attachment), netip.PrefixFrom(nic.hidden, a.subnets[nic.Subnet].V6.Bits()))
}

// attachLink makes the ENI a link of its node, with its addresses, or leaves nothing behind.
func (a *Account) attachLink(host *vm, nic *nic) error {
	if a.o.Network == nil {
		return nil
	}
	s := a.subnets[nic.Subnet]
	i := eni.Interface{ID: nic.ID, Index: nic.Attachment.Index, MTU: a.o.MTU, Device: deviceName(nic.Attachment)}
	if nic.Primary.IsValid() {
		i.V4 = eni.Net{Primary: netip.PrefixFrom(nic.Primary, s.V4.Bits()), Gateway: s.gateway(eni.IPv4)}
	}
	if nic.hidden.IsValid() {
		i.V6 = eni.Net{Primary: netip.PrefixFrom(nic.hidden, s.V6.Bits()), Gateway: s.gateway(eni.IPv6)}
	}
	mac, err := a.o.Network.Attach(host.Node, i)
	if err != nil {
		return err
	}
	nic.wired = true
	// The engine finds links by the MAC that the account has told before the link existed.
	if mac.String() != nic.MAC {
		err = fmt.Errorf("the network gave ENI %s the MAC %s, not %s", nic.ID, mac, nic.MAC)
	}
	if err == nil {
		err = a.deliver(nic, Got{V4: nic.V4, V6: nic.V6, Prefixes: nic.Prefixes})
	}
	if err != nil {
		return errors.Join(err, a.detachLink(nic))
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

func (a *Account) detachLink(n *nic) error {
	if !n.wired {
		return nil
	}
	if err := a.o.Network.Detach(n.ID); err != nil {
		return err
	}
	n.wired = false
	return nil
}

// deliver makes the VPC deliver the addresses to the ENI, all or none.
func (a *Account) deliver(n *nic, g Got) error {
	if !n.wired {
		return nil
	}
	return a.o.Network.Assign(n.ID, a.deliveredAddresses(n, g)...)
}

func (a *Account) stopDelivering(n *nic, g Got) error {
	if !n.wired {
		return nil
	}
	return a.o.Network.Unassign(n.ID, a.deliveredAddresses(n, g)...)
}

// deliveredAddresses returns the single addresses that the Network delivers for them.
func (a *Account) deliveredAddresses(n *nic, g Got) []netip.Addr {
	addrs := slices.Concat(g.V4, g.V6)
	for _, p := range g.Prefixes {
		most := 1 << 16
		if m := a.vmOf(n); p.Addr().Is6() && m != nil {
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

// macSeed is what the MACs of ENIs are derived from, besides their IDs: the Network's name, so that
// an ENI has the MAC of its later link before it is attached.
func (a *Account) macSeed() string {
	if a.o.Network == nil {
		return "account"
	}
	return a.o.Network.name
}

// removeHidden takes the address of a port off a node's link, and the default route with it: the
// ENI itself has no IPv6 address.
func removeHidden(ns Namespace, device string, hidden netip.Prefix) error {
	handle, err := ns.openNetlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	link, err := handle.LinkByName(device)
	if err != nil {
		return fmt.Errorf("look up link %s in %s: %w", device, ns.Name, err)
	}
	addr, err := netlink.ParseAddr(hidden.String())
	if err == nil {
		err = handle.AddrDel(link, addr)
	}
	if err != nil {
		return fmt.Errorf("remove address %s in %s: %w", hidden, ns.Name, err)
	}
	_, all, _ := net.ParseCIDR("::/0")
	if err := handle.RouteDel(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: all}); err != nil {
		return fmt.Errorf("remove default route in %s: %w", ns.Name, err)
	}
	return nil
}
