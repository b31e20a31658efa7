package sim

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// port is where an attached ENI meets the router.
type port struct {
	eni  eni.Interface
	node Namespace
	mac  net.HardwareAddr // of the ENI
	link int              // index of the port in the router
	peer int              // index of the ENI's link in the node
}

// portName is a port's link in the router.
func portName(number int) string { return fmt.Sprintf("p%d", number) }

// hasSubnetOf tells whether the ENI is in the subnet that the address is in.
func (p *port) hasSubnetOf(a netip.Addr) bool {
	return slices.ContainsFunc(p.eni.Nets(), func(n eni.Net) bool { return n.Primary.Masked().Contains(a) })
}

// Attach makes the ENI in the VPC and attaches it to the node: a link i.Device in
// the node's namespace, up, with the MAC returned and i.MTU. The VPC routes the
// primary addresses to it. The node's side gets no address and no route; see DHCP.
// Each net of i must be in a known subnet and name its gateway. i.Index is not
// looked at.
func (n *Network) Attach(node string, i eni.Interface) (net.HardwareAddr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.newPort(node, i)
	if err == nil {
		err = n.plug(p)
	}
	if err != nil {
		return nil, fmt.Errorf("attach ENI %s to node %s: %w", i.ID, node, err)
	}
	return p.mac, nil
}

// newPort checks that the ENI fits the VPC.
func (n *Network) newPort(node string, iface eni.Interface) (*port, error) {
	if err := iface.Validate(); err != nil {
		return nil, err
	}
	ns, ok := n.nodes[node]
	if !ok {
		return nil, errors.New("no such node")
	}
	if _, ok := n.ports[iface.ID]; ok {
		return nil, errors.New("an ENI of that id exists")
	}
	// A gateway that the router does not have would leave the node without a way out.
	for _, net := range iface.Nets() {
		if !slices.ContainsFunc(n.subnets, func(s eni.Subnet) bool {
			return s.CIDR == net.Primary.Masked() && s.Gateway == net.Gateway
		}) {
			return nil, fmt.Errorf("no subnet %s with gateway %s", net.Primary.Masked(), net.Gateway)
		}
	}
	return &port{eni: iface, node: ns, mac: eniMAC(n.name, iface.ID)}, nil
}

// eniMAC is the address of an ENI: unicast, locally administered, and the same for
// the same id, so that a run can be repeated.
func eniMAC(network, id string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(network + "/" + id))
	return append(net.HardwareAddr{0x02}, sum[:5]...)
}

// plug makes the port in the kernel, or leaves nothing behind.
func (n *Network) plug(port *port) (err error) {
	name := portName(n.made + 1)
	if port.link, port.peer, err = n.addVeth(veth{name: name, peer: port.eni.Device, ns: port.node, mac: port.mac, mtu: port.eni.MTU}); err != nil {
		return err
	}
	n.made++
	n.ports[port.eni.ID] = port
	defer func() {
		if err != nil {
			err = errors.Join(err, n.unplug(port))
		}
	}()
	if err := n.h.LinkSetAlias(byIndex(port.link), port.eni.ID); err != nil {
		return fmt.Errorf("set alias of %s in %s: %w", name, n.router.Name, err)
	}
	// The link-local address must be usable at once: neighbour discovery for
	// forwarded packets is sent from it.
	if err := port.node.setSysctls("ipv6/conf/" + port.eni.Device + "/accept_dad 0"); err != nil {
		return err
	}
	if err := n.plugIn(port.link, port.node, port.peer); err != nil {
		return err
	}
	if err := n.makeGateway(port); err != nil {
		return err
	}
	var primaries []netip.Addr
	for _, net := range port.eni.Nets() {
		primaries = append(primaries, net.Primary.Addr())
	}
	return n.assign(port, primaries)
}

// makeGateway makes the port the gateway of its subnets, and lets it answer for their other
// addresses.
func (n *Network) makeGateway(port *port) error {
	if err := answerAtOnce(n.router, port.link); err != nil {
		return err
	}
	for _, net := range port.eni.Nets() {
		// Without a prefix route: the router's routes are who has which address.
		if err := addAddr(n.h, port.link, hostPrefix(net.Gateway), unix.IFA_F_NOPREFIXROUTE); err != nil {
			return fmt.Errorf("add gateway in %s: %w", n.router.Name, err)
		}
	}
	for a := range n.owner {
		if a.Is6() && port.hasSubnetOf(a) { // IPv4 needs no entry, see setUpRouter
			if err := n.h.NeighSet(newProxy(port.link, a)); err != nil {
				return fmt.Errorf("add proxy for %s in %s: %w", a, n.router.Name, err)
			}
		}
	}
	return nil
}

// Detach takes the ENI out of its node and deletes it. Its addresses are nobody's
// then.
func (n *Network) Detach(id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.findPort(id)
	if err == nil {
		err = n.unplug(p)
	}
	if err != nil {
		return fmt.Errorf("detach ENI %s: %w", id, err)
	}
	return nil
}

// unplug removes the port. The link goes first: with it go its addresses, routes
// and neighbours, and what is left is the other ports' part.
func (n *Network) unplug(p *port) error {
	errs := []error{n.delLink(p.link)}
	for a, owner := range n.owner {
		if owner == p {
			errs = append(errs, n.withdraw(p, a))
		}
	}
	delete(n.ports, p.eni.ID)
	return errors.Join(errs...)
}

func (n *Network) findPort(id string) (*port, error) {
	p, ok := n.ports[id]
	if !ok {
		return nil, errors.New("no such ENI")
	}
	return p, nil
}

// DHCP does for an ENI in its node what the system's DHCP client does for the
// node's first one: the primary addresses with their subnets, default routes through
// the gateways, and for IPv4 what systemd-networkd adds unless it is told otherwise
// (RoutesToDNS=): host routes to the gateway and to the VPC's resolver. Doing it again
// changes nothing.
func (n *Network) DHCP(id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.findPort(id)
	if err == nil {
		err = p.configureLink(n.Resolver())
	}
	if err != nil {
		return fmt.Errorf("configure ENI %s: %w", id, err)
	}
	return nil
}

// RTPROT_DHCP and the metric that systemd-networkd gives routes of a lease.
const (
	protocolDHCP = 16
	metricDHCP   = 1024
)

// configureLink does in the node what Network.DHCP describes.
func (p *port) configureLink(resolver netip.Addr) error {
	handle, err := p.node.openNetlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	for _, net := range p.eni.Nets() {
		if err := addAddr(handle, p.peer, net.Primary, 0); err != nil {
			return err
		}
		defaultRoute := netip.PrefixFrom(net.Primary.Addr(), 0).Masked()
		if err := addRoute(handle, p.peer, defaultRoute, net.Gateway); err != nil {
			return err
		}
		if net.Gateway.Is6() { // the routes below are of an IPv4 lease
			continue
		}
		onLink, toDNS := newRoute(p.peer, hostPrefix(net.Gateway), netip.Addr{}), newRoute(p.peer, hostPrefix(resolver), net.Gateway)
		for _, r := range []*netlink.Route{onLink, toDNS} {
			r.Protocol, r.Priority, r.Src = protocolDHCP, metricDHCP, net.Primary.Addr().AsSlice()
			if err := handle.RouteReplace(r); err != nil {
				return fmt.Errorf("add route %s: %w", r.Dst, err)
			}
		}
	}
	return nil
}
