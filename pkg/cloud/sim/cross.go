package sim

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// subnetOf returns the subnet that an address of the ENI is of: mostly the ENI's, nil if it is
// of none.
func (a *Account) subnetOf(n *nic, addr netip.Addr) *subnet {
	f := eni.FamilyOf(addr)
	if s := a.subnets[n.Subnet]; s.pool(f) != nil && s.pool(f).net.Contains(addr) {
		return s
	}
	for _, s := range a.subnets { // their ranges don't overlap
		if s.pool(f) != nil && s.pool(f).net.Contains(addr) {
			return s
		}
	}
	return nil
}

func (a *Account) poolOf(n *nic, addr netip.Addr) *pool {
	if s := a.subnetOf(n, addr); s != nil {
		return s.pool(eni.FamilyOf(addr))
	}
	return nil
}

// give returns addresses of the ENI to the subnets that they are of.
func (a *Account) give(n *nic, addrs []netip.Addr) {
	for _, addr := range addrs {
		s := a.subnetOf(n, addr)
		s.pool(eni.FamilyOf(addr)).give(addr)
		if s.ID != n.Subnet {
			a.changedSubnet(s)
		}
	}
}

// namedOf returns what a wish's addresses by name come from: another subnet of the zone may be
// named, where no link has to carry them.
func (a *Account) namedOf(n *nic, f eni.Family, w Wish) (*pool, error) {
	own := a.subnets[n.Subnet]
	if w.Subnet == "" || w.Subnet == own.ID {
		return own.pool(f), nil
	}
	s := a.subnets[w.Subnet]
	switch {
	case s == nil:
		return nil, fail(NoSuchSubnet, w.Subnet, "")
	case s.Zone != own.Zone || s.pool(f) == nil:
		return nil, fail(OutsideSubnet, w.Subnet, "it is of zone %q and has %v; the interface is of %q", s.Zone, s.families(), own.Zone)
	case a.o.Network != nil:
		return nil, fail(NotSupported, w.Subnet, "links carry addresses of their own subnet alone")
	}
	return s.pool(f), nil
}
