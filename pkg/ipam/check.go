package ipam

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// Check returns every way in which the state contradicts itself. A store refuses to write
// one that does not pass.
func (s *State) Check() error {
	errs := []error{s.Settings.check()}
	errs = append(errs, s.checkENIs()...)
	errs = append(errs, s.checkAddresses()...)
	return errors.Join(errs...)
}

func (s Settings) check() error {
	var errs []error
	if s.Routing == Map && s.Firewall != Nftables {
		errs = append(errs, errors.New("routing map needs nftables; use routing rule with iptables"))
	}
	if err := ValidMarkMask(s.MarkMask); err != nil {
		errs = append(errs, err)
	}
	if s.CoolDown < 0 {
		errs = append(errs, fmt.Errorf("cool-down %s: must not be negative", s.CoolDown))
	}
	for _, b := range []struct {
		family eni.Family
		bits   int
	}{{eni.IPv4, s.V4Block}, {eni.IPv6, s.V6Block}} {
		if b.bits < 0 || b.bits > b.family.Bits() {
			errs = append(errs, fmt.Errorf("blocks of /%d: those of %s are at most /%d", b.bits, b.family, b.family.Bits()))
		}
	}
	if len(s.Families) == 0 || len(s.Families) > 2 || (len(s.Families) == 2 && s.Families[0] == s.Families[1]) {
		errs = append(errs, fmt.Errorf("families %v: must be ipv4, ipv6 or both", s.Families))
	}
	return errors.Join(errs...)
}

// ValidMarkMask returns why mask can't hold enipool's marks, or nil: it must be eight bits in a
// row, and none of kube-proxy's 0x4000 and 0x8000.
func ValidMarkMask(mask uint32) error {
	switch {
	case mask>>bits.TrailingZeros32(mask) != 0xff:
		return fmt.Errorf("mark mask %#08x: must be eight bits in a row, like %#08x", mask, DefaultMarkMask)
	case mask&0xc000 != 0:
		return fmt.Errorf("mark mask %#08x: takes kube-proxy's bits 0x4000 and 0x8000", mask)
	}
	return nil
}

func (s *State) checkENIs() []error {
	var errs []error
	ids, indexes, devices := map[string]bool{}, map[int]bool{}, map[string]bool{}
	for _, nic := range s.ENIs {
		if err := nic.Validate(); err != nil {
			errs = append(errs, err)
		}
		if ids[nic.ID] || indexes[nic.Index] || devices[nic.Device] {
			errs = append(errs, fmt.Errorf("eni %s: id, index %d or device %s is another ENI's too", nic.ID, nic.Index, nic.Device))
		}
		ids[nic.ID], indexes[nic.Index], devices[nic.Device] = true, true, true
	}
	return errs
}

func (s *State) checkAddresses() []error {
	var errs []error
	bad := func(a eni.Address, format string, args ...any) {
		errs = append(errs, fmt.Errorf("address %s: %s", a.Addr, fmt.Sprintf(format, args...)))
	}
	position, own := map[int]int{}, map[netip.Addr]bool{}
	for i, nic := range s.ENIs {
		position[nic.Index] = i // in ENI order, by which addresses are grouped
		for _, n := range nic.Nets() {
			own[n.Primary.Addr()], own[n.Gateway] = true, true
		}
	}
	type claim struct { // of which an owner has one address
		eni.Key
		eni.Family
	}
	seen, claims, last := make(map[netip.Addr]bool, len(s.Addresses)), make(map[claim]netip.Addr, len(s.Addresses)), 0
	for _, address := range s.Addresses {
		at, known := position[address.ENI]
		switch {
		case !address.Addr.IsValid() || address.Addr.Is4In6() || address.Addr.Zone() != "":
			bad(address, "is not a plain IPv4 or IPv6 address")
		case seen[address.Addr]:
			bad(address, "is in the node state twice")
		case !known:
			bad(address, "its ENI %d is not in the node state", address.ENI)
		case at < last:
			bad(address, "comes after addresses of a later ENI")
		case !s.ENIs[at].MayHave(address.Addr):
			bad(address, "is outside the subnet of its ENI %s", s.ENIs[at].ID)
		case own[address.Addr] && address.State != eni.Releasing && !address.Lost: // the cloud took a lost one back, and may have made it an ENI's primary address
			bad(address, "is an ENI's primary address or its gateway")
		}
		seen[address.Addr], last = true, max(last, at)
		switch {
		case address.State != eni.Used && address.Owner != nil:
			bad(address, "is %s but %s owns it", address.State, address.Owner.Key)
		case address.State != eni.Held && address.HeldBy != "":
			bad(address, "is %s but noted as held by others: %s", address.State, address.HeldBy)
		case address.State != eni.Used && address.Lost:
			bad(address, "is %s but noted as lost by the cloud under a pod", address.State)
		case address.State == eni.Used && address.Owner == nil:
			bad(address, "is used but nobody owns it")
		case address.State == eni.Reserved && address.Reservation == nil:
			bad(address, "is reserved but it is not said for whom")
		case address.Reservation != nil && address.State != eni.Used && address.State != eni.Reserved && address.State != eni.Releasing:
			bad(address, "is %s but noted as reserved for %s", address.State, address.Reservation.PodName())
		case address.State == eni.Used:
			c := claim{address.Owner.Key, address.Family()}
			if other, twice := claims[c]; twice {
				bad(address, "its owner %s has %s too", address.Owner.Key, other)
			}
			claims[c] = address.Addr
			if r := address.Reservation; r != nil && !r.IsNobodys() && !r.IsFor(*address.Owner) {
				bad(address, "is reserved for %s but %s has it", r.PodName(), address.Owner.PodName())
			}
		}
	}
	return errs
}
