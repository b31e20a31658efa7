package bce

import (
	"context"
	"errors"
	"strings"

	"github.com/baidubce/bce-sdk-go/services/vpc"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// eniPath is where ENIs are.
const eniPath = "/v1/eni"

// highPerformance is the traffic mode of an RDMA interface (ERI); that of an ENI is
// "standard". Source: Baidu's driver, cce-network-v2/pkg/bce/api/eni/client.go, and
// networkInterfaceTrafficMode of CreateEni in bce-sdk-go.
const highPerformance = "highPerformance"

// Interfaces implements driver.Driver. RDMA interfaces, which the API has in the same
// lists, are none to us: they count against a quota of their own, eriQuota of the
// instance beside eniQuota (bce-sdk-go services/bcc/api/model.go; Baidu's driver,
// cce-network-v2/pkg/bce/rdma/rdma_wrapper.go), and carry no pod's addresses.
func (d *Driver) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	switch {
	case f.Attached.Instance != "":
		return d.attached(ctx, f.Attached)
	case f.Made != "":
		return d.list(ctx, map[string]string{"name": nameOf(f.Made)}, func(i driver.Interface) bool {
			return i.Mark.Ours(f.Made) && (f.Token == "" || i.Mark.Token == f.Token)
		})
	case f.Loose != "":
		return d.list(ctx, nil, func(i driver.Interface) bool {
			if f.Listed != nil {
				*f.Listed++
			}
			return i.State == driver.Loose && i.Mark.Token != "" && i.Mark.Cluster == f.Loose
		})
	}
	var list []driver.Interface
	for _, id := range f.IDs {
		i, err := d.byID(ctx, id)
		if errors.Is(err, cloud.ErrNotFound) {
			if i, err = d.ifPrimary(ctx, id); err == nil && i.ID == "" {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	return list, nil
}

// ifPrimary returns the primary ENI of this process's instance if it has the ID: the
// service for ENIs does not know it.
func (d *Driver) ifPrimary(ctx context.Context, id string) (driver.Interface, error) {
	s, err := d.Self(ctx)
	if err != nil || !validID(id) {
		return driver.Interface{}, err
	}
	m, err := d.machine(ctx, s)
	if err != nil || m.primary.ID != id {
		return driver.Interface{}, err
	}
	return m.primary, nil
}

// attached asks for an instance with its primary ENI, and for the ENIs on it. By what
// Baidu's own driver does a list never has the primary one; if it does, the instance's
// description counts.
func (d *Driver) attached(ctx context.Context, s driver.Self) ([]driver.Interface, error) {
	m, err := d.machine(ctx, s)
	if driver.Reason(err) == driver.NoSuchInterface {
		return nil, nil // there is no such instance
	}
	if err != nil {
		return nil, err
	}
	if isBare(s) {
		return []driver.Interface{m.primary}, nil
	}
	query := map[string]string{"instanceId": s.Instance}
	if vpc := m.primary.VPC; vpc != "" { // else it is taken for this process's own
		query["vpcId"] = vpc
	}
	others, err := d.list(ctx, query, func(i driver.Interface) bool { return i.ID != m.primary.ID })
	if err != nil {
		return nil, err
	}
	return append([]driver.Interface{m.primary}, others...), nil
}

// byID asks for one ENI.
func (d *Driver) byID(ctx context.Context, id string) (driver.Interface, error) {
	if !validID(id) {
		return driver.Interface{}, d.fail(ctx, cloud.ErrNotFound, "no such ENI")
	}
	var a eniAnswer
	r := request{method: "GET", path: eniPath + "/" + id, into: &a}
	if err := d.do(ctx, r); err != nil {
		return driver.Interface{}, err
	}
	if a.EniId != id {
		return driver.Interface{}, d.badAnswer(r, "it is about another ENI")
	}
	return decode(a), nil
}

// list returns the VPC's ENIs that the query and the function select.
func (d *Driver) list(ctx context.Context, query map[string]string, want func(driver.Interface) bool) (list []driver.Interface, err error) {
	all, err := d.pages(ctx, eniPath, query)
	for _, e := range all.ENIs {
		if strings.EqualFold(e.Mode, highPerformance) {
			continue
		}
		if i := decode(e); want(i) {
			list = append(list, i)
		}
	}
	return list, err
}

// page is a page of a list, of ENIs or of subnets.
type page struct {
	ENIs      []eniAnswer  `json:"enis"`
	Subnets   []vpc.Subnet `json:"subnets"`
	Truncated bool         `json:"isTruncated"`
	Next      string       `json:"nextMarker"`
}

// mostPages ends a list whose marker leads round in circles.
const mostPages = 1000

// pages returns all pages of a list of the VPC's as one. A page begins at an object:
// where that is deleted before the page is asked for, the list is asked for anew.
func (d *Driver) pages(ctx context.Context, path string, query map[string]string) (all page, err error) {
	s, err := d.Self(ctx)
	if err != nil {
		return page{}, err
	}
	marker, tries := "", 1
	for n := 0; n < mostPages; n++ {
		p, err := d.onePage(ctx, path, query, s.VPC, marker)
		if driver.Reason(err) == driver.PageLost && tries < 3 {
			all, marker, tries = page{}, "", tries+1
			continue
		}
		if err != nil {
			return page{}, err
		}
		all.ENIs, all.Subnets = append(all.ENIs, p.ENIs...), append(all.Subnets, p.Subnets...)
		if !p.Truncated {
			return all, nil
		}
		marker = p.Next
	}
	return page{}, d.noWay()
}
