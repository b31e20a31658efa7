package aws

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/eni"
)

func (d decoder) addresses4(n *nic, r types.NetworkInterface, where subnet) error {
	primary := aws.ToString(r.PrivateIpAddress)
	var singles []netip.Addr
	for _, p := range r.PrivateIpAddresses {
		text := aws.ToString(p.PrivateIpAddress)
		if aws.ToBool(p.Primary) {
			if primary != "" && primary != text {
				return fmt.Errorf("it has two primary addresses, %s and %s", primary, text)
			}
			primary = text
			continue
		}
		if text == primary {
			continue // EC2 lists it as primary, others only name it above
		}
		a, err := d.address(text, eni.IPv4, where)
		if err != nil {
			return err
		}
		singles = append(singles, a)
	}
	var blocks []string
	for _, p := range r.Ipv4Prefixes {
		blocks = append(blocks, aws.ToString(p.Ipv4Prefix))
	}
	if primary == "" {
		if len(singles)+len(blocks) > 0 {
			return fmt.Errorf("it has IPv4 addresses and no primary one")
		}
		return nil
	}
	a, err := netip.ParseAddr(primary)
	if err != nil || !a.Is4() {
		return fmt.Errorf("primary address %q is no IPv4 address", primary)
	}
	if n.V4, err = where.net(a); err != nil {
		return err
	}
	return d.secondary(n, eni.IPv4, singles, blocks, where)
}

func (d decoder) addresses6(n *nic, r types.NetworkInterface, where subnet) error {
	var all []netip.Addr
	var primary netip.Addr
	for _, p := range r.Ipv6Addresses {
		a, err := d.address(aws.ToString(p.Ipv6Address), eni.IPv6, where)
		if err != nil {
			return err
		}
		if all = append(all, a); aws.ToBool(p.IsPrimaryIpv6) {
			primary = a
		}
	}
	if len(all) > 0 {
		if named, err := netip.ParseAddr(aws.ToString(r.Ipv6Address)); !primary.IsValid() && err == nil && slices.Contains(all, named) {
			primary = named
		}
		if !primary.IsValid() {
			primary = d.first6(n.ID, all)
		}
		var err error
		if n.V6, err = where.net(primary); err != nil {
			return err
		}
	}
	var blocks []string
	for _, p := range r.Ipv6Prefixes {
		blocks = append(blocks, aws.ToString(p.Ipv6Prefix))
	}
	if len(all) == 0 && len(blocks) > 0 {
		blocks = nil // pods can't use them before the ENI has an address of its own
	}
	return d.secondary(n, eni.IPv6, minus(all, []netip.Addr{primary}), blocks, where)
}

func (d decoder) address(text string, f eni.Family, where subnet) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4In6() || eni.FamilyOf(a) != f {
		return a, fmt.Errorf("address %q is no %s address", text, f)
	}
	if !where.has(a) {
		return a, fmt.Errorf("address %s is not one of subnet %s", a, where.ID)
	}
	return a, nil
}

// secondary adds single addresses and blocks of a family to the ENI's.
func (d decoder) secondary(n *nic, f eni.Family, singles []netip.Addr, blocks []string, where subnet) error {
	addrs := slices.Clone(singles)
	for _, text := range blocks {
		block, err := parseBlock(text, f)
		if err != nil {
			return err
		}
		if cidr := where.V4Net; f == eni.IPv6 {
			cidr = where.V6Net
			if !cidr.IsValid() || cidr.Bits() > bits6 || !cidr.Contains(block.Addr()) {
				return fmt.Errorf("prefix %s is not in subnet %s", block, where.ID)
			}
		} else if cidr.Bits() > bits4 || !cidr.Contains(block.Addr()) || block.Contains(n.V4.Primary.Addr()) || block.Contains(n.V4.Gateway) {
			return fmt.Errorf("prefix %s is not for pods in subnet %s", block, where.ID)
		}
		n.blocks = append(n.blocks, block)
		addrs = append(addrs, expand(block, d.size6)...)
	}
	all := union(addrs, nil)
	if len(all) != len(addrs) || slices.Contains(all, n.Net(f).Primary.Addr()) {
		return fmt.Errorf("it has an address twice")
	}
	n.singles = append(n.singles, singles...)
	n.Addresses = union(n.Addresses, all)
	return nil
}
