package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// cloudDefaults are what a cloud does unless a flag says otherwise.
type cloudDefaults struct {
	reserved int // addresses kept of a subnet: network and broadcast, on aws also router, DNS and one more
	quota    int // ENIs, of a VPC on baidu and of a region on aws
}

func defaultsOf(cloud string) (cloudDefaults, bool) {
	d, found := map[string]cloudDefaults{"aws": {5, 5000}, "baidu": {2, 500}}[cloud]
	return d, found
}

func plannedClouds() []string { return []string{"aws", "baidu"} }

// planned is one answer: a machine with one density of pods.
type planned struct {
	Cloud     string `json:"cloud"`
	Reserved  int    `json:"reservedPerSubnet"`
	Quota     int    `json:"eniQuota"`
	Machine   string `json:"machine"`
	MaxENIs   int    `json:"maxENIs"`
	IPsPerENI int    `json:"ipsPerENI"`
	NodeMost  int    `json:"maxPodsOfMachine"`
	Prefixes  bool   `json:"prefixes,omitempty"`
	capacity.Plan
}

// plans answers for each machine and density, in order of names and numbers.
func (f *planFlags) plans() ([]planned, error) {
	if err := f.checkNumbers(); err != nil {
		return nil, err
	}
	machines, err := f.machines()
	if err != nil {
		return nil, err
	}
	f.settleCloud()
	subnets, err := f.parseSubnets()
	if err != nil {
		return nil, err
	}
	var list []planned
	for _, m := range machines {
		densities, err := f.densities(m)
		if err != nil {
			return nil, err
		}
		for _, pods := range densities {
			p, err := capacity.Make(capacity.Input{
				Subnets: subnets, Zones: f.zones, Machine: m.Machine, MaxPods: pods,
				Quota: f.quota, UsedENIs: f.usedENIs, Mix: f.mix, Reserved: f.reserved, Wish: f.wish,
			})
			if err != nil {
				return nil, err
			}
			list = append(list, planned{f.cloud, f.reserved, f.quota, m.name, m.ENIs, m.V4, m.Pods(), f.prefixes, p})
		}
	}
	return list, nil
}

// checkNumbers checks numbers that mean the same with all machines, and sets those
// that the cloud decides.
func (f *planFlags) checkNumbers() error {
	if err := errors.Join(f.machineFlags.checkNumbers(),
		cli.AtLeast("reserved", f.reserved, 0), f.least("nodes", f.wish.Nodes, 1), f.least("pods", f.wish.Pods, 1),
		cli.AtLeast("eni-quota", f.quota, 0), cli.AtLeast("enis-used", f.usedENIs, 0)); err != nil {
		return cli.FirstLine(err)
	}
	if len(f.subnets) == 0 && f.wish == (capacity.Wish{}) {
		return errors.New("--subnet: give at least one, or wish for --nodes or --pods")
	}
	return nil
}

// parseSubnets reads the subnets and what flags say of them.
func (f *planFlags) parseSubnets() ([]capacity.Subnet, error) {
	list, err := f.subnetFlags.parse()
	if err != nil {
		return nil, err
	}
	if err := f.setExclusive(list); err != nil {
		return nil, err
	}
	return list, f.checkZones(list)
}

func (f *planFlags) setExclusive(list []capacity.Subnet) error {
	for _, id := range f.exclusive {
		s := find(list, id)
		if s == nil {
			return fmt.Errorf("--exclusive %s: there is no --subnet %s", id, id)
		}
		s.Exclusive = true
	}
	return nil
}

func (f *planFlags) checkZones(list []capacity.Subnet) error {
	for _, s := range list {
		if f.given("zone") && !slices.Contains(f.zones, s.Zone) {
			return fmt.Errorf("--subnet %s: its zone %q is none of --zone %s", s.ID, s.Zone, strings.Join(f.zones, ","))
		}
	}
	return nil
}

// settleCloud chooses the cloud if neither a flag nor a type does, and what the cloud
// decides.
func (f *planFlags) settleCloud() {
	asGiven := len(f.types) == 0 && !f.sizes()
	switch {
	case f.cloud != "":
	case !asGiven:
		f.cloud = "baidu"
	case f.prefixes:
		f.cloud = "aws"
	}
	defaults, known := defaultsOf(f.cloud)
	if !known {
		defaults.reserved = leastKept
	}
	if !f.given("reserved") {
		f.reserved = defaults.reserved
	}
	if !f.given("eni-quota") {
		f.quota = defaults.quota
	}
}

// leastKept are the addresses that every cloud keeps of a subnet: network and broadcast.
const leastKept = 2

// densities returns the max-pods to plan with.
func (f *planFlags) densities(m machine) ([]int, error) {
	if len(f.maxPods) == 0 {
		return []int{min(110, m.Pods())}, nil
	}
	set := map[int]bool{}
	for _, n := range f.maxPods {
		switch {
		case n < 1:
			return nil, fmt.Errorf("--max-pods %d: must be at least 1", n)
		case n > m.Pods():
			return nil, fmt.Errorf("--max-pods %d: a node carries at most %d (%s)", n, m.Pods(), m)
		}
		set[n] = true
	}
	return slices.Sorted(maps.Keys(set)), nil
}
