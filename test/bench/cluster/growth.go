package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// measureGrowth lets a cluster grow, then looks at it at rest, and ends its operator's leader.
func measureGrowth(ctx context.Context, r *report) (err error) {
	b, err := newBed(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for range 2 {
		if _, err := b.startOperator(); err != nil {
			return err
		}
	}
	leader, err := b.awaitLeader()
	if err != nil {
		return err
	}
	if err := b.growCluster(ctx, leader); err != nil {
		return err
	}
	if err := r.save(); err != nil {
		return err
	}
	if r.isWanted("rest") {
		if err := b.rest(ctx, leader); err != nil {
			return err
		}
	}
	if !r.isWanted("failover") {
		return nil
	}
	if err := r.save(); err != nil {
		return err
	}
	return b.failOver(ctx, leader)
}

// growCluster lets nodes with their pods come over some time.
func (b *bed) growCluster(ctx context.Context, leader *operatorProcess) error {
	r := b.report
	r.progress("%d nodes with %d pods each come in %s", r.nodes, r.podsPerNode(), r.arrive)
	before, err := b.scrape(ctx)
	if err != nil {
		return err
	}
	calls, began := b.account.Calls(), time.Now()
	err = b.inTurn(ctx, r.nodes, func(i int) error {
		wait := time.Until(began.Add(time.Duration(float64(r.arrive) * float64(i) / float64(r.nodes))))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		n, err := b.addNode(ctx, i)
		if err == nil {
			err = b.bindPods(ctx, n, r.podsPerNode())
		}
		if err == nil {
			n.start()
		}
		return err
	})
	if err != nil {
		return err
	}
	arrived := time.Since(began)
	r.progress("all have come after %s", arrived.Round(time.Second))
	// What has come later than it was to has its addresses no sooner.
	least := max(r.bound(r.nodes), r.arrive+latencies[sim.ActAssign].Base)
	o, err := b.awaitPods(ctx, began, least)
	if err != nil {
		return err
	}
	r.add(fmt.Sprintf("%d nodes with %d pods in %s: until all pods have addresses", r.nodes, r.nodes*r.podsPerNode(), r.arrive),
		seconds(o.last), fmt.Sprintf("%s x 1.1 = %s", seconds(least), seconds(least*11/10)), o.last <= least*11/10)
	r.addShown("ratio to the bound", fmt.Sprintf("%.2f", o.last.Seconds()/least.Seconds()))
	r.addShown("the last of them was made after", seconds(arrived))
	r.addShown("its calls", describeCalls(callsSince(b.account.Calls(), calls)))
	return b.usageAfter(ctx, leader, before, time.Since(began))
}

// usageAfter adds what the growth took of the leader and of the API server.
func (b *bed) usageAfter(ctx context.Context, leader *operatorProcess, before traffic, took time.Duration) error {
	r := b.report
	u, err := usageOf(leader.Cmd.Process.Pid)
	if err != nil {
		return err
	}
	r.add("resident memory of the leading operator, the most so far", fmt.Sprintf("%.0f MB", u.most), "600 MB", u.most <= 600)
	r.addShown("its CPU time, of that time", fmt.Sprintf("%s, %.0f %% of a core", seconds(u.cpu), 100*u.cpu.Seconds()/took.Seconds()))
	after, err := b.scrape(ctx)
	if err != nil {
		return err
	}
	moved, slots := after.since(before), 0
	for _, n := range b.all() {
		slots += n.slots()
	}
	all := 0.0
	for _, n := range moved.bytes {
		all += n
	}
	size, err := b.sizeAtRest(ctx)
	if err != nil {
		return err
	}
	each := float64(max(1, slots))
	r.add("bytes of NodeNetworks in the API server, for each of the "+fmt.Sprint(slots)+" slots", fmt.Sprintf("%.0f", size/each), "1000", size/each <= 1000)
	r.add("bytes of NodeNetworks that the API server moved meanwhile, for each slot", fmt.Sprintf("%.0f (requests %.0f, answers %.0f, watches %.0f)",
		all/each, moved.bytes["requests"]/each, moved.bytes["answers"]/each, moved.bytes["watches"]/each), "1000", all/each <= 1000)
	r.addShown("writes of the growth, by kind", describeCounts(moved.writes, 0))
	return nil
}

// sizeAtRest returns the size of all NodeNetworks, as the API server has them in JSON.
func (b *bed) sizeAtRest(ctx context.Context) (float64, error) {
	text, err := b.api.RESTClient().Get().AbsPath("/apis/enipool.io/v1alpha1/" + network).DoRaw(ctx)
	return float64(len(text)), err
}

// slots returns how many addresses the node has.
func (n *node) slots() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == nil {
		return 0
	}
	return len(n.state.Addresses)
}

// rest watches the cluster when nothing happens.
func (b *bed) rest(ctx context.Context, leader *operatorProcess) error {
	r := b.report
	settled := min(time.Minute, r.quiet)
	for end := time.Now().Add(15 * time.Minute); len(b.phases) > 0 && time.Now().Before(end); {
		time.Sleep(time.Second)
	}
	r.progress("nothing happens for %s and then %s", settled, r.quiet)
	if err := pause(ctx, settled); err != nil {
		return err
	}
	was, err := usageOf(leader.Cmd.Process.Pid)
	if err != nil {
		return err
	}
	before, err := b.scrape(ctx)
	if err != nil {
		return err
	}
	calls := b.account.Calls()
	if err := pause(ctx, r.quiet); err != nil {
		return err
	}
	after, err := b.scrape(ctx)
	if err != nil {
		return err
	}
	is, err := usageOf(leader.Cmd.Process.Pid)
	if err != nil {
		return err
	}
	d := after.since(before)
	leases := d.writes["leases"]
	delete(d.writes, "leases")
	sum := 0.0
	for _, n := range d.writes {
		sum += n
	}
	rate := sum / r.quiet.Seconds()
	r.add(fmt.Sprintf("writes a second to the API server, quiet for %s, without leases", r.quiet), fmt.Sprintf("%.3f (%s)", rate, describeCounts(d.writes, r.quiet)), "0.1", rate <= 0.1)
	r.addShown("writes a second of leases, the API server's own among them", fmt.Sprintf("%.2f", leases/r.quiet.Seconds()))
	r.addShown("calls to the cloud meanwhile", describeCalls(callsSince(b.account.Calls(), calls)))
	r.add("resident memory of the leading operator, quiet", fmt.Sprintf("%.0f MB", is.resident), "600 MB", is.resident <= 600)
	r.addShown("CPU of the leading operator, quiet", fmt.Sprintf("%.1f %% of a core", 100*(is.cpu-was.cpu).Seconds()/r.quiet.Seconds()))
	return nil
}
