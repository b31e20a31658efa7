package sim

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/vishvananda/netlink"
)

// Network is a VPC made of network namespaces on this machine. Its methods may
// be called from several goroutines. What it made stays when the process ends
// without Close.
type Network struct {
	name             string
	router, internet Namespace

	mu      sync.Mutex
	h       *netlink.Handle // in the router
	cidrs   []netip.Prefix
	subnets []eni.Subnet
	nodes   map[string]Namespace
	ports   map[string]*port     // by ENI id
	owner   map[netip.Addr]*port // of every assigned address
	made    int                  // ports so far; names are not used again
}

// NewNetwork makes a VPC with the given address ranges, its router (namespace
// NAME-vpc) and the internet beyond it (NAME-internet). It fails if there is one
// of that name already, and then leaves nothing behind.
func NewNetwork(name string, cidrs []netip.Prefix) (*Network, error) {
	if err := validName(name); err != nil {
		return nil, fmt.Errorf("create VPC: %w", err)
	}
	if err := validCIDRs(cidrs); err != nil {
		return nil, fmt.Errorf("create VPC %s: %w", name, err)
	}
	network := &Network{
		name:     name,
		router:   namespaceNamed(name + "-vpc"),
		internet: namespaceNamed(name + "-internet"),
		cidrs:    slices.Clone(cidrs),
		nodes:    map[string]Namespace{},
		ports:    map[string]*port{},
		owner:    map[netip.Addr]*port{},
	}
	if err := network.build(); err != nil {
		return nil, fmt.Errorf("create VPC %s: %w", name, err)
	}
	return network, nil
}

// build makes the namespaces of the router and the internet, or leaves nothing behind.
func (n *Network) build() (err error) {
	for _, ns := range []Namespace{n.router, n.internet} {
		if err := ns.Create(); err != nil {
			return err
		}
		// A namespace that stays would refuse the next Network of this name.
		defer func() {
			if err != nil {
				err = errors.Join(err, ns.Remove())
			}
		}()
	}
	if n.h, err = n.router.openNetlink(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			n.h.Close()
		}
	}()
	return n.setUpRouter()
}

// Router returns the namespace of the VPC's router.
func (n *Network) Router() Namespace { return n.router }

// Internet returns the namespace beyond the VPC; see InternetV4 and InternetV6.
func (n *Network) Internet() Namespace { return n.internet }

// Resolver returns the address of the VPC's DNS server, which every port answers for.
// Clouds have it at the third address of the VPC; here it is the last but one of the
// first IPv4 range, out of the way of subnets.
func (n *Network) Resolver() netip.Addr {
	for _, c := range n.cidrs {
		if c.Addr().Is4() {
			last := c.Addr().As4()
			for i := range last {
				last[i] |= ^net.CIDRMask(c.Bits(), 32)[i]
			}
			return netip.AddrFrom4(last).Prev()
		}
	}
	return netip.Addr{}
}

// AddSubnet makes a subnet of one family known: its gateway answers on every port
// of an ENI that is attached in it. A dual-stack subnet is two of them. The
// gateway is an address of the subnet or, for IPv6, a link-local one.
func (n *Network) AddSubnet(s eni.Subnet) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.checkSubnet(s); err != nil {
		return fmt.Errorf("add subnet %s: %w", s.ID, err)
	}
	n.subnets = append(n.subnets, s)
	return nil
}

func (n *Network) checkSubnet(subnet eni.Subnet) error {
	inside := func(c netip.Prefix) bool { return c.Bits() <= subnet.CIDR.Bits() && c.Contains(subnet.CIDR.Addr()) }
	switch {
	case !subnet.CIDR.IsValid() || subnet.CIDR != subnet.CIDR.Masked():
		return fmt.Errorf("%s is no network address", subnet.CIDR)
	case !slices.ContainsFunc(n.cidrs, inside):
		return fmt.Errorf("%s is not inside the VPC's %v", subnet.CIDR, n.cidrs)
	case !subnet.CIDR.Contains(subnet.Gateway) && !(subnet.CIDR.Addr().Is6() && subnet.Gateway.IsLinkLocalUnicast() && subnet.Gateway.Is6()):
		return fmt.Errorf("gateway %s is not inside %s", subnet.Gateway, subnet.CIDR)
	}
	for _, other := range n.subnets {
		if other.CIDR.Overlaps(subnet.CIDR) {
			return fmt.Errorf("%s overlaps %s of subnet %s", subnet.CIDR, other.CIDR, other.ID)
		}
	}
	return nil
}

// AddNode makes a node: a namespace NETWORK-NAME with loopback up and nothing
// else. Whatever the node's system would set is the caller's.
func (n *Network) AddNode(name string) (Namespace, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := validName(name); err != nil {
		return Namespace{}, fmt.Errorf("add node: %w", err)
	}
	if n.h == nil {
		return Namespace{}, fmt.Errorf("add node %s: VPC %s is closed", name, n.name)
	}
	ns := namespaceNamed(n.name + "-" + name)
	if _, ok := n.nodes[name]; ok || ns == n.router || ns == n.internet {
		return Namespace{}, fmt.Errorf("add node %s: the VPC has one of that name", name)
	}
	if err := ns.Create(); err != nil {
		return Namespace{}, fmt.Errorf("add node %s: %w", name, err)
	}
	n.nodes[name] = ns
	return ns, nil
}

// Close removes every link and namespace that the Network made. Processes that
// still run in a node keep its namespace alive, without name and ENIs.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.h == nil {
		return nil
	}
	var errs []error
	// The links first: those of a namespace without a name go at a time of the
	// kernel's choosing, these are gone when Close returns.
	for _, p := range n.ports {
		errs = append(errs, n.delLink(p.link))
	}
	if link, err := n.h.LinkByName(internetPort); err == nil {
		errs = append(errs, n.delLink(link.Attrs().Index))
	}
	n.h.Close()
	for _, ns := range slices.Concat(slices.Collect(maps.Values(n.nodes)), []Namespace{n.internet, n.router}) {
		errs = append(errs, ns.Remove())
	}
	n.h, n.nodes, n.ports, n.owner, n.subnets = nil, nil, nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close VPC %s: %w", n.name, err)
	}
	return nil
}

// validName accepts what can be part of a file name and a word of a command.
func validName(name string) error {
	if name == "" || len(name) > 64 || name[0] == '.' || name[0] == '-' || strings.ContainsAny(name, "/ \t\n") {
		return fmt.Errorf("name %q: must be one word of 1 to 64 bytes without a slash", name)
	}
	return nil
}

func validCIDRs(cidrs []netip.Prefix) error {
	for i, c := range cidrs {
		if !c.IsValid() || c != c.Masked() {
			return fmt.Errorf("CIDR %s is no network address", c)
		}
		for _, other := range slices.Concat([]netip.Prefix{internetNetV4, internetNetV6}, cidrs[:i]) {
			if c.Overlaps(other) {
				return fmt.Errorf("CIDR %s overlaps %s", c, other)
			}
		}
	}
	return nil
}
