package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/pkg/topology/fit"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// planned is one answer: an instance with one number of max-pods.
type planned struct {
	Cloud     string `json:"cloud"`
	Reserved  int    `json:"reservedPerSubnet"`
	Quota     int    `json:"eniQuota"`
	Used      int    `json:"enisUsed,omitempty"` // of the quota, by others
	Instance  string `json:"machine"`
	MaxENIs   int    `json:"maxENIs"`
	IPsPerENI int    `json:"ipsPerENI"`
	NodeMost  int    `json:"maxPodsOfMachine"` // that the instance can carry
	Prefixes  bool   `json:"prefixes,omitempty"`
	Places    int    `json:"topologyPlaces,omitempty"` // kept for pods of topologies
	KeptENIs  int    `json:"topologyENIs,omitempty"`   // that those are
	capacity.Plan
	Topologies *fit.Plan `json:"topologyPlan,omitempty"` // the same whatever max-pods is
	Operator   *start    `json:"operator,omitempty"`
}

// isMissed tells whether something that is needed does not fit.
func (p planned) isMissed() bool {
	return p.Answer != nil && !p.Answer.Met || p.Topologies != nil && !p.Topologies.Met
}

// makePlans returns an answer for each instance and each number of max-pods, in order of names and
// numbers.
func (f *commandFlags) makePlans() ([]planned, error) {
	if err := f.checkNumbers(); err != nil {
		return nil, err
	}
	instances, err := f.Instances()
	if err != nil {
		return nil, err
	}
	f.settleCloud() // the instances may have told the cloud, which tells what a subnet has
	subnets, err := f.parseSubnets()
	if err != nil {
		return nil, err
	}
	var list []planned
	for _, instance := range instances {
		plans, err := f.plansFor(instance, subnets)
		if err != nil {
			return nil, err
		}
		list = append(list, plans...)
	}
	return list, nil
}

// plansFor returns an answer for each number of max-pods of an instance.
func (f *commandFlags) plansFor(instance account.Instance, subnets []capacity.Subnet) (list []planned, err error) {
	node, err := f.keepPlaces(instance)
	if err != nil {
		return nil, err
	}
	densities, err := f.podDensities(node)
	if err != nil {
		return nil, err
	}
	topologies, err := f.fitTopologies(node, subnets)
	if err != nil {
		return nil, err
	}
	left, notes := f.leftForNodes(subnets, topologies)
	for _, pods := range densities {
		p, err := capacity.Make(capacity.Input{
			Subnets: left, Zones: f.zones, Instance: node.general, MaxPods: pods,
			Quota: f.quota, UsedENIs: f.usedENIs, KeptENIs: node.enis, Places: node.anywhere(), Mix: f.mix, Reserved: f.Reserved, Need: f.need,
		})
		if err != nil {
			return nil, err
		}
		p.Notes = append(p.Notes, notes...)
		started, err := f.startAll(node, p.MaxPods)
		if err != nil {
			return nil, err
		}
		list = append(list, planned{f.Cloud, f.Reserved, f.quota, f.usedENIs, node.Name, node.ENIs, node.V4, node.most, f.Prefixes, node.places, node.enis, p, topologies, started})
	}
	return list, nil
}

// checkNumbers checks the numbers whose bounds are the same for all instances.
func (f *commandFlags) checkNumbers() error {
	if err := errors.Join(f.InstanceFlags.CheckNumbers(),
		cli.AtLeast("reserved", f.Reserved, 0), f.AtLeast("nodes", f.need.Nodes, 1), f.AtLeast("pods", f.need.Pods, 1),
		cli.AtLeast("eni-quota", f.quota, 0), cli.AtLeast("enis-used", f.usedENIs, 0)); err != nil {
		return cli.FirstLine(err)
	}
	if len(f.Subnets) == 0 && len(f.objects.Subnets) == 0 && f.need == (capacity.Need{}) {
		return errors.New("--subnet: give at least one, or --nodes or --pods")
	}
	return nil
}

// parseSubnets reads the subnets and what flags say of them.
func (f *commandFlags) parseSubnets() ([]capacity.Subnet, error) {
	list, err := f.SubnetFlags.Parse()
	if err != nil {
		return nil, err
	}
	if list, err = f.addObjects(list); err != nil {
		return nil, err
	}
	if err := f.setExclusive(list); err != nil {
		return nil, err
	}
	return list, f.checkZones(list)
}

func (f *commandFlags) setExclusive(list []capacity.Subnet) error {
	for _, id := range f.exclusive {
		s := account.FindSubnet(list, id)
		if s == nil {
			return fmt.Errorf("--exclusive %s: there is no --subnet %s", id, id)
		}
		s.Exclusive = true
	}
	return nil
}

func (f *commandFlags) checkZones(list []capacity.Subnet) error {
	for _, s := range list {
		if f.Given("zone") && !slices.Contains(f.zones, s.Zone) {
			return fmt.Errorf("--subnet %s: its zone %q is none of --zone %s", s.ID, s.Zone, strings.Join(f.zones, ","))
		}
	}
	return nil
}

// settleCloud sets the cloud if neither --cloud nor a type does, and the defaults of flags that
// depend on it.
func (f *commandFlags) settleCloud() {
	onlyCounts := len(f.Types) == 0 && !f.SizeGiven()
	switch {
	case f.Cloud != "":
	case !onlyCounts: // what is typed by size, or as a type that no table of AWS has, is Baidu's
		f.Cloud = "baidu"
	case f.Prefixes:
		f.Cloud = "aws"
	}
	defaults, known := account.DefaultsOf(f.Cloud)
	if !known {
		defaults.Reserved = leastKept
	}
	if !f.Given("reserved") {
		f.Reserved = defaults.Reserved
	}
	if !f.Given("eni-quota") {
		f.quota = defaults.Quota
	}
}

// leastKept are the addresses that every cloud keeps of a subnet: network and broadcast.
const leastKept = 2

// podDensities returns the max-pods to plan with.
func (f *commandFlags) podDensities(n keptNode) ([]int, error) {
	if len(f.maxPods) == 0 {
		return []int{min(110, n.most)}, nil
	}
	set := map[int]bool{}
	for _, pods := range f.maxPods {
		switch {
		case pods < 1:
			return nil, fmt.Errorf("--max-pods %d: must be at least 1", pods)
		case pods > n.most:
			return nil, fmt.Errorf("--max-pods %d: a node carries at most %d (%s)", pods, n.most, n)
		}
		set[pods] = true
	}
	return slices.Sorted(maps.Keys(set)), nil
}
