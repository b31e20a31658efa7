package bce

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Page implements driver.Driver. A list takes one instance, or one name, or a VPC: of many
// instances there is the last alone.
func (d *Driver) Page(ctx context.Context, s driver.Scan) (out driver.Page, err error) {
	if s.VPC == "" {
		return driver.Page{}, d.fail(ctx, cloud.ErrForbidden, "a list of several instances is not to be had, only that of a VPC")
	}
	p, err := d.onePage(ctx, eniPath, nil, s.VPC, s.Next)
	if err != nil {
		return driver.Page{}, err
	}
	for _, e := range p.ENIs {
		if !strings.EqualFold(e.Mode, highPerformance) {
			out.Interfaces = append(out.Interfaces, decode(e))
		}
	}
	if p.Truncated {
		out.Next = p.Next
	}
	return out, nil
}

// onePage returns the page of a list that begins at the marker, "" for the first. A page
// begins at an object: where that is deleted before the page is asked for, it is lost.
func (d *Driver) onePage(ctx context.Context, path string, query map[string]string, vpc, marker string) (p page, err error) {
	r := request{method: "GET", path: path, query: map[string]string{"vpcId": vpc, "maxKeys": "1000"}, into: &p}
	maps.Copy(r.query, query)
	if marker != "" {
		r.query["marker"] = marker
	}
	err = d.do(ctx, r)
	if e, is := errors.AsType[*driver.Error](err); is && marker != "" && e.Why == driver.Busy {
		lost := *e
		lost.Why = driver.PageLost
		return page{}, &lost
	}
	if err == nil && p.Truncated && (p.Next == "" || p.Next == marker) {
		err = d.noWay()
	}
	return p, err
}

// noWay: an answer says that there is more, and not where.
func (d *Driver) noWay() error {
	return d.badAnswer(request{method: "GET"}, "there is a next page and no way to it")
}
