package agent

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// view is what the agent knows of the cloud: of the ENIs what the Cloud knows, by the last
// describe and by what calls did. The zero view knows nothing.
type view struct {
	known   bool
	start   time.Duration // when the describe it rests on was asked for
	limits  eni.Limits
	enis    []cloud.Interface // in the order of their creation
	subnets []cloud.Subnet

	subnetsAt time.Duration // when the describe was asked for that told of them
	noSubnets bool          // no describe has told of them yet

	at     map[netip.Addr]string // see places; nil: not made yet
	agrees bool                  // the cache has all of it and nothing else

	operated bool         // an operator calls the cloud
	askedIn  []string     // the subnets from whose ENIs alone slots go for now, none: from all
	told     []pool.Cause // why there is no more, as that tells
}

// described is the cloud's answer to a describe.
type described struct {
	start   time.Duration
	limits  eni.Limits
	enis    []cloud.Interface
	subnets []cloud.Subnet
	partial bool // the subnets are of an earlier one
	sees    bool // the ENIs and limits are known, whatever else failed
}

// eni returns the ENI with the id.
func (v view) eni(id string) (cloud.Interface, bool) {
	for _, nic := range v.enis {
		if nic.ID == id {
			return nic, true
		}
	}
	return cloud.Interface{}, false
}

// subnet returns the subnet with the id.
func (v view) subnet(id string) (cloud.Subnet, bool) {
	for _, n := range v.subnets {
		if n.ID == id {
			return n, true
		}
	}
	return cloud.Subnet{}, false
}

// spend notes that a call has taken so much of the room of a subnet, less than 0 if it gave
// some back: the next describe tells what is left.
func (v *view) spend(subnet string, n int) {
	for k := range v.subnets {
		if v.subnets[k].ID == subnet {
			v.subnets[k].Free = max(0, v.subnets[k].Free-n)
		}
	}
}
