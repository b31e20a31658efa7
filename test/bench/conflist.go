package main

import "fmt"

// The shipped conflist and the one of releases whose hostPorts and limits were done
// by the reference plugins.
const (
	shippedList = "10-enipool.conflist"
	formerList  = "10-enipool-chain.conflist"
)

// startPods is how many pods with a hostPort and limits start at once.
const startPods = 60

// conflistRow measures what the shipped conflist costs on top of enipool alone.
func (b *bench) conflistRow() error {
	nothing, err := b.conflist("shipped conflist, pod asks for nothing", shippedList, b.node, asksNothing)
	if err != nil {
		return err
	}
	both, former, err := b.bothConflists()
	if err != nil {
		return err
	}
	alone := b.bin.enipool("enipool alone", b.node.cache)
	adds, dels, err := b.rounds("conflist", []contender{alone, nothing, both, former})
	if err != nil {
		return err
	}
	for _, found := range [][]measure{adds, dels} {
		b.report.add(found,
			target{of: found[1], ref: &found[0], want: 1.15},
			target{of: found[2], ref: &found[0], want: 1.6},
			target{of: found[2], ref: &found[3], shown: true})
	}
	return nil
}

// bothConflists are the shipped and the former one with pods that ask for everything.
func (b *bench) bothConflists() (shipped, former contender, err error) {
	if shipped, err = b.conflist("shipped conflist, hostPort and limits", shippedList, b.node, asksBoth); err != nil {
		return shipped, former, err
	}
	former, err = b.conflist("enipool, portmap and bandwidth, hostPort and limits", formerList, b.node, asksBoth)
	return shipped, former, err
}

// conflistBurstRow starts many such pods at once.
func (b *bench) conflistBurstRow() error {
	pods, err := newSpaces(b.unique("both"), startPods)
	if err != nil {
		return err
	}
	shipped, former, err := b.bothConflists()
	if err != nil {
		return err
	}
	rates, fails, err := b.bursts(pods, []contender{shipped, former})
	if err != nil {
		return fmt.Errorf("%d at once: %w", startPods, err)
	}
	b.report.add(append(rates, fails...),
		target{of: rates[0], ref: &rates[1], want: 3, atLeast: true},
		target{of: worst(fails[0]), want: 0})
	return nil
}
