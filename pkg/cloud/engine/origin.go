package engine

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// origin is an ENI that loses addresses to another by the request that puts them there.
type origin struct {
	id    string
	node  *Node // that the ENI is of, nil if it is of none
	addrs []netip.Addr
}

// origin returns what may move from an ENI to another one. Who lets a cloud take an address
// lets it take it from anybody: so a describe has to show first that this ENI has it.
func (r *Region) origin(ctx context.Context, on nic, id string, addrs []netip.Addr) (o origin, err error) {
	if id == "" {
		return o, nil
	}
	if !r.t.Moves || len(ofFamily(addrs, eni.IPv6)) > 0 {
		return o, because(cloud.ErrForbidden, "%s moves no such addresses from ENI to ENI: unassign them first", r.t.Name)
	}
	asked := r.self.clock.Now()
	raw, err := r.self.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
	if err != nil || len(raw) == 0 {
		return o, err // of what is gone nothing need be taken
	}
	from, mayLose := r.loser(raw)
	if n, err := r.node(cmp.Or(from.Instance, from.Mark.Instance)); err == nil {
		o.node = n
	}
	switch {
	case !mayLose:
		return o, because(cloud.ErrForbidden, "ENI %s is not one that enipool may take addresses from", id)
	case from.Subnet != on.Subnet:
		return o, because(cloud.ErrForbidden, "ENI %s is in subnet %s, and this one in %s", id, from.Subnet, on.Subnet)
	}
	has := from.Singles
	if o.node != nil {
		has = o.node.corrected(id, has, asked)
	}
	o.id, o.addrs = id, minus(addrs, minus(addrs, has))
	return o, nil
}

// loser tells whether pods' addresses may be on an ENI. It has to have been made for an instance
// that there is a Node of, or for one of this cluster, and be there or nowhere: what others attach
// to a node is theirs. Clusters without a name are not one. A primary ENI has no mark, for enipool
// makes none. Pods' addresses are on it where there is a Node of its instance and pods may have any
// there, and nothing but the ENI tells which of them are: whoever makes a Node takes all of its
// further addresses to be for pods.
func (r *Region) loser(raw []driver.Interface) (driver.Interface, bool) {
	from := raw[0]
	n, err := r.node(from.Instance)
	if err == nil {
		from = n.withMarks(raw)[0]
	}
	switch {
	case from.Wrong != "" || from.Unmanaged != "":
		return from, false
	case from.Primary:
		return from, err == nil && !n.limits().NoPrimary
	}
	m := from.Mark
	_, err = r.node(m.Instance)
	ours := err == nil || m.Cluster != "" && m.Cluster == r.o.Cluster
	return from, ours && m.Token != "" && (from.Instance == "" || m.Ours(from.Instance))
}

// corrected is what an ENI has of single addresses, by a describe that was asked for then and by
// what calls have done that it may not show yet.
func (n *Node) corrected(id string, shown []netip.Addr, asked time.Time) []netip.Addr {
	i := nic{}
	i.ID, i.Addresses, i.read = id, shown, asked
	has, _ := n.truth(i)
	return has
}
