package engine

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// List implements cloud.Region. If a page gets lost, it begins with the first page again.
func (r *Region) List(ctx context.Context, page func([]cloud.Listed) error) (complete bool, err error) {
	var ended error // by the caller's page function: returned as it is
	defer func() {
		if nameError(&err, "List", ""); ended != nil {
			err = ended
		}
	}()
	shown := func(some []cloud.Listed) error {
		ended = page(some)
		return ended
	}
	vpc := r.findVPC(ctx)
	if vpc == "" {
		return false, errorf(cloud.ErrUnavailable, "nothing tells which VPC the nodes are in")
	}
	for range mostScans {
		complete, err = r.listOnce(ctx, vpc, shown)
		if ended != nil || driver.Reason(err) != cloud.PageLost {
			return complete, err
		}
	}
	return false, nil // what was shown is there; what was not may be
}

// listOnce shows the pages once.
func (r *Region) listOnce(ctx context.Context, vpc string, page func([]cloud.Listed) error) (complete bool, err error) {
	complete = true
	scan := driver.Scan{VPC: vpc}
	for range mostPages {
		got, err := r.self.d.Page(ctx, scan)
		if err != nil {
			return false, err
		}
		var some []cloud.Listed
		for _, i := range got.Interfaces {
			if i.ID == "" { // it may be any ENI, so the absence of another one proves nothing
				complete = false
				continue
			}
			some = append(some, asListed(i))
		}
		if err := page(some); err != nil {
			return false, err
		}
		if scan.Next = got.Next; got.Next == "" {
			return complete, nil
		}
	}
	return false, errorf(cloud.ErrUnavailable, "bad answer: the pages have no end")
}

func asListed(i driver.Interface) cloud.Listed {
	l := cloud.Listed{ID: i.ID, Subnet: i.Subnet, Instance: i.Instance, For: i.Mark.Instance, Token: i.Mark.Token, Cluster: i.Mark.Cluster,
		Primary: i.Primary, Created: i.Created, Blocks: i.Blocks, Wrong: cmp.Or(i.Wrong, i.Unmanaged)}
	l.Addresses = slices.DeleteFunc(union([]netip.Addr{i.V4, i.V6}, i.Singles), func(a netip.Addr) bool { return !a.IsValid() })
	return l
}
