package engine

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// AssignExactly puts these addresses on the ENI, as cloud.Region promises, and takes them from
// no other. Unlike an assignment by count, it can be repeated after a lost answer: it has only
// one outcome.
func (n *Node) AssignExactly(ctx context.Context, id string, addrs []netip.Addr) (got []netip.Addr, err error) {
	defer nameError(&err, "AssignExactly", id)
	return n.assignExactly(ctx, id, addrs, "", func(context.Context, nic) (origin, error) { return origin{}, nil })
}

// assignExactly is AssignExactly of addresses in a subnet, "" for the ENI's, that may come
// from the origin.
func (n *Node) assignExactly(ctx context.Context, id string, addrs []netip.Addr, subnet string, from func(context.Context, nic) (origin, error)) (got []netip.Addr, err error) {
	if !n.t.Exact {
		return nil, errorf(cloud.ErrForbidden, "%s chooses addresses itself", n.t.Name)
	}
	self, err := n.findSelf(ctx)
	if err != nil || len(addrs) == 0 {
		return nil, err
	}
	on, err := n.toFill(ctx, self, id)
	if err != nil {
		return nil, err
	}
	if subnet == on.Subnet {
		subnet = ""
	}
	if subnet != "" && !n.t.CrossSubnet {
		return nil, errorf(cloud.ErrForbidden, "%s gives this ENI addresses of its own subnet %s alone: those of %s go on an ENI that is in there", n.t.Name, on.Subnet, subnet)
	}
	if err := n.mayName(ctx, on, cmp.Or(subnet, on.Subnet), addrs); err != nil {
		return nil, err
	}
	if err := n.mayFill(ctx, on); err != nil {
		return nil, err
	}
	call := &exactly{Node: n, self: self, on: on, subnet: subnet}
	if call.from, err = from(ctx, on); err != nil {
		return nil, err
	}
	// Only the addresses that a describe has shown on the origin are asked for with take: with it
	// the cloud would take an address from any ENI.
	err = call.assignAll(ctx, call.from.addrs, true)
	if err == nil {
		err = call.assignAll(ctx, minus(addrs, call.from.addrs), false)
	}
	if driver.Reason(err) == cloud.NoSuchInterface {
		n.forgetENI(id)
	}
	if err == nil {
		err = call.refused
	}
	return union(call.got), err
}

// mayName tells why one of the addresses can't be a pod's of the subnet on the ENI.
func (n *Node) mayName(ctx context.Context, on nic, subnet string, addrs []netip.Addr) error {
	known, err := n.subnetRanges(ctx, []string{subnet})
	if err != nil {
		return err
	}
	in := known[subnet]
	for _, a := range addrs {
		switch {
		case !a.IsValid() || !mayHave(in, a):
			return errorf(cloud.ErrForbidden, "%s is not an address for pods in subnet %s", a, subnet)
		case a == on.V4.Primary.Addr() || a == on.V6.Primary.Addr():
			return errorf(cloud.ErrTaken, "%s is the primary address of this ENI", a)
		case !on.Net(eni.FamilyOf(a)).IsValid():
			return errorf(cloud.ErrForbidden, "this ENI has no %s addresses", eni.FamilyOf(a))
		}
	}
	return nil
}

// exactly is one AssignExactly.
type exactly struct {
	*Node
	self    driver.Self
	on      nic
	subnet  string // that the addresses lie in, "": the ENI's
	from    origin
	got     []netip.Addr
	refused error // why one of the addresses is not free; the others are asked for all the same
}

// assignAll asks for the addresses of each family, as many per request as the cloud takes. With
// take they may come from the ENI that has them, else they have to be free.
func (e *exactly) assignAll(ctx context.Context, addrs []netip.Addr, take bool) error {
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		all := union(ofFamily(addrs, f))
		size := cmp.Or(e.t.PerCall, max(len(all), 1))
		if e.subnet != "" {
			size = 1
		}
		for part := range slices.Chunk(all, size) {
			if err := e.assignPart(ctx, f, part, take); err != nil {
				return err
			}
		}
	}
	return nil
}

// assignPart asks for addresses of one family. Clouds refuse all of them if one is taken, some
// also if this ENI has one already. Then each that it lacks is asked for alone.
func (e *exactly) assignPart(ctx context.Context, family eni.Family, addrs []netip.Addr, take bool) error {
	err := e.requestPart(ctx, family, addrs, take)
	if driver.Reason(err) != cloud.AddressTaken {
		return err
	}
	has, wrong := e.shownWith(ctx, addrs)
	if wrong != nil {
		return wrong
	}
	e.noteAssigned(has)
	lacks := minus(addrs, has)
	if len(addrs) == 1 {
		e.noteRefused(lacks, err)
		return nil
	}
	for _, a := range lacks {
		switch err := e.requestPart(ctx, family, []netip.Addr{a}, take); {
		case driver.Reason(err) == cloud.AddressTaken:
			e.noteRefused([]netip.Addr{a}, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// noteRefused notes an address that is not free, in the cloud's words.
func (e *exactly) noteRefused(addrs []netip.Addr, said error) {
	if len(addrs) > 0 && e.refused == nil {
		e.refused = errorf(cloud.ErrTaken, "%s is not free: %s", addrs[0], detailOf(said))
	}
}

// requestPart makes one request. If its outcome is unknown, describes settle it.
func (e *exactly) requestPart(ctx context.Context, f eni.Family, addrs []netip.Addr, take bool) error {
	out, err := e.d.Assign(ctx, driver.Assign{On: e.on.raw, Family: f, Addresses: addrs, Subnet: e.subnet, Take: take, Token: e.o.Token()})
	if lacks := minus(addrs, out.Addresses); err == nil && len(out.Addresses) > 0 && len(lacks) > 0 {
		err = errorf(cloud.ErrUnknown, "the answer does not name %s", lacks[0])
	}
	switch {
	case err == nil:
		e.noteAssigned(addrs)
	case errors.Is(err, cloud.ErrUnknown):
		// Only that all are there proves anything: one that is missing may still come.
		for wait := e.t.Times.Poll; ; wait *= 2 {
			has, wrong := e.shownWith(ctx, addrs)
			if wrong == nil && len(has) == len(addrs) {
				e.noteAssigned(addrs)
				return nil
			}
			if wait >= e.t.Times.Slow || e.clock.Wait(ctx, wait) != nil {
				return err
			}
		}
	}
	return err
}

// shownWith returns those of the addresses that the ENI is shown with, except those that a call
// unassigned so shortly before that the answer may be older.
func (e *exactly) shownWith(ctx context.Context, addrs []netip.Addr) ([]netip.Addr, error) {
	if err := e.waitForEarlierProcess(ctx, e.on.ID); err != nil {
		return nil, err
	}
	now, err := e.describeENIOrLast(ctx, e.self, e.on.ID)
	if err != nil || now == nil {
		return nil, err
	}
	all, _ := e.currentAddresses(*now)
	return minus(addrs, minus(addrs, all)), nil
}

// noteAssigned notes that the ENI has these addresses, and that their origin no longer has them.
func (e *exactly) noteAssigned(addrs []netip.Addr) {
	e.got = append(e.got, addrs...)
	if moved := minus(addrs, minus(addrs, e.from.addrs)); e.from.node != nil && len(moved) > 0 {
		e.from.node.noteDeed(e.from.id, moved, nil, unassigned)
	}
	e.noteDeed(e.on.ID, addrs, nil, assigned)
}
