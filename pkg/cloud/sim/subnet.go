package sim

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Subnet describes a subnet of an account. The network address, the gateway and
// IPv4's broadcast address are never given out, as the Reserved ones.
type Subnet struct {
	ID                   string
	V4, V6               netip.Prefix // one of them may be the zero Prefix
	GatewayV4, GatewayV6 netip.Addr   // the zero Addr is the first address
	Reserved             []netip.Addr
}

// subnet is a Subnet with what is left of it.
type subnet struct {
	Subnet
	Pool4, Pool6 *pool // nil if there is none of the family
	seen         history[int]
}

func newSubnet(s Subnet) (made *subnet, err error) {
	if s.ID == "" || !s.V4.IsValid() && !s.V6.IsValid() {
		return nil, errors.New("it needs an ID and an address range")
	}
	if s.V4.IsValid() && !s.V4.Addr().Is4() || s.V6.IsValid() && !s.V6.Addr().Is6() {
		return nil, fmt.Errorf("%s and %s are not of IPv4 and IPv6", s.V4, s.V6)
	}
	made = &subnet{Subnet: s}
	made.Reserved = slices.Clone(s.Reserved)
	if s.V4.IsValid() {
		made.GatewayV4 = gateway(s.V4, s.GatewayV4)
		made.Pool4, err = newPool(s.V4, append([]netip.Addr{lastOf(s.V4), made.GatewayV4}, s.Reserved...))
	}
	if s.V6.IsValid() && err == nil {
		made.GatewayV6 = gateway(s.V6, s.GatewayV6)
		made.Pool6, err = newPool(s.V6, append([]netip.Addr{made.GatewayV6}, s.Reserved...))
	}
	return made, err
}

// gateway returns the one that is set, else the first address of the range.
func gateway(p netip.Prefix, set netip.Addr) netip.Addr {
	if set.IsValid() {
		return set
	}
	return p.Addr().Next()
}

// lastOf returns the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < p.Addr().BitLen(); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// pool returns the addresses of the family, nil if the subnet has none.
func (s *subnet) pool(f eni.Family) *pool {
	if f == eni.IPv4 {
		return s.Pool4
	}
	return s.Pool6
}

// families returns those the subnet has, IPv4 first.
func (s *subnet) families() []eni.Family {
	var fs []eni.Family
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if s.pool(f) != nil {
			fs = append(fs, f)
		}
	}
	return fs
}

// net is the place of a primary address in the subnet.
func (s *subnet) net(primary netip.Addr) eni.Net {
	if primary.Is4() {
		return eni.Net{Primary: netip.PrefixFrom(primary, s.V4.Bits()), Gateway: s.GatewayV4}
	}
	return eni.Net{Primary: netip.PrefixFrom(primary, s.V6.Bits()), Gateway: s.GatewayV6}
}

// parts returns the subnet as a Network knows it, one of each family.
func (s *subnet) parts() []eni.Subnet {
	var parts []eni.Subnet
	if s.Pool4 != nil {
		parts = append(parts, eni.Subnet{ID: s.ID, CIDR: s.V4, Gateway: s.GatewayV4})
	}
	if s.Pool6 != nil {
		parts = append(parts, eni.Subnet{ID: s.ID, CIDR: s.V6, Gateway: s.GatewayV6})
	}
	return parts
}

// free returns the room that is left, of the scarcer family.
func (s *subnet) free() int {
	free := mostAddresses
	for _, f := range s.families() {
		free = min(free, s.pool(f).free())
	}
	return free
}

// view is the subnet as a node sees it.
func (s *subnet) view(free int, mayBeNew bool) cloud.Subnet {
	return cloud.Subnet{ID: s.ID, V4Net: s.V4, V6Net: s.V6, Free: free, New: mayBeNew}
}
