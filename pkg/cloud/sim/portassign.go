package sim

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Assign makes the addresses secondary ones of the ENI, all of them or none. From
// then on the VPC delivers them to it and takes packets from them only there.
// What the ENI has already is not an error, what another one has is.
func (n *Network) Assign(id string, addrs ...netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.findPort(id)
	if err == nil {
		err = n.assign(p, addrs)
	}
	if err != nil {
		return fmt.Errorf("assign addresses to ENI %s: %w", id, err)
	}
	return nil
}

func (n *Network) assign(port *port, addrs []netip.Addr) (err error) {
	for _, a := range addrs {
		if err := n.mayAssign(port, a); err != nil {
			return err
		}
	}
	// The one that failed is among done: a part of it may be in the kernel.
	var done []netip.Addr
	defer func() {
		if err != nil {
			err = errors.Join(err, n.withdrawAll(port, done))
		}
	}()
	for _, a := range addrs {
		if n.owner[a] == port {
			continue
		}
		done = append(done, a)
		if err := n.announce(port, a); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) mayAssign(p *port, a netip.Addr) error {
	if owner := n.owner[a]; owner != nil && owner != p {
		return fmt.Errorf("address %s is of ENI %s", a, owner.eni.ID)
	}
	// Whether it may be one of another subnet than the ENI's is the account's to say. The router knows each address by its port.
	if !p.eni.Net(eni.FamilyOf(a)).IsValid() || !slices.ContainsFunc(n.subnets, func(s eni.Subnet) bool { return s.CIDR.Contains(a) }) {
		return fmt.Errorf("address %s is in no subnet of the VPC", a)
	}
	if slices.ContainsFunc(n.subnets, func(s eni.Subnet) bool { return s.Gateway == a }) {
		return fmt.Errorf("address %s is the gateway of its subnet", a)
	}
	return nil
}

// Unassign takes secondary addresses from the ENI. What it does not have is not
// an error; a primary address, and one that another ENI has, is, and then none is
// taken.
func (n *Network) Unassign(id string, addrs ...netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.findPort(id)
	if err == nil {
		err = n.unassign(p, addrs)
	}
	if err != nil {
		return fmt.Errorf("unassign addresses from ENI %s: %w", id, err)
	}
	return nil
}

func (n *Network) unassign(p *port, addrs []netip.Addr) error {
	for _, a := range addrs {
		if owner := n.owner[a]; owner != nil && owner != p {
			return fmt.Errorf("address %s is of ENI %s", a, owner.eni.ID)
		}
		if slices.ContainsFunc(p.eni.Nets(), func(net eni.Net) bool { return net.Primary.Addr() == a }) {
			return fmt.Errorf("address %s is primary: it stays as long as the ENI", a)
		}
	}
	return n.withdrawAll(p, slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return n.owner[a] != p }))
}

// announce puts an address on the port. The route comes last: it is what lets
// packets of the address pass, both ways.
func (n *Network) announce(p *port, a netip.Addr) error {
	n.owner[a] = p
	if err := n.h.NeighSet(newNeighbour(p.link, a, p.mac)); err != nil {
		return fmt.Errorf("add neighbour %s in %s: %w", a, n.router.Name, err)
	}
	for _, link := range n.linksAsking(p, a) {
		if err := n.h.NeighSet(newProxy(link, a)); err != nil {
			return fmt.Errorf("add proxy for %s in %s: %w", a, n.router.Name, err)
		}
	}
	if err := addRoute(n.h, p.link, hostPrefix(a), netip.Addr{}); err != nil {
		return fmt.Errorf("%w in %s", err, n.router.Name)
	}
	return nil
}

// withdraw takes an address from the port. What of it is not in the kernel is no error.
func (n *Network) withdraw(p *port, addr netip.Addr) error {
	var errs []error
	try := func(what string, err error) {
		if ignoreGone(err) != nil {
			errs = append(errs, fmt.Errorf("remove %s %s in %s: %w", what, addr, n.router.Name, err))
		}
	}
	try("route", n.h.RouteDel(newRoute(p.link, hostPrefix(addr), netip.Addr{})))
	try("neighbour", n.h.NeighDel(newNeighbour(p.link, addr, nil)))
	for _, link := range n.linksAsking(p, addr) {
		try("proxy for", n.h.NeighDel(newProxy(link, addr)))
	}
	delete(n.owner, addr)
	return errors.Join(errs...)
}

func (n *Network) withdrawAll(p *port, addrs []netip.Addr) error {
	var errs []error
	for _, a := range addrs {
		errs = append(errs, n.withdraw(p, a))
	}
	return errors.Join(errs...)
}

// linksAsking returns the links on which the router needs a proxy entry to answer for p's address
// a. IPv4 needs none, see setUpRouter.
func (n *Network) linksAsking(p *port, a netip.Addr) []int {
	if a.Is4() {
		return nil
	}
	var links []int
	for _, other := range n.ports {
		if other != p && other.hasSubnetOf(a) {
			links = append(links, other.link)
		}
	}
	return links
}
