package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/inventory"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
)

// The shape of the demonstration: every node's ENIs are full but the last.
const (
	nodes       = 2
	enisPerNode = 3
	perENI      = 8
	podsPerNode = 20
)

// internet is where the simulated VPC ends.
var internet = netip.MustParseAddr("203.0.113.2")

// machine is a node of the demonstration.
type machine struct {
	name  string
	ns    isolate.Namespace
	cache nodecache.Cache
	enis  []eni.Interface
}

// buildVPC makes the VPC and its nodes, as the cloud would hand them over: ENIs
// attached, the first one set up by DHCP, addresses assigned.
func buildVPC() (*sim.Network, []*machine, error) {
	vpc := netip.MustParsePrefix("10.0.0.0/16")
	net, err := sim.NewNetwork("demo", []netip.Prefix{vpc})
	if err != nil {
		return nil, nil, err
	}
	var machines []*machine
	for i := range nodes {
		m, err := addNode(net, i)
		if err != nil {
			return nil, nil, errors.Join(err, net.Close())
		}
		machines = append(machines, m)
	}
	return net, machines, nil
}

// addNode makes a node in a subnet of its own.
func addNode(net *sim.Network, i int) (*machine, error) {
	base := netip.AddrFrom4([4]byte{10, 0, byte(i + 1), 0})
	subnet := eni.Subnet{ID: fmt.Sprintf("subnet-%d", i+1), CIDR: netip.PrefixFrom(base, 24), Gateway: base.Next()}
	if err := net.AddSubnet(subnet); err != nil {
		return nil, err
	}
	m := &machine{name: fmt.Sprintf("n%d", i+1)}
	m.cache.Path = fmt.Sprintf("/run/enipool-%s/node.cache", m.name)
	ns, err := net.AddNode(m.name)
	if err != nil {
		return nil, err
	}
	m.ns = ns.Namespace
	for k := range enisPerNode {
		nic := eni.Interface{ID: fmt.Sprintf("eni-%s-%c", m.name, 'a'+k), Index: k, Device: fmt.Sprintf("eth%d", k), MTU: 9001}
		nic.V4 = eni.Net{Primary: netip.PrefixFrom(nth(base, 10*(k+1)), 24), Gateway: subnet.Gateway}
		if _, err := net.Attach(m.name, nic); err != nil {
			return nil, err
		}
		for a := 1; a <= perENI; a++ {
			if err := net.Assign(nic.ID, nth(base, 10*(k+1)+a)); err != nil {
				return nil, err
			}
		}
		m.enis = append(m.enis, nic)
	}
	return m, net.DHCP(m.enis[0].ID)
}

// nth returns the address n after base.
func nth(base netip.Addr, n int) netip.Addr {
	b := base.As4()
	b[3] += byte(n)
	return netip.AddrFrom4(b)
}

// inventory is what `enipoolctl pool load` would be given on the node.
func (m *machine) inventory() inventory.Inventory {
	inv := inventory.Inventory{AnyFirewall: true, State: ipam.State{
		Settings: ipam.Settings{SNAT: true, MarkMask: ipam.DefaultMarkMask, CoolDown: inventory.DefaultCoolDown,
			VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Families: []eni.Family{eni.IPv4}},
		ENIs: m.enis,
	}}
	for _, nic := range m.enis {
		for a := 1; a <= perENI; a++ {
			inv.Addresses = append(inv.Addresses, eni.Address{Addr: nth(nic.V4.Primary.Addr(), a), ENI: nic.Index})
		}
	}
	return inv
}

func (m *machine) node() node.Node {
	return node.Node{Cache: m.cache, Now: func() time.Duration { return nodecache.SinceBoot() }}
}

// load puts the node's pool in place.
func (m *machine) load(ctx context.Context) (changes []string, err error) {
	err = m.ns.Do(func() error {
		changes, err = m.node().Load(ctx, m.inventory())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load the pool of %s: %w", m.name, err)
	}
	return changes, nil
}

// book returns a copy of the node's book.
func (m *machine) book(ctx context.Context) (s ipam.State, err error) {
	err = m.cache.View(ctx, func(st *ipam.State) error {
		s = *st
		return nil
	})
	return s, err
}

// orderHeld returns an error if an ENI has used addresses while an earlier one
// has a free one.
func (m *machine) orderHeld(ctx context.Context) error {
	s, err := m.book(ctx)
	if err != nil {
		return err
	}
	free := ""
	for _, nic := range s.ENIs {
		c := s.Count(nodecache.SinceBoot(), func(a eni.Address) bool { return a.ENI == nic.Index })
		if c.Used > 0 && free != "" {
			return fmt.Errorf("node %s: %s is in use while %s has a free address", m.name, nic.ID, free)
		}
		if c.Free > 0 && free == "" {
			free = nic.ID
		}
	}
	return nil
}
