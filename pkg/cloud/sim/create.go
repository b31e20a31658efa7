package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// create carries out CreateInterface in three effects, each of which finds what
// an earlier call with the same token has done already.
func (a *Account) create(ctx context.Context, r request, fault Fault, attach time.Duration) (reply, error) {
	a.lock()
	n, err := a.begin(r)
	a.mu.Unlock()
	switch {
	case err != nil:
		return reply{}, err
	case fault.Lost == AfterCreate:
		return reply{}, lost(r)
	}
	if err := a.attaching(ctx, r, attach); err != nil {
		return reply{}, fail(cloud.ErrUnknown, n.ID, "%v before the ENI was attached", err)
	}
	a.lock()
	defer a.mu.Unlock()
	if a.enis[n.ID] != n {
		return reply{}, fail(cloud.ErrUnknown, n.ID, "the ENI was deleted meanwhile")
	}
	return a.finish(n, r, fault.Lost)
}

// createAtOnce is create at one moment.
func (a *Account) createAtOnce(r request) (reply, error) {
	n, err := a.begin(r)
	if err != nil {
		return reply{}, err
	}
	return a.finish(n, r, Nowhere)
}

// begin makes the ENI, or finds the one that the token has made.
func (a *Account) begin(r request) (*nic, error) {
	m, c := a.machines[r.Node], r.Create
	if m == nil {
		return nil, fail(cloud.ErrNotFound, r.Node, "no such node")
	}
	for _, n := range m.enis {
		if n.Ours && n.Token == c.Token {
			return n, nil
		}
	}
	s := a.subnets[c.Subnet]
	switch {
	case c.Token == "" || len(c.Token) > 64:
		return nil, fail(cloud.ErrForbidden, "", "the token has %d bytes, it must have 1 to 64", len(c.Token))
	case s == nil:
		return nil, fail(cloud.ErrNotFound, c.Subnet, "no such subnet")
	case !m.may(c.Subnet):
		return nil, fail(cloud.ErrForbidden, c.Subnet, "the node's ENIs may not lie in this subnet")
	case c.V4 > m.Limits.PerENI(eni.IPv4) || c.V6 > m.Limits.PerENI(eni.IPv6):
		return nil, fail(cloud.ErrLimit, c.Subnet, "an ENI may have %d and %d addresses besides the primary",
			m.Limits.PerENI(eni.IPv4), m.Limits.PerENI(eni.IPv6))
	}
	n, err := a.newENI(m, s)
	if err != nil {
		return nil, err
	}
	n.Ours, n.Token = true, c.Token
	a.add(n)
	return n, nil
}

// finish attaches and fills the ENI; if it can't, nothing is left of it.
func (a *Account) finish(n *nic, r request, at Lost) (reply, error) {
	err := a.attach(n)
	if err == nil && at == AfterAttach {
		return reply{}, lost(r)
	}
	if err == nil {
		err = a.fill(n, r.Create)
	}
	if err != nil {
		if undo := a.destroy(n); undo != nil {
			err = fail(cloud.ErrUnknown, n.ID, "%v, and then to delete it: %v", cloud.Kind(err), undo)
		}
	}
	switch {
	case at == AfterEffect:
		return reply{}, lost(r)
	case err != nil:
		return reply{}, err
	}
	return reply{Interface: n.shown()}, nil
}

// newENI makes an ENI of the node with a primary address of each family that both
// the subnet and the instance have. It is not in the account yet.
func (a *Account) newENI(m *machine, s *subnet) (*nic, error) {
	if a.o.MaxENIs > 0 && len(a.enis) >= a.o.MaxENIs {
		return nil, fail(cloud.ErrLimit, "", "the account may have %d ENIs", a.o.MaxENIs)
	}
	id := fmt.Sprintf("eni-%08x", a.made+1)
	n := &nic{Node: m.Name, Interface: cloud.Interface{ID: id, Index: -1, MAC: mac(a.name(), id).String(),
		Subnet: s.ID, Created: a.now.Round(0).UTC()}}
	for _, f := range s.families() {
		if most(m.Limits, f) == 0 {
			continue
		}
		addr, ok := s.pool(f).take(a.o.Reuse)
		if !ok {
			a.giveBack(n)
			return nil, fail(cloud.ErrSubnetFull, s.ID, "no %s address for a new ENI", f)
		}
		if f == eni.IPv4 {
			n.V4 = s.net(addr)
		} else {
			n.V6 = s.net(addr)
		}
	}
	if !n.V4.IsValid() && !n.V6.IsValid() {
		return nil, fail(cloud.ErrLimit, s.ID, "the instance may have no address of the subnet's family")
	}
	a.made++
	return n, nil
}

// most is how many addresses of the family an ENI may have, its primary included.
func most(l eni.Limits, f eni.Family) int {
	if f == eni.IPv4 {
		return l.V4
	}
	return l.V6
}

// attach gives the ENI the lowest free index of its node and plugs it in.
func (a *Account) attach(n *nic) error {
	if n.Index >= 0 {
		return nil
	}
	m := a.machines[n.Node]
	taken := make([]bool, m.Limits.ENIs)
	for _, other := range m.enis {
		if other.Index >= 0 {
			taken[other.Index] = true
		}
	}
	for i, is := range taken {
		if is {
			continue
		}
		n.Index = i
		if err := a.plug(n); err != nil {
			n.Index = -1
			return fail(cloud.ErrUnavailable, n.ID, "%v", err)
		}
		a.changed(n)
		return nil
	}
	return fail(cloud.ErrLimit, m.Name, "the instance may have %d ENIs", m.Limits.ENIs)
}

// fill puts the ENI's first addresses on it. Of each family that is asked for
// there is one at least. Single addresses in the place of blocks may soon be all that
// the ENI may have.
func (a *Account) fill(n *nic, c cloud.Create) error {
	if n.Ready {
		return nil
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		want := c.V4
		if f == eni.IPv6 {
			want = c.V6
		}
		_, err := a.put(n, f, want-n.count(f))
		fewer := errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrLimit) && size(a.machines[n.Node].Limits, f) > 1
		if err != nil && (n.count(f) == 0 || !fewer) {
			return err
		}
	}
	n.Ready = true
	return nil
}
