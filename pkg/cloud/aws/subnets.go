package aws

import (
	"context"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
	"github.com/enipool/enipool/pkg/eni"
)

// routerV6 is the address of the VPC's router on every link.
var routerV6 = netip.MustParseAddr("fe80:ec2::1")

// Subnets implements driver.Driver.
func (d *Driver) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	ask := func(filters []types.Filter, token *string) (list []driver.Subnet, next *string, err error) {
		out, err := read(ctx, d, &d.api.DescribeSubnets, &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(d.page), NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, raw := range out.Subnets {
			list = append(list, d.readSubnet(raw))
		}
		return list, out.NextToken, nil
	}
	all, err := listByID("subnet-id", f.IDs, ask)
	if err != nil || len(f.Tags) == 0 {
		return all, err
	}
	tagged, err := listAll(append(allTags(f.Tags), anyOf("vpc-id", []string{f.VPC})...), ask)
	for _, sub := range tagged {
		if !slices.ContainsFunc(all, func(s driver.Subnet) bool { return s.ID == sub.ID }) {
			all = append(all, sub)
		}
	}
	return all, err
}

// readSubnet reads one subnet. EC2 does not count the addresses of one that has IPv6
// alone.
func (d *Driver) readSubnet(in types.Subnet) driver.Subnet {
	s := driver.Subnet{ID: d.text(in.SubnetId), VPC: d.text(in.VpcId), Zone: d.text(in.AvailabilityZone), Gateway6: routerV6,
		Ready: in.State == types.SubnetStateAvailable || in.State == "", Tags: readTags(in.Tags)}
	var err error
	if text := aws.ToString(in.CidrBlock); text != "" {
		if s.V4, err = wire.Range(text, eni.IPv4); err == nil {
			s.Gateway4 = s.V4.Addr().Next()
		}
	}
	for _, a := range in.Ipv6CidrBlockAssociationSet {
		if err == nil && !s.V6.IsValid() && a.Ipv6CidrBlockState != nil && a.Ipv6CidrBlockState.State == types.SubnetCidrBlockStateCodeAssociated {
			s.V6, err = wire.Range(aws.ToString(a.Ipv6CidrBlock), eni.IPv6)
		}
	}
	if s.Free = max(int(aws.ToInt32(in.AvailableIpAddressCount)), 0); !s.V4.IsValid() {
		s.Free = -1
	}
	switch {
	case s.ID == "":
		s.Wrong = "it has no ID"
	case err != nil:
		s.Wrong = d.secrets.Line(err.Error())
	case !s.V4.IsValid() && !s.V6.IsValid():
		s.Wrong = "it has no range"
	}
	return s
}
