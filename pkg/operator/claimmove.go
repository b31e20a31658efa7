package operator

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
)

// movesFacts returns what moves in one call go by.
func (t *term) movesFacts(now time.Duration) claims.Moves {
	m := claims.Moves{Now: now, Described: t.looks.begun, Fence: t.o.Lease.Fence}
	if !t.o.Region.Does().Moves {
		return m
	}
	m.Reserved = map[string][]netip.Prefix{}
	for id, s := range t.subnets {
		if t.claiming.prunes || s.object == nil || s.object.Spec.Use != string(placement.Exclusive) || s.kept.unnamed && !s.kept.compared {
			continue // others may be given the address, or nobody knows what is reserved
		}
		if list, err := s.reservedRanges(); err == nil {
			m.Reserved[id] = list
		}
	}
	return m
}

// reservedRanges returns the ranges of a subnet that are reserved in the cloud as far as anybody here knows, and those that are to be.
func (s *subnet) reservedRanges() ([]netip.Prefix, error) {
	list, err := wantedRanges(s)
	for _, is := range s.kept.ranges {
		list = append(list, is.Range)
	}
	for _, is := range s.object.Status.Reserved { // what a leader before has listed
		p, wrong := netip.ParsePrefix(is.CIDR)
		if list = append(list, p); wrong != nil {
			err = wrong
		}
	}
	return list, err
}

// writeClaim writes a claim's status. An object in which the API server does not keep to which ENI a call goes, since its kind is older than this
// operator, is moved by two calls.
func (t *term) writeClaim(w claims.Write) {
	is := t.claiming.known.Object(w.Addr)
	before, err := is.Status.Read()
	if err != nil {
		return // one that can't be read is no claim
	}
	next := is.DeepCopy()
	next.Status.Write(w.Status)
	next.Status.Message = w.Message
	var kept *crd.AddressClaim
	write := func(ctx context.Context) (is *crd.AddressClaim, err error) {
		if is, err = t.o.Claims.WriteClaim(ctx, next); err == nil {
			kept = is
		}
		return is, err
	}
	t.request("claim "+next.Name, next.Name, write, func(t *term) {
		switch {
		case kept == nil: // nobody knows whether it was written
		case kept.Status.ToInterface != w.Status.ToENI:
			t.claiming.prunes = true
			t.sayOnce("addresses of topologies are moved by two calls in place of one", errOldClaims)
		default:
			t.claiming.known.NoteWritten(w.Addr, before, w.Status)
		}
	})
}

// errOldClaims is what people have to mend.
var errOldClaims = errors.New("the API server does not keep status.toInterface of AddressClaims: apply conf/kubernetes/topologies/crds.yaml of this release")

// movable returns those of the addresses that one call may move now: the node that gets them keeps them for their pods, and the node that has them
// has accepted that they go, with nothing under way for it that could tell otherwise.
func (t *term) movable(to order.Status, from claims.Move) []netip.Addr {
	if from.ENI == "" {
		return nil
	}
	giver := t.members[from.Node]
	switch {
	case giver == nil || !giver.isReady() || giver.isGoing() || giver.view.Status.Mode != order.Operator || order.IsBehind(giver.view):
		return nil
	case giver.writing || len(giver.deeds) > 0 || giver.jobs[from.ENI] != nil:
		t.claiming.changed = true // it is asked again when that has ended
		return nil
	}
	if _, unsure := giver.unsure[from.ENI]; unsure {
		return nil
	}
	free := giver.term.Takeable(giver.view, from.ENI, from.Addrs)
	return slices.DeleteFunc(bringable(to, from.Addrs), func(a netip.Addr) bool { return !slices.Contains(free, netip.PrefixFrom(a, a.BitLen())) })
}

// endMove takes in how a call has ended that was to move addresses in one.
func (t *term) endMove(j *job, out outcome, now order.Moment) {
	known := t.claiming.known
	doubt := errors.Is(out.err, cloud.ErrUnknown)
	known.NoteMoved(j.bring, func(a netip.Addr) bool { return doubt && !slices.Contains(out.addrs, a) }, now.Mono)
	if isOfAddresses(out.err) {
		t.o.Log.Warn("the cloud does not move addresses of topologies in one call; they are moved by two", "node", j.Node, "eni", j.ENI, "from", j.from.ENI, "addresses", j.bring, "error", out.err)
		for _, a := range j.bring {
			known.NoteUnmovable(a, now.Mono)
		}
	}
	giver := t.members[j.from.Node]
	if giver == nil || giver.network == nil {
		return
	}
	t.dirty[j.from.Node] = true
	if doubt {
		giver.unsure[j.from.ENI] = now.Mono // a describe tells what it has left
	}
	if gone := slices.Clone(out.addrs); len(gone) > 0 {
		giver.deeds = append(giver.deeds, func(t *order.Term, v order.View, now order.Moment) order.Status {
			return t.Unassigned(v, now, prefixesOf(v.Status.Limits, gone)...)
		})
	}
}

// describeForLate has everything described when no late call can take effect any more: then claims go on that wait for that.
func (t *term) describeForLate(at, now time.Duration) {
	if at > now {
		t.claiming.next = min(t.claiming.next, at)
	} else if !t.looks.under {
		t.looks.all = min(t.looks.all, now)
	}
}
