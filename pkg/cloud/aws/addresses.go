package aws

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
	"github.com/enipool/enipool/pkg/eni"
)

// Assign implements driver.Driver: blocks, or single addresses. EC2 takes no address by
// name from another ENI unless it is told that it may, of IPv4 alone. It does all of a request
// or nothing, and answers with what is new; an emulator may answer with all addresses of
// the ENI, or with none.
func (d *Driver) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	ask := d.assign4
	if a.Family == eni.IPv6 {
		ask = d.assign6
	}
	texts, prefixes, err := ask(ctx, a)
	if err != nil {
		return driver.Assigned{}, err
	}
	var got driver.Assigned
	for _, text := range texts {
		addr, err := wire.Addr(text, a.Family)
		if err != nil {
			return driver.Assigned{}, d.unreadable(err)
		}
		got.Addresses = append(got.Addresses, addr)
	}
	for _, text := range prefixes {
		block, err := readPrefix(text, a.Family)
		if err != nil {
			return driver.Assigned{}, d.unreadable(err)
		}
		got.Blocks = append(got.Blocks, block)
	}
	return got, nil
}

// unreadable: a change was made, and what of it can't be told.
func (d *Driver) unreadable(err error) error {
	return because(cloud.ErrUnknown, "%s", d.secrets.Line(fmt.Sprintf("the answer can't be right: %v", err)))
}

// given is a parameter of a request, nil for the zero value: what is not asked for must not
// be in it.
func given[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

func (d *Driver) assign4(ctx context.Context, a driver.Assign) (texts, prefixes []string, err error) {
	out, err := change(ctx, d, &d.api.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: aws.String(a.On.ID),
		PrivateIpAddresses: wire.Texts(a.Addresses), AllowReassignment: given(a.Take), Ipv4PrefixCount: given(int32(a.Count.Blocks)), SecondaryPrivateIpAddressCount: given(int32(a.Count.Singles))})
	if err != nil {
		return nil, nil, err
	}
	for _, p := range out.AssignedPrivateIpAddresses {
		texts = append(texts, aws.ToString(p.PrivateIpAddress))
	}
	for _, p := range out.AssignedIpv4Prefixes {
		prefixes = append(prefixes, aws.ToString(p.Ipv4Prefix))
	}
	return texts, prefixes, nil
}

func (d *Driver) assign6(ctx context.Context, a driver.Assign) (texts, prefixes []string, err error) {
	out, err := change(ctx, d, &d.api.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: aws.String(a.On.ID),
		Ipv6Addresses: wire.Texts(a.Addresses), Ipv6PrefixCount: given(int32(a.Count.Blocks)), Ipv6AddressCount: given(int32(a.Count.Singles))})
	if err != nil {
		return nil, nil, err
	}
	return out.AssignedIpv6Addresses, out.AssignedIpv6Prefixes, nil
}

// Unassign implements driver.Driver.
func (d *Driver) Unassign(ctx context.Context, u driver.Unassign) (err error) {
	id, texts, prefixes := aws.String(u.On.ID), wire.Texts(u.Addresses), wire.Texts(u.Blocks)
	if u.Family == eni.IPv4 {
		_, err = change(ctx, d, &d.api.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{
			NetworkInterfaceId: id, PrivateIpAddresses: texts, Ipv4Prefixes: prefixes})
	} else {
		_, err = change(ctx, d, &d.api.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{
			NetworkInterfaceId: id, Ipv6Addresses: texts, Ipv6Prefixes: prefixes})
	}
	return err
}
