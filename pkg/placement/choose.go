package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// NewENI is one that a node needs: with Secondaries addresses for pods, besides its primary one.
type NewENI struct {
	Secondaries int
	Partial     bool // fewer will do where no subnet has room for all
}

// Choice is where it is to lie.
type Choice struct {
	Subnet      string
	Secondaries int
}

// Why tells what keeps an ENI from being made.
type Why string

// The causes. NoSubnet: no subnet is for the node. SubnetFull: those that are have no room.
const (
	None       Why = ""
	NoSubnet   Why = "NoSubnet"
	SubnetFull Why = "SubnetFull"
)

// Refusal is the cause with its figures, for people.
type Refusal struct {
	Why     Why
	Message string
}

// Choose chooses a subnet for a node's new ENI: of those with room for all of it the one with the
// highest weight, then the one with most room, then by ID, so that nodes which come together
// spread. The caller adds what it takes to Granted before it asks again.
func Choose(n Node, asked NewENI, subnets []Subnet, now time.Duration) (Choice, Refusal) {
	need := asked.Secondaries + 1
	var usable []Subnet
	mine := 0
	for _, s := range subnets {
		if s.Use == Shared && s.Zone == n.Zone {
			mine++
		}
		if s.For(n, now) {
			usable = append(usable, s)
		}
	}
	slices.SortFunc(usable, func(a, b Subnet) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Room(), a.Room()), cmp.Compare(a.ID, b.ID))
	})
	for _, s := range usable {
		if s.Room() >= need {
			return Choice{s.ID, asked.Secondaries}, Refusal{}
		}
	}
	if mine == 0 {
		return Choice{}, Refusal{NoSubnet, fmt.Sprintf("no subnet of zone %s is for ENIs of nodes", n.Zone)}
	}
	if len(usable) == 0 {
		return Choice{}, Refusal{SubnetFull, fmt.Sprintf("none of the %d subnets of zone %s takes a new ENI of this node now", mine, n.Zone)}
	}
	most := slices.MaxFunc(usable, func(a, b Subnet) int { return cmp.Or(cmp.Compare(a.Room(), b.Room()), cmp.Compare(b.ID, a.ID)) })
	// An ENI with its primary address alone would take an address and serve no pod.
	if asked.Partial && most.Room() >= 2 {
		return Choice{most.ID, most.Room() - 1}, Refusal{}
	}
	return Choice{}, Refusal{SubnetFull, fmt.Sprintf("%d needed, most room %d in %s", need, max(0, most.Room()), most.ID)}
}
