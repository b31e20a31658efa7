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
func (d *Driver) Subnets(ctx context.Context, filter driver.SubnetFilter) ([]driver.Subnet, error) {
	ask := func(filters []types.Filter, token *string) (list []driver.Subnet, next *string, err error) {
		out, err := askEC2(ctx, d, &d.api.DescribeSubnets, &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(d.page), NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, raw := range out.Subnets {
			list = append(list, d.readSubnet(raw))
		}
		return list, out.NextToken, nil
	}
	all, err := listByID("subnet-id", filter.IDs, ask)
	if err != nil || len(filter.Tags) == 0 {
		return all, err
	}
	// EC2's filters are all joined by "and", so IDs and tags take two requests, and a subnet may
	// be in both answers.
	tagged, err := listAll(append(allTags(filter.Tags), anyOf("vpc-id", []string{filter.VPC})...), ask)
	for _, sub := range tagged {
		if !slices.ContainsFunc(all, func(s driver.Subnet) bool { return s.ID == sub.ID }) {
			all = append(all, sub)
		}
	}
	return all, err
}

// readSubnet reads one subnet. Of one that has only IPv6, EC2 does not count the addresses.
func (d *Driver) readSubnet(in types.Subnet) driver.Subnet {
	subnet := driver.Subnet{ID: d.safeText(in.SubnetId), VPC: d.safeText(in.VpcId), Zone: d.safeText(in.AvailabilityZone), Gateway6: routerV6,
		Ready: in.State == types.SubnetStateAvailable || in.State == "", Tags: readTags(in.Tags)}
	var err error
	if text := aws.ToString(in.CidrBlock); text != "" {
		if subnet.V4, err = wire.Range(text, eni.IPv4); err == nil {
			subnet.Gateway4 = subnet.V4.Addr().Next()
		}
	}
	// The list also has ranges that are not yet, or no longer, the subnet's.
	for _, a := range in.Ipv6CidrBlockAssociationSet {
		if err == nil && !subnet.V6.IsValid() && a.Ipv6CidrBlockState != nil && a.Ipv6CidrBlockState.State == types.SubnetCidrBlockStateCodeAssociated {
			subnet.V6, err = wire.Range(aws.ToString(a.Ipv6CidrBlock), eni.IPv6)
		}
	}
	if subnet.Free = max(int(aws.ToInt32(in.AvailableIpAddressCount)), 0); !subnet.V4.IsValid() {
		subnet.Free = -1
	}
	switch {
	case subnet.ID == "":
		subnet.Wrong = "it has no ID"
	case err != nil:
		subnet.Wrong = d.secrets.Line(err.Error())
	case !subnet.V4.IsValid() && !subnet.V6.IsValid():
		subnet.Wrong = "it has no range"
	}
	return subnet
}
