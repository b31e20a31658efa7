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

// Subnets implements driver.Driver. A single subnet is asked for by its ID, several are picked
// from the list of the VPC.
func (d *Driver) Subnets(ctx context.Context, filter driver.SubnetFilter) (list []driver.Subnet, err error) {
	if len(filter.IDs) == 1 && len(filter.Tags) == 0 {
		s, err := d.subnetByID(ctx, filter.IDs[0])
		if errors.Is(err, cloud.ErrNotFound) {
			return nil, nil
		}
		return []driver.Subnet{s}, err
	}
	all, err := d.allPages(ctx, subnetPath, nil)
	for _, answer := range all.Subnets {
		s := decodeSubnet(answer)
		if filter.Selects(s) {
			list = append(list, s)
		}
	}
	return list, err
}

// subnetByID asks for one subnet.
func (d *Driver) subnetByID(ctx context.Context, id string) (driver.Subnet, error) {
	if !validID(id) {
		return driver.Subnet{}, d.ownError(ctx, cloud.ErrNotFound, "no such subnet")
	}
	var a struct {
		Subnet subnetAnswer `json:"subnet"`
	}
	r := request{method: "GET", path: subnetPath + "/" + id, into: &a}
	if err := d.send(ctx, r); err != nil {
		return driver.Subnet{}, err
	}
	if a.Subnet.SubnetId != id {
		return driver.Subnet{}, d.badAnswer(r, "it is about another subnet")
	}
	return decodeSubnet(a.Subnet), nil
}

// subnetAnswer is a subnet in answers, of which older ones may lack how many free addresses are outside of reserved ranges.
type subnetAnswer struct {
	vpc.Subnet
	Unreserved *int `json:"availableUnreservedIp"`
}

// free returns how many addresses a request for any address can have.
func (a subnetAnswer) free() int {
	if a.Unreserved != nil {
		return max(min(a.AvailableIp, *a.Unreserved), 0)
	}
	return max(a.AvailableIp, 0)
}

// decodeSubnet reads a subnet. Its router has the first address after the network's.
func decodeSubnet(a subnetAnswer) driver.Subnet {
	subnet := driver.Subnet{ID: a.SubnetId, VPC: a.VPCId, Zone: a.ZoneName, Free: a.free(), Ready: true, Tags: map[string]string{}}
	for _, t := range a.Tags {
		subnet.Tags[t.TagKey] = t.TagValue
	}
	var err4, err6 error
	subnet.V4, subnet.Gateway4, err4 = parseRange(a.Cidr, eni.IPv4)
	subnet.V6, subnet.Gateway6, err6 = parseRange(a.Ipv6Cidr, eni.IPv6)
	switch {
	case !validID(subnet.ID):
		subnet.Wrong = fmt.Sprintf("its id is %q", subnet.ID)
	case err4 != nil || err6 != nil:
		subnet.Wrong = errors.Join(err4, err6).Error()
	case !subnet.V4.IsValid():
		subnet.Wrong = "it has no IPv4 range"
	}
	return subnet
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
