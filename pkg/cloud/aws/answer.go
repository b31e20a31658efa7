package aws

import (
	"context"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// request makes the call and takes over what is new. EC2 answers with just that; an
// emulator may answer with all addresses of the ENI, or with none.
func (a *assignment) request(ctx context.Context, n int, blocks bool) error {
	call := a.request4
	if a.family == eni.IPv6 {
		call = a.request6
	}
	answer, whole, err := call(ctx, int32(n), blocks)
	if err != nil {
		return err
	}
	fresh := minus(union(answer, nil), []netip.Addr{a.on.V4.Primary.Addr(), a.on.V6.Primary.Addr()})
	if size := a.limits.Block(a.family).Size; !blocks && len(answer) > n || blocks && len(answer) > n*size {
		fresh = minus(fresh, union(a.before, a.got))
	}
	if len(fresh) == 0 {
		return because(cloud.ErrUnknown, "the answer names no new address")
	}
	known, err := a.subnetsOf(ctx, []string{a.on.Subnet})
	if err != nil {
		return unsettled(err)
	}
	for _, addr := range fresh {
		if !known[a.on.Subnet].has(addr) {
			return because(cloud.ErrUnknown, "the answer names %s, which is not an address of subnet %s", addr, a.on.Subnet)
		}
	}
	a.take(fresh, whole)
	return nil
}

func (a *assignment) take(fresh []netip.Addr, blocks []netip.Prefix) {
	a.got = union(a.got, fresh)
	a.remember(a.on.ID, fresh, blocks, put)
}

func (a *assignment) request4(ctx context.Context, n int32, blocks bool) ([]netip.Addr, []netip.Prefix, error) {
	in := &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: aws.String(a.on.ID)}
	if blocks {
		in.Ipv4PrefixCount = aws.Int32(n)
	} else {
		in.SecondaryPrivateIpAddressCount = aws.Int32(n)
	}
	out, err := change(ctx, a.Client, a.s.api.AssignPrivateIpAddresses, in)
	if err != nil {
		return nil, nil, err
	}
	var texts, prefixes []string
	for _, p := range out.AssignedPrivateIpAddresses {
		texts = append(texts, aws.ToString(p.PrivateIpAddress))
	}
	for _, p := range out.AssignedIpv4Prefixes {
		prefixes = append(prefixes, aws.ToString(p.Ipv4Prefix))
	}
	return a.parse(texts, prefixes)
}

func (a *assignment) request6(ctx context.Context, n int32, blocks bool) ([]netip.Addr, []netip.Prefix, error) {
	in := &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: aws.String(a.on.ID)}
	if blocks {
		in.Ipv6PrefixCount = aws.Int32(n)
	} else {
		in.Ipv6AddressCount = aws.Int32(n)
	}
	out, err := change(ctx, a.Client, a.s.api.AssignIpv6Addresses, in)
	if err != nil {
		return nil, nil, err
	}
	return a.parse(out.AssignedIpv6Addresses, out.AssignedIpv6Prefixes)
}

func (a *assignment) parse(texts, prefixes []string) (addrs []netip.Addr, blocks []netip.Prefix, err error) {
	for _, text := range texts {
		addr, err := netip.ParseAddr(text)
		if err != nil || eni.FamilyOf(addr) != a.family {
			return nil, nil, because(cloud.ErrUnknown, "the answer names %q, which is no %s address", text, a.family)
		}
		addrs = append(addrs, addr)
	}
	for _, text := range prefixes {
		block, err := parseBlock(text, a.family)
		if err != nil {
			return nil, nil, because(cloud.ErrUnknown, "the answer names %v", err)
		}
		blocks = append(blocks, block)
		addrs = append(addrs, expand(block, a.limits.V6Block.Size)...)
	}
	return addrs, blocks, nil
}

// settle looks for what came although no good answer did.
func (a *assignment) settle(ctx context.Context) {
	for wait := a.pace[0]; ; wait *= 2 {
		now, err := a.byID(ctx, a.s, a.on.ID)
		if err != nil || now == nil {
			return
		}
		fresh := ofFamily(minus(now.Addresses, union(a.before, a.got)), a.family)
		if len(fresh) > 0 {
			a.take(fresh, now.blocks)
			return
		}
		if wait >= a.pace[1] || pause(ctx, wait) != nil {
			return
		}
	}
}
