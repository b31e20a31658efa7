package bce

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Page implements driver.Driver. Lists take one instance, one name, or a VPC, so the ENIs of
// several instances can only be had from the list of the VPC.
func (d *Driver) Page(ctx context.Context, s driver.Scan) (out driver.Page, err error) {
	if s.VPC == "" {
		return driver.Page{}, d.ownError(ctx, cloud.ErrForbidden, "a list of several instances is not to be had, only that of a VPC")
	}
	p, err := d.onePage(ctx, eniPath, nil, s.VPC, s.Next)
	if err != nil {
		return driver.Page{}, err
	}
	for _, e := range p.ENIs {
		if !strings.EqualFold(e.Mode, highPerformance) {
			out.Interfaces = append(out.Interfaces, decodeInterface(e))
		}
	}
	if p.Truncated {
		out.Next = p.Next
	}
	return out, nil
}

// onePage returns the page of a list that begins at the marker, "" for the first. A page begins
// at an object: PageLost if that was deleted before the page was asked for.
func (d *Driver) onePage(ctx context.Context, path string, query map[string]string, vpc, marker string) (got page, err error) {
	r := request{method: "GET", path: path, query: map[string]string{"vpcId": vpc, "maxKeys": "1000"}, into: &got}
	maps.Copy(r.query, query)
	if path == reservePath {
		delete(r.query, "vpcId") // it takes a subnet in its place
	}
	if marker != "" {
		r.query["marker"] = marker
	}
	err = d.send(ctx, r)
	if e, is := errors.AsType[*driver.Error](err); is && marker != "" && e.Why == cloud.Busy {
		lost := *e
		lost.Why = cloud.PageLost
		return page{}, &lost
	}
	if err == nil && got.Truncated && (got.Next == "" || got.Next == marker) {
		err = d.errNoNextPage()
	}
	return got, err
}

// errNoNextPage is for an answer that says there is another page, but not where it begins.
func (d *Driver) errNoNextPage() error {
	return d.badAnswer(request{method: "GET"}, "there is a next page and no way to it")
}
