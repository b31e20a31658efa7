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

// Interfaces implements driver.Driver. It leaves out RDMA interfaces, which the API has in the
// same lists: they count against a quota of their own, eriQuota of the instance beside
// eniQuota (bce-sdk-go services/bcc/api/model.go; Baidu's driver,
// cce-network-v2/pkg/bce/rdma/rdma_wrapper.go), and carry no pod's addresses.
func (d *Driver) Interfaces(ctx context.Context, filter driver.Filter) ([]driver.Interface, error) {
	switch {
	case filter.Attached.Instance != "":
		return d.attachedTo(ctx, filter.Attached)
	case filter.Made != "":
		return d.listENIs(ctx, map[string]string{"name": nameOf(filter.Made)}, func(i driver.Interface) bool {
			return i.Mark.Ours(filter.Made) && (filter.Token == "" || i.Mark.Token == filter.Token)
		})
	case filter.Loose != "":
		return d.listENIs(ctx, nil, func(i driver.Interface) bool {
			if filter.Listed != nil {
				*filter.Listed++
			}
			return i.State == driver.Loose && i.Mark.Token != "" && i.Mark.Cluster == filter.Loose
		})
	}
	// Lists do not select by ID, so each is asked for by itself.
	var list []driver.Interface
	for _, id := range filter.IDs {
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
	m, err := d.describeInstance(ctx, s)
	if err != nil || m.primary.ID != id {
		return driver.Interface{}, err
	}
	return m.primary, nil
}

// attachedTo returns the primary ENI, from the instance's description, and the other ENIs, from
// a list. Baidu's own driver takes for granted that lists lack the primary one; should one
// have it, the instance's description counts.
func (d *Driver) attachedTo(ctx context.Context, self driver.Self) ([]driver.Interface, error) {
	info, err := d.describeInstance(ctx, self)
	if driver.Reason(err) == cloud.NoSuchInstance {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if isBare(self) {
		return []driver.Interface{info.primary}, nil
	}
	query := map[string]string{"instanceId": self.Instance}
	if vpc := info.primary.VPC; vpc != "" { // else it is taken for this process's own
		query["vpcId"] = vpc
	}
	others, err := d.listENIs(ctx, query, func(i driver.Interface) bool { return i.ID != info.primary.ID })
	if err != nil {
		return nil, err
	}
	return append([]driver.Interface{info.primary}, others...), nil
}

// byID asks for one ENI.
func (d *Driver) byID(ctx context.Context, id string) (driver.Interface, error) {
	if !validID(id) {
		return driver.Interface{}, d.ownError(ctx, cloud.ErrNotFound, "no such ENI")
	}
	var a eniAnswer
	r := request{method: "GET", path: eniPath + "/" + id, into: &a}
	if err := d.send(ctx, r); err != nil {
		return driver.Interface{}, err
	}
	if a.EniId != id {
		return driver.Interface{}, d.badAnswer(r, "it is about another ENI")
	}
	return decodeInterface(a), nil
}

// listENIs returns the ENIs of the VPC that both the query and want select.
func (d *Driver) listENIs(ctx context.Context, query map[string]string, want func(driver.Interface) bool) (list []driver.Interface, err error) {
	all, err := d.allPages(ctx, eniPath, query)
	for _, e := range all.ENIs {
		if strings.EqualFold(e.Mode, highPerformance) {
			continue
		}
		if i := decodeInterface(e); want(i) {
			list = append(list, i)
		}
	}
	return list, err
}

// page is a page of a list, of ENIs, of subnets or of reserved ranges.
type page struct {
	ENIs      []eniAnswer     `json:"enis"`
	Subnets   []subnetAnswer  `json:"subnets"`
	Reserved  []vpc.IpReserve `json:"ipReserves"`
	Truncated bool            `json:"isTruncated"`
	Next      string          `json:"nextMarker"`
}

// mostPages ends a list whose marker leads round in circles.
const mostPages = 1000

// allPages returns all pages of a list of the VPC as one.
func (d *Driver) allPages(ctx context.Context, path string, query map[string]string) (all page, err error) {
	s, err := d.Self(ctx)
	if err != nil {
		return page{}, err
	}
	marker, tries := "", 1
	for n := 0; n < mostPages; n++ {
		next, err := d.onePage(ctx, path, query, s.VPC, marker)
		if driver.Reason(err) == cloud.PageLost && tries < 3 {
			// A page begins at an object. If that was deleted meanwhile, only the first page can be
			// had, and what the earlier pages had may have changed.
			all, marker, tries = page{}, "", tries+1
			continue
		}
		if err != nil {
			return page{}, err
		}
		all.ENIs, all.Subnets, all.Reserved = append(all.ENIs, next.ENIs...), append(all.Subnets, next.Subnets...), append(all.Reserved, next.Reserved...)
		if !next.Truncated {
			return all, nil
		}
		marker = next.Next
	}
	return page{}, d.errNoNextPage()
}
