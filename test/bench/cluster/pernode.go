package main

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/simulate"
)

// measurePerNode plays the work of the nodes that begin at once in virtual time, where each agent calls the cloud itself.
func measurePerNode(ctx context.Context, r *report) error {
	rates := simulate.EC2()
	w := simulate.World{Limits: limits, MaxPods: maxPods, Mutating: rates.Mutating, Describing: rates.Describing, Driver: rates.Driver, Buckets: rates.Buckets,
		Subnets: []simulate.Subnet{{ID: subnet, CIDR: netip.MustParsePrefix("10.0.0.0/12"), Reserved: 5}}, Wait: 5 * time.Second, Seed: 1,
		Latency: map[string]sim.Latency{"": latencies[""], "AssignAddresses": latencies[sim.ActAssign], "UnassignAddresses": latencies[sim.ActUnassign],
			"CreateInterface": {Base: 4 * time.Second, Jitter: 3 * time.Second}}}
	load, err := simulate.Generate("start", simulate.Shape{Nodes: r.atOnce, Pods: r.podsPerNode(), Duration: 30 * time.Minute, Seed: 1})
	if err != nil {
		return err
	}
	conf := agentconf.Default()
	conf.Settings.SNAT, conf.ModeSet, conf.Cloud.Describe = false, true, agentconf.SpareDescribe
	r.progress("%d nodes that call the cloud themselves, in virtual time", r.atOnce)
	result, err := simulate.Run(ctx, w, load, simulate.Setting{Name: "per node", Config: conf}, nil)
	if err != nil {
		return err
	}
	s := result.Served
	took, calls, refused := time.Duration(s.Reached), map[string]float64{}, 0
	for _, q := range s.Requests {
		calls[q.Name] += float64(q.Passed)
		refused += q.Refused
	}
	if !s.All {
		r.addShown("per-node mode, the same work: not all pods had addresses after", seconds(took))
	} else {
		r.addShown(fmt.Sprintf("per-node mode, the same %d nodes at once in virtual time, all of the account's rates theirs: until all pods have addresses", r.atOnce), seconds(took))
	}
	r.addShown("its requests, of which the account refused "+strconv.Itoa(refused)+" more", describeCounts(calls, 0))
	if r.atOnceTook > 0 {
		sum, own := 0.0, 0
		for _, n := range calls {
			sum += n
		}
		for _, n := range r.atOnceCalls {
			own += n
		}
		r.addShown("the operator beside it: time, and requests with those refused", strings.Join([]string{
			fmt.Sprintf("%.2fx the time", r.atOnceTook.Seconds()/took.Seconds()), fmt.Sprintf("%.2fx the requests", float64(own)/(sum+float64(refused)))}, ", "))
	}
	return nil
}
