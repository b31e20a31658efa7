package capacity

import (
	"errors"
	"fmt"
	"slices"
)

// Input is what a plan is made of.
type Input struct {
	Subnets  []Subnet
	Zones    []string // zones that nodes are in; those of the subnets are known
	Instance Instance
	MaxPods  int  // of a node
	Quota    int  // ENIs that the VPC may have, 0 for no quota
	UsedENIs int  // of the quota, by others
	KeptENIs int  // of a node, for pods of topologies: they lie in other subnets, and count against the quota
	Places   int  // of a node, on any of its ENIs, for pods of topologies whose addresses lie in other subnets
	Mix      bool // ENIs of a node may lie in different subnets of its zone
	Reserved int  // addresses the cloud keeps of a new subnet
	Need     Need
}

// Plan is what the subnets carry with one density of pods. Its numbers are those
// of the cluster.
type Plan struct {
	MaxPods int `json:"maxPods"`
	Carries
	AtMost  int      `json:"nodesAtMost"`      // if ENIs could be dealt out over a zone's subnets without any loss
	ByIPs   int      `json:"nodesByAddresses"` // if there were no quota
	ByQuota *int     `json:"nodesByQuota"`     // if addresses were no matter; nil without a quota
	Zones   []Zone   `json:"zones"`
	Subnets []InPlan `json:"subnets"`
	Answer  *Answer  `json:"wish,omitempty"`
	Notes   []string `json:"notes"`
}

// Carries is what a subnet, a zone or the cluster carries.
type Carries struct {
	ENIsPerNode int   `json:"enisPerNode"`
	IPsPerNode  int   `json:"ipsPerNode"`
	Available   int   `json:"available"`
	Nodes       int   `json:"nodes"`
	Pods        int   `json:"pods"`
	ENIs        int   `json:"enis"`     // of those nodes
	FullENIs    int   `json:"fullENIs"` // that could be filled completely
	Used        int   `json:"used"`
	Wasted      int   `json:"wasted"` // available, but of no use to these nodes
	WastedShare Share `json:"wastedPercent"`
	Limit       Limit `json:"limit"`
}

// Zone is what the subnets of one zone carry together.
type Zone struct {
	Zone string `json:"zone"`
	Carries
}

// InPlan is what a subnet carries alone.
type InPlan struct {
	Subnet string `json:"subnet"`
	Zone   string `json:"zone"`
	Carries
}

// Limit is what has to grow for more pods.
type Limit string

// The limits that can bind.
const (
	Addresses Limit = "addresses"
	ENIQuota  Limit = "eniQuota"
	MaxPods   Limit = "maxPods"   // all nodes of the need fit
	Exclusive Limit = "exclusive" // the subnet is kept for other pods
	NoSubnet  Limit = "noSubnet"  // the zone has none
)

// Share is in tenths of a percent.
type Share int

func shareOf(part, of int) Share {
	if of == 0 {
		return 0
	}
	return Share((2000*part + of) / (2 * of))
}

func (s Share) String() string { return fmt.Sprintf("%d.%d", s/10, s%10) }

// MarshalJSON writes the number of percent, like 9.1.
func (s Share) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// Make plans. Max-pods above what the instance carries beside places is lowered to that, with a
// note. The order of subnets and zones in the input does not matter.
func Make(in Input) (Plan, error) {
	if err := in.validate(); err != nil {
		return Plan{}, err
	}
	p := Plan{MaxPods: min(in.MaxPods, in.Instance.PodsBeside(in.Places)), Zones: []Zone{}, Subnets: []InPlan{}, Notes: []string{}}
	if p.MaxPods < in.MaxPods {
		p.addNote("max-pods %d is above the %d pods that such a node carries: planned with %d", in.MaxPods, p.MaxPods, p.MaxPods)
	}
	perNode := densityOf(in.Instance, p.MaxPods, in.Places)
	perNode.reserved = in.Reserved
	if perNode.size > 1 {
		p.addNote("prefixes of %d addresses: a node's pods take %d of them; where addresses of others lie scattered in a subnet it has fewer whole ones than counted, unless a range of it is reserved for prefixes",
			perNode.size, perNode.blocks)
	}
	in.Subnets = slices.SortedFunc(slices.Values(in.Subnets), compareSubnets)
	for _, s := range in.Subnets {
		p.Subnets = append(p.Subnets, InPlan{Subnet: s.ID, Zone: s.Zone, Carries: perNode.carriesAlone(s)})
		p.noteSubnet(s, perNode)
	}
	all := allOf(p.addZones(in, perNode))
	p.sumZones(in, perNode, all)
	if in.Need != (Need{}) {
		p.answerNeed(in, perNode, all)
	}
	if p.Limit == ENIQuota { // not where the nodes of the need fit: that others would not is no matter then
		left := quotaLeft(in)
		p.addNote("the addresses are enough for %d nodes with %d ENIs; of a quota of %d there are %d left: that is %d nodes",
			p.ByIPs, all.enisOf(p.ByIPs, perNode.enis, in.KeptENIs), in.Quota, left, *p.ByQuota)
	}
	return p, nil
}

func (in Input) validate() error {
	if err := in.Instance.Validate(); err != nil {
		return err
	}
	if in.MaxPods < 1 {
		return fmt.Errorf("max-pods %d: must be at least 1", in.MaxPods)
	}
	if in.Quota < 0 || in.UsedENIs < 0 || in.KeptENIs < 0 || in.Places < 0 || in.Reserved < 0 || in.Need.Nodes < 0 || in.Need.Pods < 0 {
		return errors.New("quota, used ENIs, reserved addresses and needs must not be negative")
	}
	if in.Instance.PodsBeside(in.Places) < 1 {
		return fmt.Errorf("%d places: a node carries %d pods, and none is left for others", in.Places, in.Instance.Pods())
	}
	ids := map[string]bool{}
	for _, s := range in.Subnets {
		if s.Available < 0 {
			return fmt.Errorf("subnet %s: %d addresses available: must not be negative", s.ID, s.Available)
		}
		if ids[s.ID] {
			return fmt.Errorf("subnet %s: given twice", s.ID)
		}
		ids[s.ID] = true
	}
	// What two subnets share would be counted twice.
	if a, b, found := Overlap(in.Subnets); found {
		return fmt.Errorf("subnets %s and %s overlap", a.ID, b.ID)
	}
	return nil
}

func (d density) carriesAlone(s Subnet) Carries {
	nodes, limit := d.wholeNodes(d.roomOf(s.Available)), Addresses
	if s.Exclusive {
		nodes, limit = 0, Exclusive
	}
	return d.sumUp(s.Available, nodes, nil).boundBy(limit)
}

// sumUp returns what nodes carry that lie in one subnet each, and mixed ones, given by their numbers of
// ENIs.
func (d density) sumUp(available, nodes int, mixed []int) Carries {
	c := Carries{
		ENIsPerNode: d.enis,
		IPsPerNode:  d.ips,
		Available:   available,
		FullENIs:    available / d.instance.V4,
		Nodes:       nodes + len(mixed),
		ENIs:        nodes * d.enis,
		Limit:       Addresses,
	}
	for _, n := range mixed {
		c.ENIs += n
	}
	c.Pods = c.Nodes * d.pods
	c.Used = c.Nodes*d.blocks*d.size + c.ENIs
	c.Wasted = available - c.Used
	c.WastedShare = shareOf(c.Wasted, available)
	return c
}

func (c Carries) boundBy(l Limit) Carries {
	c.Limit = l
	return c
}

func (p *Plan) addNote(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

func (p *Plan) noteSubnet(s Subnet, d density) {
	switch {
	case s.Exclusive:
		p.addNote("subnet %s is exclusive: it carries no node", s.ID)
	case s.Available < min(d.ips, d.instance.V4):
		p.addNote("subnet %s can't carry a node: it has %d addresses, a node takes %d; it can't fill one ENI of %d either", s.ID, s.Available, d.ips, d.instance.V4)
	case s.Available < d.ips:
		p.addNote("subnet %s can't carry a node: it has %d addresses, a node takes %d", s.ID, s.Available, d.ips)
	case d.wholeNodes(d.roomOf(s.Available)) == 0:
		p.addNote("subnet %s can't carry a node: it has %d whole prefixes, a node takes %d", s.ID, d.roomOf(s.Available).blocks, d.blocks)
	}
}
