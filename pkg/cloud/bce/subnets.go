package bce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/baidubce/bce-sdk-go/services/vpc"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
	"github.com/enipool/enipool/pkg/eni"
)

// subnetPath is where subnets are.
const subnetPath = "/v1/subnet"

// Subnets implements driver.Driver. One is asked for by its ID, several are in the VPC's
// list.
func (d *Driver) Subnets(ctx context.Context, f driver.SubnetFilter) (list []driver.Subnet, err error) {
	if len(f.IDs) == 1 && len(f.Tags) == 0 {
		s, err := d.subnet(ctx, f.IDs[0])
		if errors.Is(err, cloud.ErrNotFound) {
			return nil, nil
		}
		return []driver.Subnet{s}, err
	}
	all, err := d.pages(ctx, subnetPath, nil)
	for _, answer := range all.Subnets {
		s := decodeSubnet(answer)
		if f.Selects(s) {
			list = append(list, s)
		}
	}
	return list, err
}

// subnet asks for one subnet.
func (d *Driver) subnet(ctx context.Context, id string) (driver.Subnet, error) {
	if !validID(id) {
		return driver.Subnet{}, d.fail(ctx, cloud.ErrNotFound, "no such subnet")
	}
	var a vpc.GetSubnetDetailResult
	r := request{method: "GET", path: subnetPath + "/" + id, into: &a}
	if err := d.do(ctx, r); err != nil {
		return driver.Subnet{}, err
	}
	if a.Subnet.SubnetId != id {
		return driver.Subnet{}, d.badAnswer(r, "it is about another subnet")
	}
	return decodeSubnet(a.Subnet), nil
}

// decodeSubnet reads a subnet. The router is its first address.
func decodeSubnet(a vpc.Subnet) driver.Subnet {
	s := driver.Subnet{ID: a.SubnetId, VPC: a.VPCId, Zone: a.ZoneName, Free: max(a.AvailableIp, 0), Ready: true, Tags: map[string]string{}}
	for _, t := range a.Tags {
		s.Tags[t.TagKey] = t.TagValue
	}
	var err4, err6 error
	s.V4, s.Gateway4, err4 = parseRange(a.Cidr, eni.IPv4)
	s.V6, s.Gateway6, err6 = parseRange(a.Ipv6Cidr, eni.IPv6)
	switch {
	case !validID(s.ID):
		s.Wrong = fmt.Sprintf("its id is %q", s.ID)
	case err4 != nil || err6 != nil:
		s.Wrong = errors.Join(err4, err6).Error()
	case !s.V4.IsValid():
		s.Wrong = "it has no IPv4 range"
	}
	return s
}

func parseRange(text string, f eni.Family) (p netip.Prefix, router netip.Addr, err error) {
	if text == "" {
		return p, router, nil
	}
	if p, err = wire.Range(text, f); err == nil {
		router = p.Addr().Next()
	}
	return p, router, err
}
