package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// writers is how many requests of this process that make nodes and pods are under way at once.
const writers = 16

// bound is when the last of nodes that come at once has its addresses, at the soonest: each needs one call.
func (s sizes) bound(nodes int) time.Duration {
	b := s.buckets()[sim.ActAssign]
	burst, each := b.Burst*share/100, b.Every*100/share
	return time.Duration(max(0, nodes-burst))*each + latencies[sim.ActAssign].Base
}

// measureAtOnce lets the agents of all nodes begin at once, whose pods are there already.
func measureAtOnce(ctx context.Context, r *report) (err error) {
	b, err := newBed(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r.progress("%d nodes with %d pods each: making their objects", r.atOnce, r.podsPerNode())
	if err := b.inTurn(ctx, r.atOnce, func(i int) error {
		n, err := b.addNode(ctx, i)
		if err == nil {
			err = b.bindPods(ctx, n, r.podsPerNode())
		}
		return err
	}); err != nil {
		return err
	}
	if _, err := b.startOperator(); err != nil {
		return err
	}
	if _, err := b.awaitLeader(); err != nil {
		return err
	}
	before := b.account.Calls()
	began := time.Now()
	for _, n := range b.all() {
		n.start()
	}
	r.progress("%d agents begin", r.atOnce)
	o, err := b.awaitPods(ctx, began, r.bound(r.atOnce))
	if err != nil {
		return err
	}
	least := r.bound(r.atOnce)
	r.add(fmt.Sprintf("%d nodes at once, their %d pods at once: until all pods have addresses", r.atOnce, r.atOnce*r.podsPerNode()),
		seconds(o.last), fmt.Sprintf("%s x 1.1 = %s", seconds(least), seconds(least*11/10)), o.last <= least*11/10)
	r.addShown("ratio to the bound", fmt.Sprintf("%.2f", o.last.Seconds()/least.Seconds()))
	r.addShown("of that, from the first address to the last: what the queue takes", seconds(o.last-o.first))
	again := o.callsAtFirst - before[sim.ActAssign] - r.atOnce
	r.add("calls for nodes that had addresses, before the last node had its first", fmt.Sprint(max(0, again)), "0", again <= 0)
	r.atOnceCalls, r.atOnceTook = callsSince(b.account.Calls(), before), o.last
	r.addShown("its calls", describeCalls(r.atOnceCalls))
	return nil
}

// inTurn does something for each number, several at once.
func (b *bed) inTurn(ctx context.Context, count int, do func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range count {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return do(i) })
	}
	return g.Wait()
}

// outcome is how the pods of all nodes got their addresses, from a beginning on.
type outcome struct {
	first        time.Duration // until the first pod had its address
	last         time.Duration // until the last one had
	lastFirst    time.Duration // until the last node had its first
	callsAtFirst int           // that had assigned addresses by then
}

// awaitPods waits until all pods that are to come have addresses.
func (b *bed) awaitPods(ctx context.Context, began time.Time, least time.Duration) (o outcome, err error) {
	limit := began.Add(3*least + 10*time.Minute)
	for next := time.Now(); ; {
		o = outcome{}
		missing, served, pods := 0, 0, 0
		for _, n := range b.all() {
			t, has := n.result()
			served, pods = served+has, pods+t.pods
			if has < t.pods || t.pods == 0 {
				missing++
				continue
			}
			o.last = max(o.last, t.last.Sub(began))
			if first := t.first.Sub(began); o.first == 0 || first < o.first {
				o.first = first
			}
			if first := t.first.Sub(began); first > o.lastFirst {
				o.lastFirst, o.callsAtFirst = first, t.calls
			}
		}
		switch {
		case missing == 0:
			return o, b.report.wrong()
		case time.Now().After(limit):
			return o, errors.Join(fmt.Errorf("%d of %d pods have no address after %s", pods-served, pods, time.Since(began).Round(time.Second)), b.report.wrong(), b.operatorsEnd())
		case time.Now().After(next):
			b.report.progress("%s: %d of %d pods have addresses, %d nodes wait, %d calls; of the objects %s", time.Since(began).Round(time.Second), served, pods, missing, b.account.Calls()[sim.ActAssign], b.countObjects())
			next = time.Now().Add(15 * time.Second)
		}
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// countObjects tells how far the NodeNetworks are.
func (b *bed) countObjects() string {
	made, described, ask := 0, 0, 0
	for _, n := range b.all() {
		is, _ := n.cluster.Object().Newest()
		if is.Version != "" {
			made++
		}
		if len(is.Status.ENIs) > 0 {
			described++
		}
		if is.Spec.Slots > 0 {
			ask++
		}
	}
	return fmt.Sprintf("%d are made, %d described, %d ask for slots", made, described, ask)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// seconds writes a time as people compare it.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
}
