package main

import (
	"fmt"
	"net/netip"
)

// The reference plugins' subnets, apart from the VPC's and large enough for
// every row.
var (
	ptpSubnet = netip.MustParsePrefix("10.64.0.0/16")
	sbrSubnet = netip.MustParsePrefix("10.65.0.0/16")
	floorAddr = netip.MustParseAddr("10.66.0.1")
)

// attachRow measures ADD and DEL of one pod on a node with hardly any other.
func (b *bench) attachRow() error {
	ours := b.bin.enipool("enipool", b.node.cache)
	ptp := b.bin.ptp("ptp+host-local", b.temp("host-local"), ptpSubnet)
	sbr := b.bin.ptpSBR(b.temp("host-local-sbr"), sbrSubnet)
	floor := b.bin.floor(floorAddr)
	adds, dels, err := b.rounds("ADD and DEL", []contender{ours, ptp, sbr, floor})
	if err != nil {
		return err
	}
	b.report.add(adds,
		target{of: adds[0], ref: &adds[1], shown: true},
		target{of: adds[0], ref: &adds[2], want: 0.30},
		target{of: adds[0], ref: &adds[3], want: 1.15})
	b.report.add(dels,
		target{of: dels[0], ref: &dels[3], want: 1.3},
		target{of: dels[0], ref: &dels[1], shown: true})
	return nil
}

// rounds lets each contender attach and detach a pod, in turn so that whatever
// else the machine does hits all alike. A first round goes uncounted.
func (b *bench) rounds(what string, list []contender) (adds, dels []measure, err error) {
	pods, err := newSpaces(b.unique("pod"), len(list))
	if err != nil {
		return nil, nil, err
	}
	for _, c := range list {
		adds = append(adds, measure{what: "ADD " + c.name, command: c.add, unit: "ms"})
		dels = append(dels, measure{what: "DEL " + c.name, command: c.del, unit: "ms"})
	}
	for n := range b.runs + 1 {
		b.round(what, n, b.runs)
		for i, c := range list {
			add, err := c.attach(pods[i], n)
			if err != nil {
				return nil, nil, fmt.Errorf("ADD %s: %w", c.name, err)
			}
			del, err := c.detach(pods[i], n)
			if err != nil {
				return nil, nil, fmt.Errorf("DEL %s: %w", c.name, err)
			}
			if n > 0 {
				adds[i].add(add)
				dels[i].add(del)
			}
		}
	}
	return adds, dels, nil
}
