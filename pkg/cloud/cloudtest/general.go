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

func actsForOneNode(node *node) {
	iface := node.eniWith(1)
	before := node.settledENIs()
	theirs, err := node.Other.Interfaces(node.ctx)
	node.must(err)
	if _, ok := findIn(theirs, func(o cloud.Interface) bool { return o.ID == iface.ID }); ok {
		node.Error("the other node is shown an ENI that it does not have")
	}
	_, err = node.Other.AssignAddresses(node.ctx, iface.ID, node.firstFamily(), 1)
	node.checkKind(err, cloud.ErrNotFound)
	node.must(node.Other.UnassignAddresses(node.ctx, iface.ID, iface.Addresses))
	// Of another node's own ENI a cloud may show nothing: what does not exist is fine.
	if err := node.Other.DeleteInterface(node.ctx, iface.ID); err != nil || iface.Ours {
		node.checkKind(err, cloud.ErrForbidden)
	}
	node.checkUnchanged(before)
}

func severalGoroutines(node *node) {
	before := node.settledENIs()
	// The primary ENI is one, so only one goroutine may change it; of new ones each has its own.
	var all sync.WaitGroup
	for range max(node.spareENIs(), 1) {
		all.Go(func() {
			iface, err := before[0], error(nil)
			if node.spareENIs() > 0 {
				iface, err = node.Cloud.CreateInterface(node.ctx, node.newCreate(1))
			}
			if err != nil {
				node.Error(err)
				return
			}
			more, err := node.Cloud.AssignAddresses(node.ctx, iface.ID, node.firstFamily(), node.addressesIn(node.firstFamily(), 2))
			if err != nil || len(more) != node.addressesIn(node.firstFamily(), 2) {
				node.Errorf("AssignAddresses = %v, %v", more, err)
				return
			}
			if err := node.Cloud.UnassignAddresses(node.ctx, iface.ID, node.splitUnits(more)[0]); err != nil {
				node.Error(err)
			}
			if node.spareENIs() > 0 {
				err = node.Cloud.DeleteInterface(node.ctx, iface.ID)
			} else {
				err = node.Cloud.UnassignAddresses(node.ctx, iface.ID, more)
			}
			if err != nil {
				node.Error(err)
			}
		})
		all.Go(func() {
			if _, err := node.Cloud.Interfaces(node.ctx); err != nil {
				node.Error(err)
			}
			if _, err := node.Cloud.Subnets(node.ctx); err != nil {
				node.Error(err)
			}
		})
	}
	all.Wait()
	node.checkUnchanged(before)
}

func besidesAnError(node *node) {
	iface := node.eniWith(1)
	count := node.partialCount(node.firstFamily(), node.limits.PerENI(node.firstFamily())-len(ofFamily(iface.Addresses, node.firstFamily())))
	if count == 0 {
		node.Skip("no AssignAddresses is made of two requests here: the endpoint lacks a hook to do half of one")
	}
	node.Inject("AssignAddresses", Partial)
	some, err := node.Cloud.AssignAddresses(node.ctx, iface.ID, node.firstFamily(), count)
	if err == nil || len(some) == 0 {
		node.Fatalf("AssignAddresses = %v, %v; the hook is to make it some with an error", some, err)
	}
	node.checkKind(err, cloud.NodeKinds()...)
	node.checkCarries(iface.ID, union(iface.Addresses, some...))
}

func errorsHaveAKind(node *node) {
	_, err := node.Cloud.AssignAddresses(node.ctx, "eni-of-nobody", node.firstFamily(), 1)
	node.checkKind(err, cloud.ErrNotFound)
	request := node.newCreate(1)
	request.Subnet = "subnet-of-nobody"
	_, err = node.Cloud.CreateInterface(node.ctx, request)
	if node.spareENIs() > 0 {
		node.checkKind(err, cloud.ErrNotFound)
	} else {
		node.checkKind(err, cloud.ErrLimit, cloud.ErrNotFound) // whichever is looked at first
	}
	node.checkKind(node.Cloud.DeleteInterface(node.ctx, node.settledENIs()[0].ID), cloud.ErrForbidden)
	ended, cancel := context.WithCancel(node.ctx)
	cancel()
	for _, call := range node.oneOfEach() {
		node.checkKind(call.do(ended), cloud.ErrUnavailable, cloud.ErrUnknown)
	}
}

func unknownHadEffect(node *node) {
	for _, call := range node.oneOfEach() {
		if !call.mutates {
			continue
		}
		node.Inject(call.method, LostAfterEffect)
		node.checkKind(call.do(node.ctx), cloud.ErrUnknown)
		node.waitForLag()
		if !call.done() {
			node.Errorf("after ErrUnknown Interfaces does not show what %s has done", call.method)
		}
	}
}

func unknownHasEffectLater(node *node) {
	for _, call := range node.oneOfEach() {
		if !call.mutates {
			continue
		}
		node.Inject(call.method, Late)
		node.checkKind(call.do(node.ctx), cloud.ErrUnknown)
		for tries := 0; !call.done(); tries++ {
			if tries == 10_000 {
				node.Fatalf("the effect of %s never came", call.method)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// showsWhatHasBeen changes one unit at a time, so that no state lies between.
func showsWhatHasBeen(node *node) {
	iface := node.eniWith(2)
	now := node.settledENIs()
	been := [][]cloud.Interface{now}
	// It may show any state that has been, also an older one than it has shown before.
	look := func() {
		list, err := node.Cloud.Interfaces(node.ctx)
		node.must(err)
		if !slices.ContainsFunc(been, func(b []cloud.Interface) bool { return diffENIs(b, list) == "" }) {
			node.Fatalf("Interfaces shows what has never been:\n%v\nit has been:\n%v", list, been)
		}
	}
	change := func(addrs []netip.Addr) {
		now = slices.Clone(now)
		at := slices.IndexFunc(now, func(o cloud.Interface) bool { return o.ID == iface.ID })
		now[at].Addresses = addrs
		been = append(been, now)
		for range 3 {
			look()
			time.Sleep(node.Lag / 5)
		}
	}
	addrs := iface.Addresses
	for round := range 6 {
		if round%3 == 2 {
			gone := node.splitUnits(addrs)[0]
			node.must(node.Cloud.UnassignAddresses(node.ctx, iface.ID, gone))
			addrs = withoutAddrs(addrs, gone...)
		} else {
			addrs = union(addrs, node.assignUnits(iface.ID, 1)...)
		}
		change(addrs)
	}
	node.checkUnchanged(now)
}

// call is one call of a method, with arguments that are right.
type call struct {
	method  string
	mutates bool
	do      func(context.Context) error
	done    func() bool // Interfaces shows its effect
}

// oneOfEach returns one call of each method. Where the node's own ENI is the only one there
// can be, none is right that creates or deletes.
func (n *node) oneOfEach() []call {
	iface := n.eniWith(2)
	goes := iface
	if n.spareENIs() > 1 {
		goes = n.createENI(1)
	}
	request := n.newCreate(2)
	shown := func(id string) cloud.Interface { i, _ := n.findENI(id); return i }
	all := []call{
		{method: "Limits", do: func(ctx context.Context) error { _, err := n.Cloud.Limits(ctx); return err }},
		{method: "Interfaces", do: func(ctx context.Context) error { _, err := n.Cloud.Interfaces(ctx); return err }},
		{method: "Subnets", do: func(ctx context.Context) error { _, err := n.Cloud.Subnets(ctx); return err }},
		{"AssignAddresses", true,
			func(ctx context.Context) error {
				_, err := n.Cloud.AssignAddresses(ctx, iface.ID, n.firstFamily(), n.addressesIn(n.firstFamily(), 1))
				return err
			},
			func() bool {
				return len(shown(iface.ID).Addresses) == len(iface.Addresses)+n.addressesIn(n.firstFamily(), 1)
			}},
		{"UnassignAddresses", true,
			func(ctx context.Context) error {
				return n.Cloud.UnassignAddresses(ctx, iface.ID, n.splitUnits(iface.Addresses)[0])
			},
			func() bool { return !slices.Contains(shown(iface.ID).Addresses, iface.Addresses[0]) }},
		{"DeleteInterface", true,
			func(ctx context.Context) error { return n.Cloud.DeleteInterface(ctx, goes.ID) },
			func() bool { return shown(goes.ID).ID == "" }},
		{"CreateInterface", true,
			func(ctx context.Context) error { _, err := n.Cloud.CreateInterface(ctx, request); return err },
			func() bool {
				made, _ := n.byToken(request.Token)
				return made.Index > 0 && len(made.Addresses) == request.V4+request.V6
			}},
	}
	if n.spareENIs() == 0 {
		return all[:5] // up to UnassignAddresses
	}
	return all
}
