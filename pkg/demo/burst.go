package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
)

// The burst of sources/cns-watch-pods.md: 35 pods come to the one that is there,
// and B*ceil(mf + 36/B) is 48.
const (
	burstPods = 35
	burstPool = 48
	burstTime = 40 * time.Second // more than a node needs
)

// outcome is what the burst was like on a node.
type outcome struct {
	failed []error // ADDs
	calls  []call
	last   time.Duration // until the last pod had its address
	target int
}

// burst starts 35 more pods on each node at once.
func (d *demo) burst(ctx context.Context) error {
	d.title("Burst: %d more pods on each node, all at once; %d addresses are free, so the others wait", burstPods, perENI-1)
	var all []*pod
	for _, n := range d.nodes {
		pods, err := d.newPods(n, burstPods)
		if err != nil {
			return err
		}
		pods[burstPods-1].mapped, pods[burstPods-2].limits = true, true
		all = append(all, pods...)
	}
	times, since, sinceBoot := watchNodes(ctx, d.nodes), time.Now(), nodecache.SinceBoot()
	outcomes := map[*labNode]*outcome{}
	for _, n := range d.nodes {
		outcomes[n] = &outcome{}
	}
	d.addAll(ctx, all, outcomes)
	err := d.waitForPools(ctx, outcomes)
	order := times.end()
	if err != nil {
		return err
	}
	for n, o := range outcomes {
		state, err := n.nodeState(ctx)
		if err != nil {
			return err
		}
		o.calls, o.last, o.target = d.cloud.changesOf(n.name, since), lastServed(state, sinceBoot), n.status().Target
	}
	d.say("")
	d.table(times.print)
	d.say("")
	d.table(func(w io.Writer) { d.printComparison(w, outcomes) })
	if order != nil {
		return order
	}
	d.say("No pod got an address of a later ENI while an earlier one had a free one.")
	return checkOutcomes(outcomes[d.nodes[0]], outcomes[d.nodes[1]])
}

// addAll starts all pods at the same moment and notes which could not be.
func (d *demo) addAll(ctx context.Context, pods []*pod, outcomes map[*labNode]*outcome) {
	var adds sync.WaitGroup
	var mu sync.Mutex
	for _, p := range pods {
		adds.Go(func() {
			if err := d.runtime.attach(ctx, p); err != nil {
				mu.Lock()
				outcomes[p.on].failed = append(outcomes[p.on].failed, err)
				mu.Unlock()
			}
		})
	}
	adds.Wait()
}

// waitForPools waits until the pools are as large as the burst needs. Where an ADD failed that
// never happens.
func (d *demo) waitForPools(ctx context.Context, outcomes map[*labNode]*outcome) error {
	for _, n := range d.nodes {
		if len(outcomes[n].failed) > 0 {
			continue
		}
		if err := d.waitForPool(ctx, n, burstPool, burstTime); err != nil {
			return err
		}
	}
	return nil
}

// printComparison prints the two strategies side by side.
func (d *demo) printComparison(w io.Writer, outcomes map[*labNode]*outcome) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what string, cell func(*labNode, *outcome) string) {
		fmt.Fprintf(t, "%s\t", what)
		for _, n := range d.nodes {
			fmt.Fprintf(t, "%s\t", cell(n, outcomes[n]))
		}
		fmt.Fprintln(t)
	}
	row("", func(n *labNode, _ *outcome) string { return n.name + " " + n.strategy })
	row("pool", func(_ *labNode, o *outcome) string { return fmt.Sprintf("%d -> %d", perENI, o.target) })
	row("cloud calls", func(_ *labNode, o *outcome) string { return fmt.Sprint(len(o.calls)) })
	row("rounds of calls", func(_ *labNode, o *outcome) string { return fmt.Sprint(countRounds(o.calls)) })
	row("last pod served after", func(_ *labNode, o *outcome) string { return fmt.Sprintf("%.1f s", o.last.Seconds()) })
	row("failed ADDs", func(_ *labNode, o *outcome) string { return fmt.Sprint(len(o.failed)) })
	t.Flush()
}

// checkOutcomes holds the outcome against what sources/cns-watch-pods.md promises.
func checkOutcomes(equation, reactive *outcome) error {
	errs := append(equation.failed, reactive.failed...)
	if equation.target != burstPool {
		errs = append(errs, fmt.Errorf("the equation's target is %d, want %d", equation.target, burstPool))
	}
	if n := countRounds(equation.calls); n != 1 {
		errs = append(errs, fmt.Errorf("the equation took %d rounds of cloud calls, want 1", n))
	}
	if n := countRounds(reactive.calls); n < 2 {
		errs = append(errs, fmt.Errorf("one batch at a time took %d rounds of cloud calls, want more than 1", n))
	}
	return errors.Join(errs...)
}
