package simulate

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// World is what all settings are played in.
type World struct {
	Limits  eni.Limits // of each node's instance
	MaxPods int        // of each node
	Subnets []Subnet   // nodes lie in them by turns; their new ENIs may lie in any
	MaxENIs int        // in the account, primary ones included; 0 is no limit

	Latency              map[string]sim.Latency // of the cloud's calls, by method, "" for those without an entry
	Mutating, Describing sim.Bucket             // how many calls the account lets pass
	// Driver are the traits of the cloud's driver, whose requests calls are made of: then Mutating,
	// Describing and Buckets limit each action by itself. nil: calls are counted, and Mutating and
	// Describing limit all of them together.
	Driver  *driver.Traits
	Buckets map[string]sim.Bucket

	Lead time.Duration // how long before a pod's ADD the agent knows of it
	Wait time.Duration // how long an ADD waits for an address: the plugin's waitForAddress
	Seed uint64        // of all that is left to chance
}

// Subnet is one that nodes take addresses from.
type Subnet struct {
	ID       string
	CIDR     netip.Prefix
	Reserved int // addresses that the cloud keeps, network and broadcast among them
	Taken    int // addresses that others have
}

// newAccount makes the cloud.
func (w World) newAccount(c sim.Clock) (*sim.Account, error) {
	a := sim.NewAccount(sim.Options{MaxENIs: w.MaxENIs, Reuse: sim.ReuseOldest, Seed: w.Seed, Clock: c})
	for _, s := range w.Subnets {
		n := sim.Subnet{ID: s.ID, V4: s.CIDR}
		for k, addr := 2, s.CIDR.Addr().Next().Next(); k < s.Reserved-1; k++ {
			n.Reserved = append(n.Reserved, addr) // besides network, gateway and broadcast
			addr = addr.Next()
		}
		if err := a.AddSubnet(n); err != nil {
			return nil, err
		}
		if err := a.SetUnmanaged(s.ID, s.Taken); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// instanceOf returns the instance of the k-th node.
func (w World) instanceOf(k int) sim.NodeSpec {
	return sim.NodeSpec{Name: "node-" + strconv.Itoa(k+1), Limits: w.Limits, Subnet: w.Subnets[k%len(w.Subnets)].ID,
		LikeBCE: w.Driver != nil && w.Driver.NoIndex}
}

// check finds what makes no sense before anything is played.
func (w World) check(l Load) error {
	switch {
	case len(l.Nodes) == 0 || l.Duration <= 0:
		return fmt.Errorf("load %s: has no nodes or no duration", l.Name)
	case len(w.Subnets) == 0:
		return fmt.Errorf("load %s: the nodes have no subnet", l.Name)
	case l.Peak() > w.MaxPods:
		return fmt.Errorf("load %s: has %d pods at once on a node that may run %d", l.Name, l.Peak(), w.MaxPods)
	}
	return nil
}
