package bce

import (
	"context"
	"net/netip"

	"github.com/baidubce/bce-sdk-go/services/vpc"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// reservePath is where reserved ranges of subnets are.
const reservePath = subnetPath + "/ipreserve"

// Reserve implements driver.Driver. It has no token: a second one of the same range overlaps the first.
func (d *Driver) Reserve(ctx context.Context, asked driver.Reservation) (string, error) {
	body := vpc.CreateIpreserveArgs{SubnetId: asked.Subnet, IpCidr: asked.Range.String(), IpVersion: 4, Description: asked.Note}
	if asked.Range.Addr().Is6() {
		body.IpVersion = 6
	}
	var a vpc.CreateIpreserveResult
	r := request{method: "POST", path: reservePath, body: body, into: &a}
	if err := d.send(ctx, r); err != nil {
		return "", err
	}
	if !validID(a.IpReserveId) {
		return "", d.badAnswer(r, "the new reservation has no ID")
	}
	return a.IpReserveId, nil
}

// Unreserve implements driver.Driver.
func (d *Driver) Unreserve(ctx context.Context, id string) error {
	if !validID(id) {
		return d.ownError(ctx, cloud.ErrNotFound, "no such reservation")
	}
	return d.send(ctx, request{method: "DELETE", path: reservePath + "/" + id})
}

// Reservations implements driver.Driver.
func (d *Driver) Reservations(ctx context.Context, subnet string) (list []driver.Reservation, err error) {
	all, err := d.allPages(ctx, reservePath, map[string]string{"subnetId": subnet})
	for _, is := range all.Reserved {
		in, err := parseReserved(is.IpCidr)
		if err != nil || !validID(is.IpReserveId) {
			return nil, d.badAnswer(request{method: "GET"}, "a reservation of subnet "+subnet+" can't be")
		}
		list = append(list, driver.Reservation{ID: is.IpReserveId, Subnet: is.SubnetId, Range: in, Note: is.Description})
	}
	return list, err
}

// parseReserved reads a reserved range, which may be a single address.
func parseReserved(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Prefix(a.BitLen())
	}
	return netip.ParsePrefix(text)
}
