package engine

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// List implements cloud.Region. Pages of which one gets lost are begun anew, as for a look.
func (r *Region) List(ctx context.Context, page func([]cloud.Listed) error) (complete bool, err error) {
	var ended error // by the caller: its error is nobody else's
	defer func() {
		if nameError(&err, "List", ""); ended != nil {
			err = ended
		}
	}()
	shown := func(some []cloud.Listed) error {
		ended = page(some)
		return ended
	}
	vpc := r.vpc(ctx)
	if vpc == "" {
		return false, because(cloud.ErrUnavailable, "nothing tells which VPC the nodes are in")
	}
	for range mostScans {
		complete, err = r.list(ctx, vpc, shown)
		if ended != nil || driver.Reason(err) != driver.PageLost {
			return complete, err
		}
	}
	return false, nil // what was shown is there; what was not may be
}

// list shows the pages once. It is complete if each ENI on them can be told by its ID.
func (r *Region) list(ctx context.Context, vpc string, page func([]cloud.Listed) error) (complete bool, err error) {
	complete = true
	w := driver.Scan{VPC: vpc}
	for range mostPages {
		p, err := r.self.d.Page(ctx, w)
		if err != nil {
			return false, err
		}
		var some []cloud.Listed
		for _, i := range p.Interfaces {
			if i.ID == "" {
				complete = false
				continue
			}
			some = append(some, asListed(i))
		}
		if err := page(some); err != nil {
			return false, err
		}
		if w.Next = p.Next; p.Next == "" {
			return complete, nil
		}
	}
	return false, because(cloud.ErrUnavailable, "bad answer: the pages have no end")
}

func asListed(i driver.Interface) cloud.Listed {
	l := cloud.Listed{ID: i.ID, Subnet: i.Subnet, Instance: i.Instance, For: i.Mark.Instance, Token: i.Mark.Token, Cluster: i.Mark.Cluster,
		Primary: i.Primary, Created: i.Created, Blocks: i.Blocks, Wrong: cmp.Or(i.Wrong, i.Unmanaged)}
	l.Addresses = slices.DeleteFunc(union([]netip.Addr{i.V4, i.V6}, i.Singles), func(a netip.Addr) bool { return !a.IsValid() })
	return l
}
