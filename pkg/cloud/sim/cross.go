package sim

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// subnetOf returns the subnet whose range has an address of the ENI, nil if there is none. It is
// the ENI's subnet, except for addresses of an AddressRequest that named another.
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

// giveAddresses returns addresses of the ENI to their subnets.
func (a *Account) giveAddresses(n *nic, addrs []netip.Addr) {
	for _, addr := range addrs {
		s := a.subnetOf(n, addr)
		s.pool(eni.FamilyOf(addr)).give(addr)
		if s.ID != n.Subnet {
			a.noteChangedSubnet(s)
		}
	}
}

// namedOf returns the pool that asked addresses by name come from. A request may name another
// subnet of the zone.
func (a *Account) namedOf(n *nic, family eni.Family, asked AddressRequest) (*pool, error) {
	own := a.subnets[n.Subnet]
	if asked.Subnet == "" || asked.Subnet == own.ID {
		return own.pool(family), nil
	}
	s := a.subnets[asked.Subnet]
	switch {
	case s == nil:
		return nil, fail(NoSuchSubnet, asked.Subnet, "")
	case s.Zone != own.Zone || s.pool(family) == nil:
		return nil, fail(OutsideSubnet, asked.Subnet, "it is of zone %q and has %v; the interface is of %q", s.Zone, s.families(), own.Zone)
	}
	return s.pool(family), nil
}
