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

// findOrigin returns which of the addresses may move from ENI id to ENI on. A request that allows
// the cloud to take an address allows it to take it from any ENI, so a describe has to show first
// that this one has it.
func (r *Region) findOrigin(ctx context.Context, on nic, id string, addrs []netip.Addr) (out origin, err error) {
	if id == "" {
		return out, nil
	}
	if !r.t.Moves || len(ofFamily(addrs, eni.IPv6)) > 0 {
		return out, errorf(cloud.ErrForbidden, "%s moves no such addresses from ENI to ENI: unassign them first", r.t.Name)
	}
	asked := r.self.clock.Now()
	raw, err := r.self.d.Interfaces(ctx, driver.Filter{IDs: []string{id}})
	if err != nil || len(raw) == 0 {
		return out, err // an ENI that does not exist has no addresses to move
	}
	from, mayLose := r.mayLose(raw)
	if n, err := r.nodeOf(cmp.Or(from.Instance, from.Mark.Instance)); err == nil {
		out.node = n
	}
	switch {
	case !mayLose:
		return out, errorf(cloud.ErrForbidden, "ENI %s is not one that enipool may take addresses from", id)
	case from.Subnet != on.Subnet:
		return out, errorf(cloud.ErrForbidden, "ENI %s is in subnet %s, and this one in %s", id, from.Subnet, on.Subnet)
	}
	has := from.Singles
	if out.node != nil {
		has = out.node.correctedSingles(id, has, asked)
	}
	out.id, out.addrs = id, minus(addrs, minus(addrs, has))
	return out, nil
}

// mayLose tells whether enipool may take addresses from an ENI, which it returns with its mark.
//
// An ENI must have been made for an instance that has a Node, or for one of this cluster, and be
// attached to that instance or nowhere: what others attach to a node is theirs. A cluster without a
// name recognises only the former. A primary ENI, which has no mark, must be of an instance that has
// a Node and whose primary ENI can have pods' addresses. All its secondary addresses count as pods'.
func (r *Region) mayLose(raw []driver.Interface) (driver.Interface, bool) {
	from := raw[0]
	n, err := r.nodeOf(from.Instance)
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
	_, err = r.nodeOf(m.Instance)
	ours := err == nil || m.Cluster != "" && m.Cluster == r.o.Cluster
	return from, ours && m.Token != "" && (from.Instance == "" || m.Ours(from.Instance))
}

// correctedSingles corrects the single addresses that a describe, requested at that time, has
// shown on an ENI by what recent calls have done.
func (n *Node) correctedSingles(id string, shown []netip.Addr, asked time.Time) []netip.Addr {
	i := nic{}
	i.ID, i.Addresses, i.read = id, shown, asked
	has, _ := n.currentAddresses(i)
	return has
}
