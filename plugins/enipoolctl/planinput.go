package main

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
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

func clouds() []string { return []string{"aws", "baidu"} }

// most bounds numbers that are typed: more than any cloud has, and sums of it stay
// far from overflow.
const most = 1 << 30

// planned is one answer: a machine with one density of pods.
type planned struct {
	Cloud     string `json:"cloud"`
	Reserved  int    `json:"reservedPerSubnet"`
	Quota     int    `json:"eniQuota"`
	Machine   string `json:"machine"`
	MaxENIs   int    `json:"maxENIs"`
	IPsPerENI int    `json:"ipsPerENI"`
	NodeMost  int    `json:"maxPodsOfMachine"`
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
			list = append(list, planned{f.cloud, f.reserved, f.quota, m.name, m.ENIs, m.V4, m.Pods(), p})
		}
	}
	return list, nil
}

// checkNumbers checks numbers that mean the same with all machines, and sets those
// that the cloud decides.
func (f *planFlags) checkNumbers() error {
	for _, n := range []struct {
		flag         string
		value, least int
	}{
		{"cpus", f.cpus, 1}, {"max-enis", f.maxENIs, 1}, {"ips-per-eni", f.ipsPerENI, 2}, {"reserved", f.reserved, 0},
		{"nodes", f.wish.Nodes, 1}, {"pods", f.wish.Pods, 1}, {"eni-quota", f.quota, 0}, {"enis-used", f.usedENIs, 0},
	} {
		switch {
		case f.given(n.flag) && n.value < n.least:
			return fmt.Errorf("--%s %d: must be at least %d", n.flag, n.value, n.least)
		case n.value > most:
			return fmt.Errorf("--%s %d: must be at most %d", n.flag, n.value, most)
		}
	}
	if len(f.subnets) == 0 && f.wish == (capacity.Wish{}) {
		return errors.New("--subnet: give at least one, or wish for --nodes or --pods")
	}
	return nil
}

// parseSubnets reads --subnet and what other flags say of the subnets.
func (f *planFlags) parseSubnets() ([]capacity.Subnet, error) {
	list := make([]capacity.Subnet, len(f.subnets))
	for i, text := range f.subnets {
		list[i] = spellSubnet(text)
		list[i].Available = -1
		if list[i].ID == "" {
			return nil, fmt.Errorf("--subnet %q: has no ID or CIDR", text)
		}
		if cidr, found := cidrOf(text); found {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil {
				return nil, fmt.Errorf("--subnet %s: %q is no network; write it like 10.0.0.0/24", text, cidr)
			}
			list[i].CIDR = prefix
			if list[i].Available, err = capacity.Usable(prefix, f.reserved); err != nil {
				return nil, fmt.Errorf("--subnet %s: %w", text, err)
			}
		}
		if first := find(list[:i], list[i].ID); first != nil {
			return nil, fmt.Errorf("--subnet %s: %s is given twice", text, first.ID)
		}
	}
	if a, b, found := capacity.Overlap(list); found {
		return nil, fmt.Errorf("--subnet %s overlaps --subnet %s", a.ID, b.ID)
	}
	if err := errors.Join(f.setAvailable(list), f.setExclusive(list), f.checkZones(list)); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(line)
	}
	return list, nil
}

// spellSubnet takes [ID=]CIDR[@ZONE] or ID[@ZONE] apart, without the CIDR.
func spellSubnet(text string) capacity.Subnet {
	name, zone, _ := strings.Cut(text, "@")
	id, _, _ := strings.Cut(name, "=")
	return capacity.Subnet{ID: id, Zone: zone}
}

// cidrOf returns the part that must be a network, if there is one.
func cidrOf(text string) (string, bool) {
	name, _, _ := strings.Cut(text, "@")
	if _, cidr, found := strings.Cut(name, "="); found {
		return cidr, true
	}
	return name, strings.Contains(name, "/")
}

func find(list []capacity.Subnet, id string) *capacity.Subnet {
	i := slices.IndexFunc(list, func(s capacity.Subnet) bool {
		return s.ID == id || s.CIDR.IsValid() && s.CIDR.String() == id
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}

func (f *planFlags) setAvailable(list []capacity.Subnet) error {
	said := map[string]bool{}
	for _, text := range f.available {
		id, count, found := strings.Cut(text, "=")
		if !found {
			if count = id; len(list) != 1 {
				return fmt.Errorf("--available %s: say of which subnet, like %s=%s", text, firstID(list), text)
			}
			id = list[0].ID
		}
		s := find(list, id)
		if s == nil {
			return fmt.Errorf("--available %s: there is no --subnet %s", text, id)
		}
		n, err := strconv.Atoi(count)
		switch {
		case err != nil || n < 0 || n > most:
			return fmt.Errorf("--available %s: %s is no number of addresses", text, count)
		case s.CIDR.IsValid() && n > s.Available:
			return fmt.Errorf("--available %s: %s has only %d, as the cloud keeps %d", text, s.CIDR, s.Available, f.reserved)
		case said[s.ID]:
			return fmt.Errorf("--available %s: said twice of %s", text, s.ID)
		}
		s.Available, said[s.ID] = n, true
	}
	for _, s := range list {
		if s.Available < 0 {
			if _, err := netip.ParseAddr(s.ID); err == nil {
				return fmt.Errorf("--subnet %s: has no mask; write it like %s/24", s.ID, s.ID)
			}
			return fmt.Errorf("--subnet %s: give its network, like %s=10.0.0.0/24, or its free addresses with --available %s=N", s.ID, s.ID, s.ID)
		}
	}
	return nil
}

func firstID(list []capacity.Subnet) string {
	if len(list) == 0 {
		return "ID"
	}
	return list[0].ID
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
