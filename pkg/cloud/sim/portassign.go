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
	p, err := n.port(id)
	if err == nil {
		err = n.assign(p, addrs)
	}
	if err != nil {
		return fmt.Errorf("assign addresses to ENI %s: %w", id, err)
	}
	return nil
}

func (n *Network) assign(p *port, addrs []netip.Addr) (err error) {
	for _, a := range addrs {
		if err := n.mayAssign(p, a); err != nil {
			return err
		}
	}
	var done []netip.Addr
	defer func() {
		if err != nil {
			err = errors.Join(err, n.withdrawAll(p, done))
		}
	}()
	for _, a := range addrs {
		if n.owner[a] == p {
			continue
		}
		done = append(done, a)
		if err := n.announce(p, a); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) mayAssign(p *port, a netip.Addr) error {
	if owner := n.owner[a]; owner != nil && owner != p {
		return fmt.Errorf("address %s is of ENI %s", a, owner.eni.ID)
	}
	if !p.in(a) {
		return fmt.Errorf("address %s is in no subnet of the ENI", a)
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
	p, err := n.port(id)
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
	if err := n.h.NeighSet(neighbour(p.link, a, p.mac)); err != nil {
		return fmt.Errorf("add neighbour %s in %s: %w", a, n.router.Name, err)
	}
	for _, link := range n.askers(p, a) {
		if err := n.h.NeighSet(proxy(link, a)); err != nil {
			return fmt.Errorf("add proxy for %s in %s: %w", a, n.router.Name, err)
		}
	}
	if err := addRoute(n.h, p.link, hostPrefix(a), netip.Addr{}); err != nil {
		return fmt.Errorf("%w in %s", err, n.router.Name)
	}
	return nil
}

// withdraw takes an address from the port, or what is left of it.
func (n *Network) withdraw(p *port, a netip.Addr) error {
	var errs []error
	try := func(what string, err error) {
		if ignoreGone(err) != nil {
			errs = append(errs, fmt.Errorf("remove %s %s in %s: %w", what, a, n.router.Name, err))
		}
	}
	try("route", n.h.RouteDel(route(p.link, hostPrefix(a), netip.Addr{})))
	try("neighbour", n.h.NeighDel(neighbour(p.link, a, nil)))
	for _, link := range n.askers(p, a) {
		try("proxy for", n.h.NeighDel(proxy(link, a)))
	}
	delete(n.owner, a)
	return errors.Join(errs...)
}

func (n *Network) withdrawAll(p *port, addrs []netip.Addr) error {
	var errs []error
	for _, a := range addrs {
		errs = append(errs, n.withdraw(p, a))
	}
	return errors.Join(errs...)
}

// askers returns the links on which the router needs a proxy entry to answer for
// p's address a. IPv4 needs none, see setUpRouter.
func (n *Network) askers(p *port, a netip.Addr) []int {
	if a.Is4() {
		return nil
	}
	var links []int
	for _, other := range n.ports {
		if other != p && other.in(a) {
			links = append(links, other.link)
		}
	}
	return links
}
