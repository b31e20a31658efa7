// Package eni holds the nouns of the project: the ENI, its addresses, the
// subnets they come from and the owners they go to. Values only: parse,
// validate, order and print; nothing here does I/O.
package eni

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// MaxIndex is the highest device index an ENI may have: its routing table is
// 100+index and tables 253 to 255 belong to the kernel, its mark has eight bits
// of which 0 and 255 are taken.
const MaxIndex = 150

// Family is an IP version.
type Family uint8

// The two families; the zero Family is no family.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// FamilyOf returns the family of a.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// String returns "ipv4" or "ipv6".
func (f Family) String() string { return fmt.Sprintf("ipv%d", uint8(f)) }

// Bits is the length of a host prefix of the family: 32 or 128.
func (f Family) Bits() int {
	if f == IPv4 {
		return 32
	}
	return 128
}

// Subnet is a range of VPC addresses and the router that serves it.
type Subnet struct {
	ID      string
	CIDR    netip.Prefix
	Gateway netip.Addr
}

// Net is how an ENI stands in the subnet of one family: its primary address
// with the subnet's mask, and the subnet's router. The zero Net means that the
// ENI has no address of the family.
type Net struct {
	Primary netip.Prefix
	Gateway netip.Addr
}

// IsValid tells whether the ENI has an address of this family.
func (n Net) IsValid() bool { return n.Primary.IsValid() }

// Interface is an elastic network interface attached to the node.
type Interface struct {
	ID     string // the cloud's name, unique on the node
	Index  int    // device index: 0 is the primary ENI; its routing table and mark are derived from it
	Device string // the kernel's name of the link
	MTU    int    // bytes
	V4, V6 Net

	// Pods are ranges of their own that addresses for pods may come from, besides the subnets
	// of V4 and V6: no router and no primary address is in there. One of a single address is for
	// one of another subnet, where the cloud puts such on the ENI.
	Pods []netip.Prefix
}

// Net returns the interface's place in the family's subnet.
func (i Interface) Net(f Family) Net {
	if f == IPv4 {
		return i.V4
	}
	return i.V6
}

// Nets returns the valid Nets, IPv4 first.
func (i Interface) Nets() []Net {
	nets := make([]Net, 0, 2)
	for _, n := range []Net{i.V4, i.V6} {
		if n.IsValid() {
			nets = append(nets, n)
		}
	}
	return nets
}

// MayHave tells whether an address can be one of the interface's: it is in its subnet, or in a
// range of its own for pods.
func (i Interface) MayHave(a netip.Addr) bool {
	return i.Net(FamilyOf(a)).IsValid() && i.RangeOf(a).IsValid()
}

// Ranges returns the ranges that its addresses of both families come from.
func (i Interface) Ranges() []netip.Prefix {
	var all []netip.Prefix
	for _, n := range i.Nets() {
		all = append(all, n.Primary.Masked())
	}
	return append(all, i.Pods...)
}

// RangeOf returns the one of Ranges that an address lies in, the zero Prefix if none does.
func (i Interface) RangeOf(a netip.Addr) netip.Prefix {
	for _, p := range i.Ranges() {
		if p.Contains(a) {
			return p
		}
	}
	return netip.Prefix{}
}

// Equal tells whether two interfaces are the same in all.
func (i Interface) Equal(o Interface) bool {
	return i.ID == o.ID && i.Index == o.Index && i.Device == o.Device && i.MTU == o.MTU && i.V4 == o.V4 && i.V6 == o.V6 && slices.Equal(i.Pods, o.Pods)
}

// Validate returns what is wrong with the interface on its own, all of it.
func (i Interface) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if i.ID == "" || strings.ContainsAny(i.ID, " \t\n") {
		bad("id %q: must be one word", i.ID)
	}
	if i.Index < 0 || i.Index > MaxIndex {
		bad("index %d: must be 0 to %d", i.Index, MaxIndex)
	}
	if err := ValidDevice(i.Device); err != nil {
		errs = append(errs, err)
	}
	if i.MTU < 576 || i.MTU > 65535 {
		bad("mtu %d: must be 576 to 65535", i.MTU)
	}
	if len(i.Nets()) == 0 {
		bad("primary: an ENI has at least one primary address")
	}
	for _, n := range i.Nets() {
		if err := n.validate(); err != nil {
			errs = append(errs, err)
		}
	}
	for _, p := range i.Pods {
		if err := i.ValidRange(p); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("eni %s: %w", i.ID, err)
	}
	return nil
}

// ValidRange returns why p can't be one of the interface's Pods, or nil.
func (i Interface) ValidRange(p netip.Prefix) error {
	if !p.IsValid() || p != p.Masked() || !i.Net(FamilyOf(p.Addr())).IsValid() {
		return fmt.Errorf("range %s: must be one without host bits, of a family that it has a primary address of", p)
	}
	return nil
}

func (n Net) validate() error {
	switch {
	case !n.Gateway.IsValid():
		return fmt.Errorf("primary %s: has no gateway", n.Primary)
	case FamilyOf(n.Gateway) != FamilyOf(n.Primary.Addr()):
		return fmt.Errorf("gateway %s: is not of the family of primary %s", n.Gateway, n.Primary)
	case n.Gateway == n.Primary.Addr():
		return fmt.Errorf("gateway %s: is the primary address itself", n.Gateway)
	case !n.Primary.Contains(n.Gateway) && !n.Gateway.IsLinkLocalUnicast():
		return fmt.Errorf("gateway %s: is outside subnet %s", n.Gateway, n.Primary.Masked())
	}
	return nil
}

// ValidDevice returns why name can't be the name of a link, or nil.
func ValidDevice(name string) error {
	if name == "" || len(name) > 15 || name == "." || name == ".." || strings.ContainsAny(name, "/: \t\n\v\f\r") {
		return fmt.Errorf("device %q: must be a link name of 1 to 15 bytes", name)
	}
	return nil
}
