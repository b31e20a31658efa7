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
func bound(nodes int) time.Duration {
	b := buckets[sim.ActAssign]
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
	o, err := b.awaitPods(ctx, began, bound(r.atOnce))
	if err != nil {
		return err
	}
	least := bound(r.atOnce)
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
	least := max(bound(r.nodes), r.arrive+latencies[sim.ActAssign].Base)
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

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// mostFailover is how long a starving node may wait for the next leader: the lease, settle, and 5 s.
const mostFailover = 30 * time.Second

// failOver kills the leader. A node whose pods wait has come in that moment.
func (b *bed) failOver(ctx context.Context, leader *operatorProcess) error {
	r := b.report
	n, err := b.addNode(ctx, r.nodes)
	if err != nil {
		return err
	}
	if err := b.bindPods(ctx, n, 1); err != nil {
		return err
	}
	began := time.Now()
	leader.Kill()
	n.start()
	r.progress("the leader was killed")
	for {
		if t, served := n.result(); served > 0 {
			took := t.first.Sub(began)
			r.add("from kill -9 of the leading operator until a starving node is served", seconds(took), seconds(mostFailover), took <= mostFailover)
			return nil
		}
		if time.Since(began) > 10*mostFailover {
			return errors.Join(fmt.Errorf("the node is not served %s after its operator was killed", time.Since(began).Round(time.Second)), b.operatorsEnd())
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// seconds writes a time as people compare it.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
}
