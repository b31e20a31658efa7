package simulate

import (
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// The methods that agents call to get addresses for pods, and to release them.
const (
	assign   = "AssignAddresses"
	create   = "CreateInterface"
	unassign = "UnassignAddresses"
	remove   = "DeleteInterface"
)

// interfaces is the method that describes the ENIs of a node.
const interfaces = "Interfaces"

// describeMethods are the methods that an agent calls before it changes anything.
var describeMethods = [...]string{"Limits", interfaces, "Subnets"}

// part is a call of a node's plan, and for how many pods it brings addresses.
type part struct {
	method string
	slots  int
}

// nodePlan is the plan of a node, and how many of its pods lack an address.
type nodePlan struct {
	calls []part
	must  []part // calls that no other can stand for: each pod of a topology has an address of its own
	lacks int
	alike int // nodes that have this very plan besides
}

// nodesOf returns how many nodes have plans.
func nodesOf(plans []nodePlan) (n int) {
	for _, p := range plans {
		n += 1 + p.alike
	}
	return n
}

// plansOf returns what the mode plans for the pods of the load: as each node is now, a
// plan for all of its pods.
func (p *play) plansOf(l Load) []nodePlan {
	list := make([]nodePlan, len(p.nodes))
	for k, n := range p.nodes {
		list[k] = p.planOf(n, len(l.Nodes[k]))
	}
	return list
}

func (p *play) planOf(n *node, pods int) nodePlan {
	c, plan := p.conf.Pool, nodePlan{lacks: pods}
	s := pool.Snapshot{Families: []eni.Family{eni.IPv4}, Limits: p.world.Limits, MaxPods: p.world.MaxPods}
	// Subnets without an end: what the mode plans is asked, and what runs out the play itself finds.
	for _, place := range p.world.Subnets {
		s.Subnets = append(s.Subnets, pool.Subnet{ID: place.ID, Free: 1 << 24, New: true})
	}
	for _, nic := range p.account.Attached(n.name) {
		e := pool.ENI{ID: nic.ID, Index: nic.Index, Subnet: nic.Subnet, Keep: !nic.Ours}
		for _, addr := range nic.Addresses {
			e.Addresses = append(e.Addresses, pool.Address{Address: eni.Address{Addr: addr, ENI: nic.Index}})
		}
		plan.lacks -= len(nic.Addresses)
		s.ENIs = append(s.ENIs, e)
	}
	sizing, most := c.Sizing(s.Limits, s.Families), c.Most(s.Limits, s.Families, s.MaxPods)
	for _, t := range pool.Plan(c, s, sizing.Settled(pods, len(s.ENIs), most)) {
		switch t.Do {
		case pool.Assign:
			plan.calls = append(plan.calls, part{assign, t.Count})
		case pool.Create:
			plan.calls = append(plan.calls, part{create, t.Count})
		}
	}
	return plan
}

// lowestCost returns the lowest cost of calls of the plan that are enough for the pods, where
// cost tells that of each call: a knapsack, by slots.
func (n nodePlan) lowestCost(cost func(part) int) int {
	const never = 1 << 40
	lowest := make([]int, max(n.lacks, 0)+1) // of calls that bring at least that number of slots
	for i := range lowest[1:] {
		lowest[i+1] = never
	}
	for _, t := range n.calls {
		for slots := len(lowest) - 1; slots > 0; slots-- {
			lowest[slots] = min(lowest[slots], lowest[max(slots-t.slots, 0)]+cost(t))
		}
	}
	if got := lowest[len(lowest)-1]; got < never {
		return got
	}
	return 0 // they will never all be served
}
