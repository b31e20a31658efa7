package demo

import (
	"context"
	"fmt"
	"time"
)

// startTime is more than an agent needs to have its first addresses.
const startTime = 20 * time.Second

// start starts the cloud and an agent on each node.
func (d *demo) start(ctx context.Context) (err error) {
	d.title("A VPC %s on this machine: router, internet %s, %d nodes with nothing but their primary ENI", vpcRange, internet, len(d.nodes))
	if d.cloud, err = serveAccount(d.vpc); err != nil {
		return err
	}
	d.say("An instance carries %d ENIs of %d addresses. The cloud takes %.1f s to assign addresses and %.1f s to make an ENI.",
		maxENIs, perENI, assignTime.Seconds(), createTime.Seconds())
	d.say("One agent per node, B = 16, minFree = 50%%; by the equation on n1, one batch at a time on n2. Delays are of seconds, not minutes.\n")
	for _, n := range d.nodes {
		if err := n.writeConfig(); err != nil {
			return fmt.Errorf("configure the agent of %s: %w", n.name, err)
		}
		if err := d.startAgent(n); err != nil {
			return err
		}
	}
	for _, n := range d.nodes {
		if err := d.waitForPool(ctx, n, perENI, startTime); err != nil {
			return err
		}
	}
	for _, n := range d.nodes {
		state, err := n.nodeState(ctx)
		if err != nil {
			return err
		}
		d.say("%s: %d addresses ready, routing %s, firewall %s", n.name, len(state.Addresses), state.Settings.Routing, state.Settings.Firewall)
	}
	return nil
}

// waitForPool waits until the node has that number of addresses and its agent wants no other.
func (d *demo) waitForPool(ctx context.Context, n *labNode, addresses int, most time.Duration) error {
	what := fmt.Sprintf("%s has %d addresses and its agent is content", n.name, addresses)
	return waitUntil(ctx, most, what, func() bool { return n.hasSettled(ctx, addresses) })
}

// onePodEach is the T0 of the timelines in sources/cns-watch-pods.md.
func (d *demo) onePodEach(ctx context.Context) error {
	d.title("One pod a node, through libcni, conflist from conf/")
	for _, n := range d.nodes {
		pods, err := d.newPods(n, 1)
		if err != nil {
			return err
		}
		start := time.Now()
		if err := d.attach(ctx, pods...); err != nil {
			return err
		}
		d.say("%s has %s after %.0f ms, from the node cache: nobody was asked", pods[0].name, pods[0].addr, time.Since(start).Seconds()*1000)
	}
	return nil
}
