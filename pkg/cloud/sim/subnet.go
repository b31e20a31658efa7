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

// forFamily returns what is reserved of a family: for the zero Reserve the network's address, and
// IPv4's broadcast address.
func (r Reserve) forFamily(f eni.Family) Reserve {
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
	KeptFree    int `json:",omitempty"` // free IPv4 addresses of reserved ranges, which are not in Free; only set by reading
}

// room is how many free addresses of each family a subnet has, and how many IPv4 addresses of reserved ranges are free.
type room struct{ v4, v6, kept int }

// subnet is a Subnet with its pools and history.
type subnet struct {
	Subnet
	pool4, pool6 *pool // nil if there is none of the family
	kept         []Reservation
	seen         history[room]
}

// AddSubnet adds a subnet to the VPC.
func (a *Account) AddSubnet(spec Subnet) error {
	a.lock()
	defer a.mu.Unlock()
	made, err := a.newSubnet(spec)
	if err != nil {
		return fmt.Errorf("add subnet %s: %w", spec.ID, err)
	}
	for _, f := range made.families() {
		if a.o.Network == nil {
			break
		}
		if err := a.o.Network.AddSubnet(eni.Subnet{ID: spec.ID, CIDR: made.pool(f).net, Gateway: made.gateway(f)}); err != nil {
			return err
		}
	}
	a.subnets[spec.ID] = made
	a.noteChangedSubnet(made)
	made.seen.fromStart()
	return nil
}

// newSubnet checks a subnet and makes it. It is not in the account yet.
func (a *Account) newSubnet(spec Subnet) (made *subnet, err error) {
	made = &subnet{Subnet: spec}
	made.Zone = cmp.Or(spec.Zone, a.o.Region+"a")
	made.Reserved = slices.Clone(spec.Reserved)
	if spec.ID == "" || !spec.V4.IsValid() && !spec.V6.IsValid() {
		return nil, errors.New("it needs an ID and an address range")
	}
	if spec.V4.IsValid() && !spec.V4.Addr().Is4() || spec.V6.IsValid() && !spec.V6.Addr().Is6() {
		return nil, fmt.Errorf("%s and %s are not of IPv4 and IPv6", spec.V4, spec.V6)
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		net, p := spec.V4, &made.pool4
		if f == eni.IPv6 {
			net, p = spec.V6, &made.pool6
		}
		if !net.IsValid() {
			continue
		}
		reserve := cmp.Or(spec.Reserve, a.o.Reserve).forFamily(f)
		if *p, err = newPool(net, a.o.blockBits(f), reserve, append([]netip.Addr{made.gateway(f)}, spec.Reserved...)); err != nil {
			return nil, err
		}
	}
	// subnetOf finds an address's subnet by its range, so no two may overlap.
	for _, other := range a.subnets {
		if other.ID == spec.ID || overlap(other.V4, spec.V4) || overlap(other.V6, spec.V6) {
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
		r.v4, r.kept = s.pool4.free(), s.pool4.keptFree()
	}
	if s.pool6 != nil {
		r.v6 = s.pool6.free()
	}
	return r
}

// LeaveFree lets others of the VPC take addresses of the subnet, or release them, until n of each
// of its families are free.
func (a *Account) LeaveFree(subnet string, n int) error {
	return a.changePools("leave free", subnet, func(p *pool) { p.leaveFree(n) })
}

// SetUnmanaged lets others have n addresses of each family of the subnet, or all that are free if
// there are fewer. It is not noted which ones.
func (a *Account) SetUnmanaged(subnet string, n int) error {
	return a.changePools("set others' use", subnet, func(p *pool) { p.unmanaged = max(0, min(n, p.unmanaged+p.free())) })
}

// Fragment makes a subnet have no whole block, as if others had an address in each, so that only
// single addresses come from it, or ends that. It does not change how many addresses are free: see
// SetUnmanaged.
func (a *Account) Fragment(subnet string, broken bool) error {
	return a.changePools("fragment", subnet, func(p *pool) { p.fragmented = broken })
}

// changePools changes the pools of a subnet behind everybody's back.
func (a *Account) changePools(what, subnet string, f func(*pool)) error {
	a.lock()
	defer a.mu.Unlock()
	s := a.subnets[subnet]
	if s == nil {
		return fmt.Errorf("%s: %w", what, fail(NoSuchSubnet, subnet, ""))
	}
	for _, family := range s.families() {
		f(s.pool(family))
	}
	a.noteChangedSubnet(s)
	return nil
}
