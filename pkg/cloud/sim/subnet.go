package sim

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Reserve is how many addresses at both ends of a subnet are nobody's.
type Reserve struct{ First, Last int }

// EC2Reserve is the network, the router, the resolver, one for the future and the
// broadcast address: .0 to .3 and the last.
var EC2Reserve = Reserve{First: 4, Last: 1}

// of returns what is kept back of a family: where nothing is said the network's
// address, and IPv4's broadcast address.
func (r Reserve) of(f eni.Family) Reserve {
	if r != (Reserve{}) {
		return r
	}
	if f == eni.IPv4 {
		return Reserve{First: 1, Last: 1}
	}
	return Reserve{First: 1}
}

// Subnet is a subnet of the VPC. Its gateways and the Reserved addresses are never given
// out, nor what Reserve says; the zero Reserve is that of the account. IPv6 ranges
// reserve as IPv4 ones do.
type Subnet struct {
	ID                   string
	V4, V6               netip.Prefix // one of them may be the zero Prefix
	GatewayV4, GatewayV6 netip.Addr   // the zero Addr is the first address
	Reserved             []netip.Addr
	Zone                 string // "" is the account's first
	Name                 string
	Reserve              Reserve
	Tags                 map[string]string

	Free, Free6 int // addresses that are left, those of prefixes counted; only set by reading
}

// room is how many addresses of each family are left in a subnet.
type room struct{ v4, v6 int }

// subnet is a Subnet with what is left of it.
type subnet struct {
	Subnet
	pool4, pool6 *pool // nil if there is none of the family
	kept         []Reservation
	seen         history[room]
}

// AddSubnet adds a subnet to the VPC.
func (a *Account) AddSubnet(s Subnet) error {
	a.lock()
	defer a.mu.Unlock()
	made, err := a.newSubnet(s)
	if err != nil {
		return fmt.Errorf("add subnet %s: %w", s.ID, err)
	}
	for _, f := range made.families() {
		if a.o.Network == nil {
			break
		}
		if err := a.o.Network.AddSubnet(eni.Subnet{ID: s.ID, CIDR: made.pool(f).net, Gateway: made.gateway(f)}); err != nil {
			return err
		}
	}
	a.subnets[s.ID] = made
	a.changedSubnet(made)
	made.seen.fromStart()
	return nil
}

func (a *Account) newSubnet(s Subnet) (made *subnet, err error) {
	made = &subnet{Subnet: s}
	made.Zone = cmp.Or(s.Zone, a.o.Region+"a")
	made.Reserved = slices.Clone(s.Reserved)
	if s.ID == "" || !s.V4.IsValid() && !s.V6.IsValid() {
		return nil, errors.New("it needs an ID and an address range")
	}
	if s.V4.IsValid() && !s.V4.Addr().Is4() || s.V6.IsValid() && !s.V6.Addr().Is6() {
		return nil, fmt.Errorf("%s and %s are not of IPv4 and IPv6", s.V4, s.V6)
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		net, p := s.V4, &made.pool4
		if f == eni.IPv6 {
			net, p = s.V6, &made.pool6
		}
		if !net.IsValid() {
			continue
		}
		reserve := cmp.Or(s.Reserve, a.o.Reserve).of(f)
		if *p, err = newPool(net, a.o.block(f), reserve, append([]netip.Addr{made.gateway(f)}, s.Reserved...)); err != nil {
			return nil, err
		}
	}
	for _, other := range a.subnets {
		if other.ID == s.ID || overlap(other.V4, s.V4) || overlap(other.V6, s.V6) {
			return nil, fmt.Errorf("it overlaps subnet %s", other.ID)
		}
	}
	return made, nil
}

func overlap(a, b netip.Prefix) bool { return a.IsValid() && b.IsValid() && a.Overlaps(b) }

// gateway returns the one that is set, else the first address of the range.
func (s *subnet) gateway(f eni.Family) netip.Addr {
	set, net := s.GatewayV4, s.V4
	if f == eni.IPv6 {
		set, net = s.GatewayV6, s.V6
	}
	if set.IsValid() {
		return set
	}
	return net.Addr().Next()
}

// pool returns the addresses of the family, nil if the subnet has none.
func (s *subnet) pool(f eni.Family) *pool {
	if f == eni.IPv4 {
		return s.pool4
	}
	return s.pool6
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

// free returns the room that is left.
func (s *subnet) free() (r room) {
	if s.pool4 != nil {
		r.v4 = s.pool4.free()
	}
	if s.pool6 != nil {
		r.v6 = s.pool6.free()
	}
	return r
}

// LeaveFree lets others of the VPC take addresses of the subnet, or give them back,
// until n of each of its families are free.
func (a *Account) LeaveFree(subnet string, n int) error {
	return a.disturb("leave free", subnet, func(p *pool) { p.leaveFree(n) })
}

// SetForeign lets others have n addresses of the subnet, of each of its families; where
// fewer are left, all that are. Which ones these are nobody is told.
func (a *Account) SetForeign(subnet string, n int) error {
	return a.disturb("set foreign use", subnet, func(p *pool) { p.foreign = max(0, min(n, p.foreign+p.free())) })
}

// Fragment lets others have an address in each block of the subnet that is whole, so
// that it gives single addresses alone, or gives them back. How many they have is
// SetForeign's matter.
func (a *Account) Fragment(subnet string, broken bool) error {
	return a.disturb("fragment", subnet, func(p *pool) { p.fragmented = broken })
}

func (a *Account) disturb(what, subnet string, f func(*pool)) error {
	a.lock()
	defer a.mu.Unlock()
	s := a.subnets[subnet]
	if s == nil {
		return fmt.Errorf("%s: %w", what, fail(NoSuchSubnet, subnet, ""))
	}
	for _, family := range s.families() {
		f(s.pool(family))
	}
	a.changedSubnet(s)
	return nil
}
