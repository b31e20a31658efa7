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
// no other. Other than an assignment by count it can be made again after a lost answer: it has
// one outcome.
func (n *Node) AssignExactly(ctx context.Context, id string, addrs []netip.Addr) (got []netip.Addr, err error) {
	defer nameError(&err, "AssignExactly", id)
	return n.assignExactly(ctx, id, addrs, "", func(context.Context, nic) (origin, error) { return origin{}, nil })
}

// assignExactly is AssignExactly of addresses in a subnet, "" for the ENI's, that may come
// from the origin.
func (n *Node) assignExactly(ctx context.Context, id string, addrs []netip.Addr, subnet string, from func(context.Context, nic) (origin, error)) (got []netip.Addr, err error) {
	if !n.t.Exact {
		return nil, because(cloud.ErrForbidden, "%s chooses addresses itself", n.t.Name)
	}
	self, err := n.whoami(ctx)
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
		return nil, because(cloud.ErrForbidden, "%s gives this ENI addresses of its own subnet %s alone: those of %s go on an ENI that is in there", n.t.Name, on.Subnet, subnet)
	}
	if err := n.mayName(ctx, on, cmp.Or(subnet, on.Subnet), addrs); err != nil {
		return nil, err
	}
	if err := n.mayFill(ctx, on); err != nil {
		return nil, err
	}
	e := &exactly{Node: n, self: self, on: on, subnet: subnet}
	if e.from, err = from(ctx, on); err != nil {
		return nil, err
	}
	err = e.askAll(ctx, e.from.addrs, true)
	if err == nil {
		err = e.askAll(ctx, minus(addrs, e.from.addrs), false)
	}
	if driver.Reason(err) == driver.NoSuchInterface {
		n.forget(id)
	}
	if err == nil {
		err = e.refused
	}
	return union(e.got), err
}

// mayName tells why one of the addresses can't be a pod's of the subnet on the ENI.
func (n *Node) mayName(ctx context.Context, on nic, subnet string, addrs []netip.Addr) error {
	known, err := n.ranges(ctx, []string{subnet})
	if err != nil {
		return err
	}
	in := known[subnet]
	for _, a := range addrs {
		switch {
		case !a.IsValid() || !mayHave(in, a):
			return because(cloud.ErrForbidden, "%s is not an address for pods in subnet %s", a, subnet)
		case a == on.V4.Primary.Addr() || a == on.V6.Primary.Addr():
			return because(cloud.ErrTaken, "%s is the primary address of this ENI", a)
		case !on.Net(eni.FamilyOf(a)).IsValid():
			return because(cloud.ErrForbidden, "this ENI has no %s addresses", eni.FamilyOf(a))
		}
	}
	return nil
}

// exactly is an AssignExactly under way.
type exactly struct {
	*Node
	self    driver.Self
	on      nic
	subnet  string // that the addresses lie in, "": the ENI's
	from    origin
	got     []netip.Addr
	refused error // why one of the addresses is not to be had, which ends nothing
}

// askAll asks for the addresses of each family, so many a call as the cloud takes. They are
// taken from the ENI that has them, or are free.
func (e *exactly) askAll(ctx context.Context, addrs []netip.Addr, take bool) error {
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		all := union(ofFamily(addrs, f))
		for part := range slices.Chunk(all, cmp.Or(e.t.PerCall, max(len(all), 1))) {
			if err := e.ask(ctx, f, part, take); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask asks for addresses of one family. Clouds refuse all where one is taken, and where the
// ENI has one already: then each that it lacks is asked for alone.
func (e *exactly) ask(ctx context.Context, f eni.Family, addrs []netip.Addr, take bool) error {
	err := e.request(ctx, f, addrs, take)
	if driver.Reason(err) != driver.AddressTaken {
		return err
	}
	has, wrong := e.has(ctx, addrs)
	if wrong != nil {
		return wrong
	}
	e.take(has)
	lacks := minus(addrs, has)
	if len(addrs) == 1 {
		e.refuse(lacks, err)
		return nil
	}
	for _, a := range lacks {
		switch err := e.request(ctx, f, []netip.Addr{a}, take); {
		case driver.Reason(err) == driver.AddressTaken:
			e.refuse([]netip.Addr{a}, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// refuse notes an address that is not free, in the cloud's words.
func (e *exactly) refuse(addrs []netip.Addr, said error) {
	if len(addrs) > 0 && e.refused == nil {
		e.refused = because(cloud.ErrTaken, "%s is not free: %s", addrs[0], detail(said))
	}
}

// request makes one call. Where no good answer comes describes tell what came of it.
func (e *exactly) request(ctx context.Context, f eni.Family, addrs []netip.Addr, take bool) error {
	out, err := e.d.Assign(ctx, driver.Assign{On: e.on.raw, Family: f, Addresses: addrs, Subnet: e.subnet, Take: take, Token: e.o.Token()})
	if lacks := minus(addrs, out.Addresses); err == nil && len(out.Addresses) > 0 && len(lacks) > 0 {
		err = because(cloud.ErrUnknown, "the answer does not name %s", lacks[0])
	}
	switch {
	case err == nil:
		e.take(addrs)
	case errors.Is(err, cloud.ErrUnknown):
		for wait := e.t.Times.Poll; ; wait *= 2 {
			has, wrong := e.has(ctx, addrs)
			if wrong == nil && len(has) == len(addrs) {
				e.take(addrs)
				return nil
			}
			if wait >= e.t.Times.Slow || e.clock.Wait(ctx, wait) != nil {
				return err
			}
		}
	}
	return err
}

// has returns which of the addresses the ENI is shown with, other than those that a call
// took so lately that the answer may be from before.
func (e *exactly) has(ctx context.Context, addrs []netip.Addr) ([]netip.Addr, error) {
	if err := e.grow(ctx, e.on.ID); err != nil {
		return nil, err
	}
	now, err := e.oneAsSeen(ctx, e.self, e.on.ID)
	if err != nil || now == nil {
		return nil, err
	}
	all, _ := e.truth(*now)
	return minus(addrs, minus(addrs, all)), nil
}

// take notes what the ENI has now, and the one that it comes from no more.
func (e *exactly) take(addrs []netip.Addr) {
	e.got = append(e.got, addrs...)
	if moved := minus(addrs, minus(addrs, e.from.addrs)); e.from.node != nil && len(moved) > 0 {
		e.from.node.note(e.from.id, moved, nil, taken)
	}
	e.note(e.on.ID, addrs, nil, put)
}
