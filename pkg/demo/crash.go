package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// With six more pods the first node needs one more ENI: B*ceil(mf + 42/B) is 64, by
// sources/cns-scaling-equation.md.
const (
	morePods  = 6
	crashPool = 64
	downTime  = time.Second
)

// crash kills an agent in the middle of its work and starts it again.
func (d *demo) crash(ctx context.Context) error {
	n := d.nodes[0]
	d.title("%s's agent is killed while it makes an ENI, and started again a second later; a pod there is probed all the time", n.name)
	pods, err := d.newPods(n, morePods+1)
	if err != nil {
		return err
	}
	probes := d.keepProbing(d.podsOf(d.nodes[1])[0], d.podsOf(n)[0])
	err = d.killAndRestart(ctx, n, pods)
	answered, gap, broken := probes()
	if err = errors.Join(err, broken); err != nil {
		return err
	}
	d.say("%d probes, each answered; the longest time between two answers was %.0f ms.", answered, gap.Seconds()*1000)
	return nil
}

// killAndRestart kills the node's agent while it makes an ENI for the pods, starts the last of
// the pods while there is no agent, then starts the agent again and waits until it has finished
// that ENI.
func (d *demo) killAndRestart(ctx context.Context, n *labNode, pods []*pod) error {
	removals, err := watchRemovals(n.ns)
	if err != nil {
		return err
	}
	defer removals.close()
	adds := make(chan error, 1)
	go func() { adds <- d.attach(ctx, pods[:morePods]...) }()
	half, err := d.halfMade(ctx, n)
	if err == nil {
		n.agent.kill()
	}
	// Also after an error: the ADDs must have ended before removeAll deletes their pods.
	if err = errors.Join(err, <-adds); err != nil {
		return err
	}
	d.now(n, "KILLED  %s is made and not attached yet", half)
	down := time.Now()
	last := pods[morePods]
	if err := d.attach(ctx, last); err != nil {
		return err
	}
	d.now(n, "without an agent %s has %s after %.0f ms, from the node cache", last.name, last.addr, time.Since(down).Seconds()*1000)
	select {
	case <-time.After(downTime - time.Since(down)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d.now(n, "STARTED again")
	if err := d.startAgent(n); err != nil {
		return err
	}
	if err := d.waitForPool(ctx, n, crashPool, startTime); err != nil {
		return err
	}
	return d.checkResumed(n, half, removals)
}

// halfMade waits until the cloud has made an ENI for the node that is not attached yet.
func (d *demo) halfMade(ctx context.Context, n *labNode) (id string, err error) {
	err = waitUntil(ctx, startTime, n.name+" asks for an ENI", func() bool {
		list := d.vpc.Account.Snapshot().Nodes[n.name]
		last := list[len(list)-1]
		id = last.ID
		return last.Index < 0
	})
	return id, err
}

// checkResumed checks that the new agent went on where the old one had stopped: it finished the
// same ENI, and removed nothing from the kernel to build it again.
func (d *demo) checkResumed(n *labNode, half string, removals *removals) error {
	list := d.vpc.Account.Snapshot().Nodes[n.name]
	if len(list) != maxENIs || list[maxENIs-1].ID != half || list[maxENIs-1].Index < 0 {
		return fmt.Errorf("%s has the ENIs %v, want %d and %s as the last", n.name, eniNames(list), maxENIs, half)
	}
	if removed := removals.allRemoved(); len(removed) > 0 {
		return fmt.Errorf("the kernel of %s lost %v", n.name, removed)
	}
	if repairs := n.agent.entriesOf("kernel repaired"); len(repairs) > 0 {
		return fmt.Errorf("the new agent of %s found the kernel wrong: %s", n.name, repairs[0].line())
	}
	d.say("The new agent finished the ENI that the old one had begun. No link, route or rule was removed meanwhile.")
	return nil
}

func eniNames(list []cloud.Interface) []string {
	var ids []string
	for _, nic := range list {
		ids = append(ids, nic.ID)
	}
	return ids
}

// probeEvery is the time between two probes of a pod.
const probeEvery = 10 * time.Millisecond

// keepProbing probes a pod from another until the returned function is called,
// which tells how many answers there were and the longest time between two.
func (d *demo) keepProbing(from, to *pod) (end func() (int, time.Duration, error)) {
	stop := make(chan struct{})
	var work sync.WaitGroup
	var answered int
	var gap time.Duration
	var broken error
	work.Go(func() {
		for last := time.Now(); broken == nil; answered++ {
			select {
			case <-stop:
				return
			case <-time.After(probeEvery):
			}
			if _, _, err := probe(from.ns, netip.AddrPortFrom(to.addr, podPort)); err != nil {
				broken = fmt.Errorf("%s did not answer %s: %w", to.name, from.name, err)
				return
			}
			gap, last = max(gap, time.Since(last)), time.Now()
		}
	})
	return func() (int, time.Duration, error) {
		close(stop)
		work.Wait()
		return answered, gap, broken
	}
}
