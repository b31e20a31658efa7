package cloudtest

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// general is what the comment of cloud.Cloud says of all methods.
var general = []sentence{
	{"a cloud acts for one node", []Capability{OtherNode}, actsForOneNode},
	{"methods may be called from several goroutines", nil, severalGoroutines},
	{"what a method returns besides an error is true", []Capability{Faults}, besidesAnError},
	{"errors are of type Error and match a kind", []Capability{Guard}, errorsHaveAKind},
	{"after ErrUnknown a call may have had its effect and Interfaces tells", []Capability{Faults}, unknownHadEffect},
	{"after ErrUnknown a call may have its effect a little later", []Capability{Faults}, unknownHasEffectLater},
	{"answers may lag but never show what has never been", nil, showsWhatHasBeen},
}

func actsForOneNode(n *node) {
	i := n.carrier(1)
	before := n.see()
	theirs, err := n.Other.Interfaces(n.ctx)
	n.must(err)
	if _, ok := find(theirs, func(o cloud.Interface) bool { return o.ID == i.ID }); ok {
		n.Error("the other node is shown an ENI that it does not have")
	}
	_, err = n.Other.AssignAddresses(n.ctx, i.ID, n.family(), 1)
	n.is(err, cloud.ErrNotFound)
	n.must(n.Other.UnassignAddresses(n.ctx, i.ID, i.Addresses))
	// Of another node's own ENI a cloud may show nothing: what does not exist is fine.
	if err := n.Other.DeleteInterface(n.ctx, i.ID); err != nil || i.Ours {
		n.is(err, cloud.ErrForbidden)
	}
	n.unchanged(before)
}

func severalGoroutines(n *node) {
	before := n.see()
	var all sync.WaitGroup
	for range max(n.spare(), 1) {
		all.Go(func() {
			i, err := before[0], error(nil)
			if n.spare() > 0 {
				i, err = n.Cloud.CreateInterface(n.ctx, n.want(1))
			}
			if err != nil {
				n.Error(err)
				return
			}
			more, err := n.Cloud.AssignAddresses(n.ctx, i.ID, n.family(), n.some(n.family(), 2))
			if err != nil || len(more) != n.some(n.family(), 2) {
				n.Errorf("AssignAddresses = %v, %v", more, err)
				return
			}
			if err := n.Cloud.UnassignAddresses(n.ctx, i.ID, n.units(more)[0]); err != nil {
				n.Error(err)
			}
			if n.spare() > 0 {
				err = n.Cloud.DeleteInterface(n.ctx, i.ID)
			} else {
				err = n.Cloud.UnassignAddresses(n.ctx, i.ID, more)
			}
			if err != nil {
				n.Error(err)
			}
		})
		all.Go(func() {
			if _, err := n.Cloud.Interfaces(n.ctx); err != nil {
				n.Error(err)
			}
			if _, err := n.Cloud.Subnets(n.ctx); err != nil {
				n.Error(err)
			}
		})
	}
	all.Wait()
	n.unchanged(before)
}

func besidesAnError(n *node) {
	i := n.carrier(1)
	count := n.parts(n.family(), n.limits.PerENI(n.family())-len(ofFamily(i.Addresses, n.family())))
	if count == 0 {
		n.Skip("no AssignAddresses is made of two requests here: the endpoint lacks a hook to do half of one")
	}
	n.Inject("AssignAddresses", Partial)
	some, err := n.Cloud.AssignAddresses(n.ctx, i.ID, n.family(), count)
	if err == nil || len(some) == 0 {
		n.Fatalf("AssignAddresses = %v, %v; the hook is to make it some with an error", some, err)
	}
	n.is(err, cloud.Kinds()...)
	n.carries(i.ID, with(i.Addresses, some...))
}

func errorsHaveAKind(n *node) {
	_, err := n.Cloud.AssignAddresses(n.ctx, "eni-of-nobody", n.family(), 1)
	n.is(err, cloud.ErrNotFound)
	wish := n.want(1)
	wish.Subnet = "subnet-of-nobody"
	_, err = n.Cloud.CreateInterface(n.ctx, wish)
	if n.spare() > 0 {
		n.is(err, cloud.ErrNotFound)
	} else {
		n.is(err, cloud.ErrLimit, cloud.ErrNotFound) // whichever is looked at first
	}
	n.is(n.Cloud.DeleteInterface(n.ctx, n.see()[0].ID), cloud.ErrForbidden)
	ended, cancel := context.WithCancel(n.ctx)
	cancel()
	for _, call := range n.calls() {
		n.is(call.do(ended), cloud.ErrUnavailable, cloud.ErrUnknown)
	}
}

func unknownHadEffect(n *node) {
	for _, call := range n.calls() {
		if !call.mutates {
			continue
		}
		n.Inject(call.method, LostAfterEffect)
		n.is(call.do(n.ctx), cloud.ErrUnknown)
		n.settle()
		if !call.done() {
			n.Errorf("after ErrUnknown Interfaces does not show what %s has done", call.method)
		}
	}
}

func unknownHasEffectLater(n *node) {
	for _, call := range n.calls() {
		if !call.mutates {
			continue
		}
		n.Inject(call.method, Late)
		n.is(call.do(n.ctx), cloud.ErrUnknown)
		for tries := 0; !call.done(); tries++ {
			if tries == 10_000 {
				n.Fatalf("the effect of %s never came", call.method)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// showsWhatHasBeen changes one unit at a time, so that no state lies between.
func showsWhatHasBeen(n *node) {
	i := n.carrier(2)
	now := n.see()
	been := [][]cloud.Interface{now}
	look := func() {
		list, err := n.Cloud.Interfaces(n.ctx)
		n.must(err)
		if !slices.ContainsFunc(been, func(b []cloud.Interface) bool { return diffENIs(b, list) == "" }) {
			n.Fatalf("Interfaces shows what has never been:\n%v\nit has been:\n%v", list, been)
		}
	}
	change := func(addrs []netip.Addr) {
		now = slices.Clone(now)
		at := slices.IndexFunc(now, func(o cloud.Interface) bool { return o.ID == i.ID })
		now[at].Addresses = addrs
		been = append(been, now)
		for range 3 {
			look()
			time.Sleep(n.Lag / 5)
		}
	}
	addrs := i.Addresses
	for round := range 6 {
		if round%3 == 2 {
			gone := n.units(addrs)[0]
			n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, gone))
			addrs = withoutAddrs(addrs, gone...)
		} else {
			addrs = with(addrs, n.assign(i.ID, 1)...)
		}
		change(addrs)
	}
	n.unchanged(now)
}

// call is one call of a method, with arguments that are right.
type call struct {
	method  string
	mutates bool
	do      func(context.Context) error
	done    func() bool // Interfaces shows its effect
}

// calls returns one call of each method. Where the node's own ENI is the only one there
// can be, none is right that creates or deletes.
func (n *node) calls() []call {
	i := n.carrier(2)
	goes := i
	if n.spare() > 1 {
		goes = n.create(1)
	}
	wish := n.want(2)
	shown := func(id string) cloud.Interface { i, _ := n.eni(id); return i }
	all := []call{
		{method: "Limits", do: func(ctx context.Context) error { _, err := n.Cloud.Limits(ctx); return err }},
		{method: "Interfaces", do: func(ctx context.Context) error { _, err := n.Cloud.Interfaces(ctx); return err }},
		{method: "Subnets", do: func(ctx context.Context) error { _, err := n.Cloud.Subnets(ctx); return err }},
		{"AssignAddresses", true,
			func(ctx context.Context) error {
				_, err := n.Cloud.AssignAddresses(ctx, i.ID, n.family(), n.some(n.family(), 1))
				return err
			},
			func() bool { return len(shown(i.ID).Addresses) == len(i.Addresses)+n.some(n.family(), 1) }},
		{"UnassignAddresses", true,
			func(ctx context.Context) error {
				return n.Cloud.UnassignAddresses(ctx, i.ID, n.units(i.Addresses)[0])
			},
			func() bool { return !slices.Contains(shown(i.ID).Addresses, i.Addresses[0]) }},
		{"DeleteInterface", true,
			func(ctx context.Context) error { return n.Cloud.DeleteInterface(ctx, goes.ID) },
			func() bool { return shown(goes.ID).ID == "" }},
		{"CreateInterface", true,
			func(ctx context.Context) error { _, err := n.Cloud.CreateInterface(ctx, wish); return err },
			func() bool {
				made, _ := n.byToken(wish.Token)
				return made.Index > 0 && len(made.Addresses) == wish.V4+wish.V6
			}},
	}
	if n.spare() == 0 {
		return all[:5]
	}
	return all
}
