// Package fit works out whether subnets, ranges and the places of nodes hold the pods of topologies, and what to change where they
// don't. It takes addresses as the operator does: topologies in their order, and of each its subnets in theirs.
package fit

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sort"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/topology"
)

// Input is what a plan is made of.
type Input struct {
	Topologies []Asked
	Subnets    []Subnet
	Nodes      int // that pods of topologies may run on; 0: not known, and each ENI is taken to be full
	Places     int // of a node, kept for pods of topologies
	ENIs       int // that those are, 0 where they may be of any ENI
	PerENI     int // addresses of an ENI besides its primary one
	// Across: ENIs carry addresses of other subnets than their own, and none has to lie in a topology's. Those that nodes have anyway carry them.
	Across bool
}

// Asked is a topology and how many pods it is to have at once.
type Asked struct {
	topology.Topology
	Pods int
}

// Subnet is one of the cloud's.
type Subnet struct {
	topology.Subnet
	Free    int            // addresses that the cloud has left of it; at least its size: all of them
	Reserve []netip.Prefix // that people want reserved, beside the ranges of topologies
}

// Plan is how far topologies hold their pods.
type Plan struct {
	Topologies []Holding `json:"topologies"` // in the order in which they are tried for a pod
	Subnets    []Use     `json:"subnets"`    // that they name and that are known, by ID
	Places     int       `json:"places"`     // kept on all nodes together, 0 where nobody knows how many there are
	Changes    []string  `json:"changes"`    // that no topology alone is about
	Notes      []string  `json:"notes"`
	Met        bool      `json:"granted"`
}

// Holding is one topology.
type Holding struct {
	Topology string   `json:"topology"`
	Strategy string   `json:"strategy"`
	Pods     int      `json:"pods"`
	Holds    int      `json:"holds"`            // of those
	Room     int      `json:"room"`             // for pods beyond those that it holds
	Reason   string   `json:"reason,omitempty"` // why it can't be served at all
	Changes  []string `json:"changes"`          // what to do so that it holds all
}

// Use is what topologies take of a subnet.
type Use struct {
	Subnet    string `json:"subnet"`
	Zone      string `json:"zone"`
	Exclusive bool   `json:"exclusive"`
	Ranges    int    `json:"ranges"` // addresses that topologies name in it
	Pods      int    `json:"pods"`
	ENIs      int    `json:"enis"`  // whose primary addresses lie in it, outside of ranges
	Left      int    `json:"left"`  // outside of ranges
	Taken     int    `json:"taken"` // what nodes can't have of it
}

// Make plans.
func Make(in Input) Plan {
	taking := newPlanner(in)
	plan := Plan{Topologies: []Holding{}, Subnets: []Use{}, Changes: []string{}, Notes: []string{}, Met: true, Places: in.Nodes * in.Places}
	asked := slices.SortedFunc(slices.Values(in.Topologies), func(a, b Asked) int { return topology.Compare(a.Topology, b.Topology) })
	pods := 0
	for _, a := range asked {
		plan.Topologies = append(plan.Topologies, taking.holdTopology(a))
		pods += a.Pods
	}
	for i, a := range asked { // once all have theirs
		h := &plan.Topologies[i]
		h.Room = taking.roomFor(a.Topology)
		fits := h.Holds == h.Pods && h.Reason == ""
		if plan.Met = plan.Met && fits; fits {
			plan.Notes = append(plan.Notes, taking.noteUnknown(a.Topology)...)
		}
	}
	plan.Changes = append(plan.Changes, taking.placesMissing(pods)...)
	plan.Met = plan.Met && len(plan.Changes) == 0
	plan.Notes = append(plan.Notes, taking.noteAll(pods)...)
	for _, id := range taking.namedSubnets() {
		plan.Subnets = append(plan.Subnets, *taking.uses[id])
	}
	return plan
}

// planner has what is left while topologies take theirs, one after the other.
type planner struct {
	Input
	cluster topology.Cluster
	uses    map[string]*Use
	ranged  map[source]int   // pods that have an address of a range
	tooMany map[string]error // subnets whose ranges the cloud can't reserve
}

// source is one of a topology's.
type source struct{ topology, subnet string }

func newPlanner(in Input) *planner {
	made := &planner{Input: in, cluster: topology.Cluster{Families: []eni.Family{eni.IPv4}},
		uses: map[string]*Use{}, ranged: map[source]int{}, tooMany: map[string]error{}}
	for _, a := range in.Topologies {
		made.cluster.Topologies = append(made.cluster.Topologies, a.Topology)
	}
	for _, s := range in.Subnets {
		is := s.Subnet
		// The operator reserves what topologies name within a minute, and they are to be judged as they will be then.
		list, err := placement.Ranges(slices.Concat(s.Reserve, in.rangesIn(is)), is.V4, is.V6)
		if err != nil {
			made.tooMany[s.ID] = err
		} else {
			is.Reserved = list
		}
		made.cluster.Subnets = append(made.cluster.Subnets, is)
	}
	for _, s := range in.Subnets {
		made.uses[s.ID] = made.newUse(s)
	}
	return made
}

// rangesIn returns what topologies name of a subnet, as the cloud reserves it.
func (in Input) rangesIn(subnet topology.Subnet) (list []netip.Prefix) {
	for _, a := range in.Topologies {
		for _, from := range a.Sources {
			if from.Subnet == subnet.ID {
				prefixes, _ := topology.Cover(from, subnet) // what is wrong with a range Check says
				list = append(list, prefixes...)
			}
		}
	}
	return list
}

// newUse is a subnet that no topology has taken anything of.
func (p *planner) newUse(s Subnet) *Use {
	outside := p.roomIn(topology.Topology{Strategy: topology.Elastic}, topology.Source{Subnet: s.ID})
	// A cluster without topologies names no ranges: what it has more than this one is what they name.
	bare := topology.Cluster{Families: p.cluster.Families, Subnets: p.cluster.Subnets}
	all := bare.Room(topology.Topology{Strategy: topology.Elastic, Sources: []topology.Source{{Subnet: s.ID}}})
	// Where addresses of others lie nobody knows: they are taken to lie outside of ranges, which are reserved.
	return &Use{Subnet: s.ID, Zone: s.Zone, Exclusive: s.Exclusive, Ranges: all - outside, Left: max(0, outside-max(0, all-s.Free)), Taken: all - outside}
}

// roomIn returns how many addresses a topology has in one subnet, whoever takes them.
func (p *planner) roomIn(of topology.Topology, from topology.Source) int {
	of.Sources = []topology.Source{from}
	return p.cluster.Room(of)
}

// enisFor returns how many ENIs lie in a subnet for that number of pods: a node has one there for its first pod of it. Where the
// nodes are known each pod may run on one of its own. Across subnets none has to.
func (p *planner) enisFor(pods int) int {
	if p.Across {
		return 0
	}
	full := (pods + max(1, p.PerENI) - 1) / max(1, p.PerENI)
	if p.Nodes > 0 {
		return max(full, min(pods, p.Nodes))
	}
	return full
}

// holdTopology takes addresses for the pods of a topology.
func (p *planner) holdTopology(asked Asked) Holding {
	h := Holding{Topology: asked.Name, Strategy: string(asked.Strategy), Pods: asked.Pods, Changes: []string{}}
	if why := topology.Check(asked.Topology, p.cluster.Topologies, p.cluster.Subnets); why.Reason != "" {
		h.Reason, h.Changes = why.Reason, p.howToMend(asked.Topology, why)
		return h
	}
	for _, from := range asked.Sources {
		if s := p.uses[from.Subnet]; s != nil && p.isReady(from.Subnet) {
			h.Holds += p.takeFrom(asked, from, s, asked.Pods-h.Holds)
		}
	}
	if h.Holds < h.Pods {
		h.Changes = p.whatIsMissing(asked, h.Pods-h.Holds)
	}
	return h
}

func (p *planner) isReady(id string) bool {
	return slices.ContainsFunc(p.cluster.Subnets, func(s topology.Subnet) bool { return s.ID == id && s.Ready })
}

// takeFrom takes addresses of a source for at most that number of pods, and returns for how many it has some.
func (p *planner) takeFrom(a Asked, from topology.Source, s *Use, most int) int {
	n := p.mostOf(a.Topology, from, s, most)
	enis := p.enisFor(s.Pods+n) - s.ENIs
	s.Pods, s.ENIs = s.Pods+n, s.ENIs+enis
	outside := enis
	if len(from.Ranges) == 0 {
		outside += n
	} else {
		p.ranged[source{a.Name, from.Subnet}] += n
	}
	s.Left, s.Taken = s.Left-outside, s.Taken+outside
	return n
}

// mostOf returns for how many more pods a source has addresses, at most that number: theirs, and those of the ENIs that carry them.
func (p *planner) mostOf(of topology.Topology, from topology.Source, in *Use, most int) int {
	if len(from.Ranges) > 0 {
		most = min(most, p.roomIn(of, from)-p.ranged[source{of.Name, from.Subnet}])
	} else {
		most = min(most, in.Left)
	}
	return sort.Search(max(0, most), func(n int) bool {
		cost := p.enisFor(in.Pods+n+1) - in.ENIs
		if len(from.Ranges) == 0 {
			cost += n + 1
		}
		return cost > in.Left
	})
}

// roomFor returns for how many pods more than it holds a topology has addresses.
func (p *planner) roomFor(of topology.Topology) (sum int) {
	if topology.Check(of, p.cluster.Topologies, p.cluster.Subnets).Reason != "" {
		return 0
	}
	for _, from := range of.Sources {
		if s := p.uses[from.Subnet]; s != nil && p.isReady(from.Subnet) {
			sum += p.mostOf(of, from, s, 1<<31-1)
		}
	}
	return sum
}

// namedSubnets returns the subnets that topologies name and that are known.
func (p *planner) namedSubnets() (ids []string) {
	for _, a := range p.Topologies {
		for _, from := range a.Sources {
			if p.uses[from.Subnet] != nil {
				ids = append(ids, from.Subnet)
			}
		}
	}
	slices.SortFunc(ids, cmp.Compare)
	return slices.Compact(ids)
}

// placesMissing says what is missing of the places that nodes keep.
func (p *planner) placesMissing(pods int) []string {
	kept := p.Nodes * p.Places
	if kept == 0 || kept >= pods {
		return nil
	}
	each := (pods + p.Nodes - 1) / p.Nodes
	return []string{fmt.Sprintf("%d nodes keep %d places, and topologies have %d pods: keep %d on each node, or have %d nodes", p.Nodes, kept, pods, each, (pods+p.Places-1)/p.Places)}
}
