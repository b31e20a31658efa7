package engine

import (
	"context"
	"net/netip"

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
	raw, err := r.self.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
	if err != nil || len(raw) == 0 {
		return o, err // of what is gone nothing need be taken
	}
	from := raw[0]
	for _, instance := range []string{from.Instance, from.Mark.Instance} {
		if n, err := r.node(instance); err == nil && o.node == nil {
			o.node = n
		}
	}
	switch {
	case from.Wrong != "" || from.Unmanaged != "" || o.node == nil && (from.Mark.Token == "" || from.Mark.Cluster != r.o.Cluster):
		return o, because(cloud.ErrForbidden, "ENI %s is not one that enipool may take addresses from", id)
	case from.Subnet != on.Subnet:
		return o, because(cloud.ErrForbidden, "ENI %s is in subnet %s, and this one in %s", id, from.Subnet, on.Subnet)
	}
	has := from.Singles
	if o.node != nil {
		has = o.node.corrected(id, has)
	}
	o.id, o.addrs = id, minus(addrs, minus(addrs, has))
	return o, nil
}

// corrected is what an ENI has of single addresses, by a describe and by what calls have done
// that it may not show yet.
func (n *Node) corrected(id string, shown []netip.Addr) []netip.Addr {
	i := nic{}
	i.ID, i.Addresses, i.read = id, shown, n.clock.Now()
	has, _ := n.truth(i)
	return has
}
