package aws

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// routerV6 is the address of the VPC's router on every link.
var routerV6 = netip.MustParseAddr("fe80:ec2::1")

// Subnets implements driver.Driver.
func (d *Driver) Subnets(ctx context.Context, f driver.SubnetFilter) (all []driver.Subnet, err error) {
	for some := range slices.Chunk(f.IDs, perFilter) {
		if err := d.addSubnets(ctx, &all, anyOf("subnet-id", some)); err != nil {
			return nil, err
		}
	}
	if len(f.Tags) > 0 {
		if err := d.addSubnets(ctx, &all, append(allTags(f.Tags), anyOf("vpc-id", []string{f.VPC})...)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addSubnets adds the subnets of all pages that are not there yet.
func (d *Driver) addSubnets(ctx context.Context, all *[]driver.Subnet, filters []types.Filter) error {
	in := &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(d.page)}
	return pages(func(token *string) (*string, error) {
		in.NextToken = token
		out, err := read(ctx, d, &d.api.DescribeSubnets, in)
		if err != nil {
			return nil, err
		}
		for _, raw := range out.Subnets {
			sub := d.readSubnet(raw)
			if !slices.ContainsFunc(*all, func(s driver.Subnet) bool { return s.ID == sub.ID }) {
				*all = append(*all, sub)
			}
		}
		return out.NextToken, nil
	})
}

// readSubnet reads one subnet. EC2 does not count the addresses of one that has IPv6
// alone.
func (d *Driver) readSubnet(in types.Subnet) driver.Subnet {
	s := driver.Subnet{ID: d.text(in.SubnetId), VPC: d.text(in.VpcId), Zone: d.text(in.AvailabilityZone), Gateway6: routerV6,
		Ready: in.State == types.SubnetStateAvailable || in.State == "", Tags: map[string]string{}}
	for _, t := range in.Tags {
		s.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	var err error
	if text := aws.ToString(in.CidrBlock); text != "" {
		if s.V4, err = readRange(text, eni.IPv4); err == nil {
			s.Gateway4 = s.V4.Addr().Next()
		}
	}
	for _, a := range in.Ipv6CidrBlockAssociationSet {
		if err == nil && !s.V6.IsValid() && a.Ipv6CidrBlockState != nil && a.Ipv6CidrBlockState.State == types.SubnetCidrBlockStateCodeAssociated {
			s.V6, err = readRange(aws.ToString(a.Ipv6CidrBlock), eni.IPv6)
		}
	}
	if s.Free = max(int(aws.ToInt32(in.AvailableIpAddressCount)), 0); !s.V4.IsValid() {
		s.Free = -1
	}
	switch {
	case s.ID == "":
		s.Wrong = "it has no ID"
	case err != nil:
		s.Wrong = d.told(err.Error())
	case !s.V4.IsValid() && !s.V6.IsValid():
		s.Wrong = "it has no range"
	}
	return s
}

func readRange(text string, f eni.Family) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || eni.FamilyOf(p.Addr()) != f || p.Bits() > f.Bits()-2 {
		return netip.Prefix{}, fmt.Errorf("range %q is no range of %s", text, f)
	}
	return p, nil
}
