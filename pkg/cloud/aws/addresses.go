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

// Assign implements driver.Driver: blocks, or single addresses. EC2 takes an address by
// name from another ENI only if the request allows it, and only of IPv4. It does all of a
// request or nothing, and answers with what is new; an emulator may answer with all
// addresses of the ENI, or with none.
func (d *Driver) Assign(ctx context.Context, asked driver.Assign) (driver.Assigned, error) {
	ask := d.assignIPv4
	if asked.Family == eni.IPv6 {
		ask = d.assignIPv6
	}
	texts, prefixes, err := ask(ctx, asked)
	if err != nil {
		return driver.Assigned{}, err
	}
	// From here on the ENI has the addresses. If one can't be read, the outcome is unknown as a
	// whole: any other kind of error would say that the ENI has got none.
	var got driver.Assigned
	for _, text := range texts {
		addr, err := wire.Addr(text, asked.Family)
		if err != nil {
			return driver.Assigned{}, d.unreadableAnswer(err)
		}
		got.Addresses = append(got.Addresses, addr)
	}
	for _, text := range prefixes {
		block, err := readPrefix(text, asked.Family)
		if err != nil {
			return driver.Assigned{}, d.unreadableAnswer(err)
		}
		got.Blocks = append(got.Blocks, block)
	}
	return got, nil
}

// unreadableAnswer is for a change that was made and whose result can't be read.
func (d *Driver) unreadableAnswer(err error) error {
	return errorf(cloud.ErrUnknown, "%s", d.secrets.Line(fmt.Sprintf("the answer can't be right: %v", err)))
}

// unlessZero makes a parameter of a request, nil for the zero value. A parameter that is not
// wanted must not be there even as 0: EC2 takes a count of addresses or one of prefixes, not both.
func unlessZero[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

func (d *Driver) assignIPv4(ctx context.Context, a driver.Assign) (texts, prefixes []string, err error) {
	out, err := changeEC2(ctx, d, &d.api.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: aws.String(a.On.ID),
		PrivateIpAddresses: wire.Texts(a.Addresses), AllowReassignment: unlessZero(a.Take), Ipv4PrefixCount: unlessZero(int32(a.Count.Blocks)), SecondaryPrivateIpAddressCount: unlessZero(int32(a.Count.Singles))})
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

func (d *Driver) assignIPv6(ctx context.Context, a driver.Assign) (texts, prefixes []string, err error) {
	out, err := changeEC2(ctx, d, &d.api.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: aws.String(a.On.ID),
		Ipv6Addresses: wire.Texts(a.Addresses), Ipv6PrefixCount: unlessZero(int32(a.Count.Blocks)), Ipv6AddressCount: unlessZero(int32(a.Count.Singles))})
	if err != nil {
		return nil, nil, err
	}
	return out.AssignedIpv6Addresses, out.AssignedIpv6Prefixes, nil
}

// Unassign implements driver.Driver.
func (d *Driver) Unassign(ctx context.Context, u driver.Unassign) (err error) {
	id, texts, prefixes := aws.String(u.On.ID), wire.Texts(u.Addresses), wire.Texts(u.Blocks)
	if u.Family == eni.IPv4 {
		_, err = changeEC2(ctx, d, &d.api.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{
			NetworkInterfaceId: id, PrivateIpAddresses: texts, Ipv4Prefixes: prefixes})
	} else {
		_, err = changeEC2(ctx, d, &d.api.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{
			NetworkInterfaceId: id, Ipv6Addresses: texts, Ipv6Prefixes: prefixes})
	}
	return err
}
