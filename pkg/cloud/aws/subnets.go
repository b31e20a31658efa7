package aws

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// plenty is the room of a subnet that has IPv6 addresses only: they don't run out.
const plenty = 1 << 20

// routerV6 is the address of the VPC's router on every link.
var routerV6 = netip.MustParseAddr("fe80:ec2::1")

// subnet is a subnet as EC2 describes it.
type subnet struct {
	cloud.Subnet
	vpc, zone string
	ready     bool
}

// net returns an ENI's place in the subnet, or what is wrong with its address.
func (s subnet) net(primary netip.Addr) (eni.Net, error) {
	cidr, gateway := s.V4Net, s.gateway()
	if primary.Is6() {
		cidr, gateway = s.V6Net, routerV6
	}
	if !cidr.IsValid() || !cidr.Contains(primary) || primary == gateway {
		return eni.Net{}, fmt.Errorf("primary address %s is not one of subnet %s", primary, s.ID)
	}
	return eni.Net{Primary: netip.PrefixFrom(primary, cidr.Bits()), Gateway: gateway}, nil
}

func (s subnet) gateway() netip.Addr { return s.V4Net.Addr().Next() }

// has tells whether an address can be a pod's in the subnet.
func (s subnet) has(a netip.Addr) bool {
	return s.V4Net.IsValid() && s.V4Net.Contains(a) && a != s.gateway() || s.V6Net.IsValid() && s.V6Net.Contains(a)
}

func readSubnet(in types.Subnet) (subnet, error) {
	s := subnet{vpc: aws.ToString(in.VpcId), zone: aws.ToString(in.AvailabilityZone),
		ready: in.State == types.SubnetStateAvailable || in.State == ""}
	s.ID = aws.ToString(in.SubnetId)
	if s.ID == "" {
		return s, fmt.Errorf("a subnet without ID")
	}
	var err error
	if text := aws.ToString(in.CidrBlock); text != "" {
		if s.V4Net, err = readNet(text, eni.IPv4); err != nil {
			return s, fmt.Errorf("subnet %s: %w", s.ID, err)
		}
	}
	for _, a := range in.Ipv6CidrBlockAssociationSet {
		if s.V6Net.IsValid() || a.Ipv6CidrBlockState == nil || a.Ipv6CidrBlockState.State != types.SubnetCidrBlockStateCodeAssociated {
			continue
		}
		if s.V6Net, err = readNet(aws.ToString(a.Ipv6CidrBlock), eni.IPv6); err != nil {
			return s, fmt.Errorf("subnet %s: %w", s.ID, err)
		}
	}
	s.Free = max(int(aws.ToInt32(in.AvailableIpAddressCount)), 0)
	switch {
	case s.V4Net.IsValid():
	case s.V6Net.IsValid():
		s.Free = plenty
	default:
		return s, fmt.Errorf("subnet %s has no range", s.ID)
	}
	return s, nil
}

func readNet(text string, f eni.Family) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || eni.FamilyOf(p.Addr()) != f || p.Bits() > f.Bits()-2 {
		return netip.Prefix{}, fmt.Errorf("range %q is no range of %s", text, f)
	}
	return p, nil
}

// Subnets implements cloud.Cloud: those that Options choose, in the zone and the VPC
// of the node's own ENI, and those of its ENIs.
func (c *Client) Subnets(ctx context.Context) (list []cloud.Subnet, err error) {
	defer c.named(&err, "Subnets", "")
	s, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	home, err := c.findHome(ctx, s)
	if err != nil {
		return nil, err
	}
	all, err := c.chosen(ctx, home)
	if err != nil {
		return nil, err
	}
	found := false
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[id].Subnet)
		found = found || all[id].New
	}
	c.sayIf(!found, "subnets", "no subnet for new ENIs: none in the node's zone and VPC is as cloud.subnets and cloud.subnetTags say", "zone", home.zone, "vpc", home.vpc)
	return list, nil
}

// chosen returns the subnets that Options choose, which New tells, with those of the
// node's ENIs where that takes no call more.
func (c *Client) chosen(ctx context.Context, home home) (map[string]subnet, error) {
	ids := c.o.Subnets
	if len(c.o.Subnets)+len(c.o.SubnetTags) == 0 {
		ids = []string{home.own}
	}
	all, err := c.describeSubnets(ctx, byIDs("subnet-id", slices.Concat(ids, home.subnets)))
	if err != nil {
		return nil, err
	}
	tagged, err := c.tagged(ctx, home)
	maps.Copy(all, tagged)
	for id, s := range all {
		_, byTag := tagged[id]
		s.New = (byTag || slices.Contains(ids, id)) && s.ready && s.zone == home.zone && s.vpc == home.vpc
		all[id] = s
	}
	return all, err
}

// tagged returns the subnets that have all of the tags, if there are any to have.
func (c *Client) tagged(ctx context.Context, home home) (map[string]subnet, error) {
	filters := byTags(c.o.SubnetTags)
	if len(filters) > 0 {
		filters = append(filters, byIDs("vpc-id", []string{home.vpc})...)
	}
	return c.describeSubnets(ctx, filters)
}

// describeSubnets returns the subnets of all pages, and keeps in mind what of them
// doesn't change.
func (c *Client) describeSubnets(ctx context.Context, filters []types.Filter) (map[string]subnet, error) {
	all := map[string]subnet{}
	if len(filters) == 0 {
		return all, nil
	}
	s, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	in := &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(perPage)}
	err = pages(func(token *string) (*string, error) {
		in.NextToken = token
		out, err := read(ctx, c, s.api.DescribeSubnets, in)
		if err != nil {
			return nil, err
		}
		for _, raw := range out.Subnets {
			sub, err := readSubnet(raw)
			c.sayIf(err != nil, "subnet "+sub.ID, "a subnet is left out: what EC2 tells of it can't be right", "error", err)
			if err == nil {
				all[sub.ID] = sub
			}
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.subnets, all)
	return all, nil
}

// subnetsOf returns subnets whose ranges are known, or asks for them. Free may be old.
func (c *Client) subnetsOf(ctx context.Context, ids []string) (map[string]subnet, error) {
	known := map[string]subnet{}
	var unknown []string
	c.mu.Lock()
	for _, id := range ids {
		if s, found := c.subnets[id]; found {
			known[id] = s
		} else if id != "" {
			unknown = append(unknown, id)
		}
	}
	c.mu.Unlock()
	asked, err := c.describeSubnets(ctx, byIDs("subnet-id", unknown))
	maps.Copy(known, asked)
	return known, err
}

// byIDs is a filter for any of the values; no values, no filter.
func byIDs(name string, values []string) []types.Filter {
	values = slices.Clone(values)
	slices.Sort(values)
	if values = slices.Compact(values); len(values) == 0 {
		return nil
	}
	return []types.Filter{{Name: aws.String(name), Values: values}}
}

// byTags are filters for all of the tags.
func byTags(tags map[string]string) []types.Filter {
	var filters []types.Filter
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		filters = append(filters, types.Filter{Name: aws.String("tag:" + key), Values: []string{literal(tags[key])}})
	}
	return filters
}

// literal is a filter's value that stands for itself alone.
func literal(value string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(value)
}
