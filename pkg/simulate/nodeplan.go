package simulate

import (
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// The methods that agents call for pods, and those that take back what they made.
const (
	assign   = "AssignAddresses"
	create   = "CreateInterface"
	unassign = "UnassignAddresses"
	remove   = "DeleteInterface"
)

// interfaces is the method that tells a node its ENIs.
const interfaces = "Interfaces"

// looks are what an agent asks for before it does anything.
var looks = [...]string{"Limits", interfaces, "Subnets"}

// part is a call that a node's plan has, and how many pods that is for.
type part struct {
	method string
	slots  int
}

// order is the plan of a node, and what its pods lack.
type order struct {
	calls []part
	lacks int
}

// ordersOf returns what the mode orders for the pods of the load: as each node is now, a
// plan for all of its pods.
func (p *play) ordersOf(l Load) []order {
	list := make([]order, len(p.nodes))
	for k, n := range p.nodes {
		list[k] = p.orderOf(n, len(l.Nodes[k]))
	}
	return list
}

func (p *play) orderOf(n *node, pods int) order {
	c, o := p.conf.Pool, order{lacks: pods}
	s := pool.Snapshot{Families: []eni.Family{eni.IPv4}, Limits: p.world.Limits, MaxPods: p.world.MaxPods}
	// Subnets without an end: what the mode orders is asked, and what runs out the play itself finds.
	for _, place := range p.world.Subnets {
		s.Subnets = append(s.Subnets, pool.Subnet{ID: place.ID, Free: 1 << 24, New: true})
	}
	for _, nic := range p.account.Attached(n.name) {
		e := pool.ENI{ID: nic.ID, Index: nic.Index, Subnet: nic.Subnet, Keep: !nic.Ours}
		for _, addr := range nic.Addresses {
			e.Addresses = append(e.Addresses, pool.Address{Address: eni.Address{Addr: addr, ENI: nic.Index}})
		}
		o.lacks -= len(nic.Addresses)
		s.ENIs = append(s.ENIs, e)
	}
	sizing, most := c.Sizing(s.Limits, s.Families), c.Most(s.Limits, s.Families, s.MaxPods)
	for _, t := range pool.Plan(c, s, sizing.Need(pods, len(s.ENIs), most)) {
		switch t.Do {
		case pool.Assign:
			o.calls = append(o.calls, part{assign, t.Count})
		case pool.Create:
			o.calls = append(o.calls, part{create, t.Count})
		}
	}
	return o
}

// lowestCost returns the lowest cost of calls that are enough for the pods, where each call
// has its cost.
func (o order) lowestCost(cost func(part) int) int {
	const never = 1 << 40
	lowest := make([]int, max(o.lacks, 0)+1) // by slots
	for i := range lowest[1:] {
		lowest[i+1] = never
	}
	for _, t := range o.calls {
		for n := len(lowest) - 1; n > 0; n-- {
			lowest[n] = min(lowest[n], lowest[max(n-t.slots, 0)]+cost(t))
		}
	}
	if got := lowest[len(lowest)-1]; got < never {
		return got
	}
	return 0 // they will never all be served
}
