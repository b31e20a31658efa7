package bce

import (
	"context"
	"net/netip"
	"strings"

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

// Reservations implements driver.Driver. A page begins at a reservation: after one that was deleted meanwhile the list is refused, and
// asked for again by whoever wants it.
func (d *Driver) Reservations(ctx context.Context, subnet string) (list []driver.Reservation, err error) {
	marker := ""
	for range mostPages {
		var a vpc.ListIpeserveResult
		r := request{method: "GET", path: reservePath, query: map[string]string{"subnetId": subnet, "maxKeys": "1000"}, into: &a}
		if marker != "" {
			r.query["marker"] = marker
		}
		if err := d.send(ctx, r); err != nil {
			return nil, err
		}
		for _, is := range a.IpReserves {
			in, ok := parseReserved(is.IpCidr)
			if !ok || !validID(is.IpReserveId) {
				return nil, d.badAnswer(r, "a reservation of subnet "+subnet+" can't be")
			}
			list = append(list, driver.Reservation{ID: is.IpReserveId, Subnet: is.SubnetId, Range: in, Note: is.Description})
		}
		if !a.IsTruncated {
			return list, nil
		}
		if a.NextMarker == "" || a.NextMarker == marker {
			break
		}
		marker = a.NextMarker
	}
	return nil, d.errNoNextPage()
}

// parseReserved reads a reserved range, which may be a single address.
func parseReserved(text string) (in netip.Prefix, ok bool) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		return netip.PrefixFrom(a, a.BitLen()), err == nil && a.Zone() == ""
	}
	in, err := netip.ParsePrefix(text)
	return in, err == nil
}
