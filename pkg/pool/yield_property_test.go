package pool

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/scale"
	"pgregory.net/rapid"
)

// spares tells whether a subnet is spared and the mode heeds that.
func (k trial) spares() bool {
	return slices.ContainsFunc(k.s.Subnets, k.isSpared)
}

// yields tells whether something goes back for others.
func (k trial) yields() bool {
	return slices.ContainsFunc(k.steps, func(s Step) bool {
		n, _ := subnetOf(k.s, s.Subnet)
		return k.isSpared(n) && s.Do >= Release
	})
}

func (k trial) isSpared(n Subnet) bool { return n.Spared && k.c.Mode != Burstable }

// slotsIn returns how many slots there are in the subnet.
func (k trial) slotsIn(s Snapshot, subnet string) int {
	n := 0
	for _, e := range s.ENIs {
		if e.Subnet == subnet && carries(k.c, k.s.Limits, e) {
			n += slotsOn(s, e)
		}
	}
	return n
}

// checkSpares: a subnet that is spared gives no more than pods need; and while the node keeps more there than it is to, and
// than pods need in all, nothing that could go is left there.
func (k trial) checkSpares(t *rapid.T) {
	if k.c.Mode == Burstable {
		return
	}
	left, _ := sum(k.c, applied(k.s, slices.DeleteFunc(slices.Clone(k.steps), func(s Step) bool { return s.Do < Release })))
	_, owned := sum(k.c, k.next)
	for _, n := range k.s.Subnets {
		if !n.Spared {
			continue
		}
		for _, step := range k.steps {
			if (step.Do == Assign || step.Do == Create) && step.Subnet == n.ID && owned > k.s.Needed+k.slack() {
				t.Fatalf("%d slots for pods that need %d, and some come from %s: %+v", owned, k.s.Needed, n.ID, k.steps)
			}
		}
		surplus := k.slotsIn(k.next, n.ID) - n.Keep
		if inBlocks(k.s.Limits, k.s.Families) || surplus <= 0 || left <= k.s.Needed {
			continue
		}
		for _, e := range k.next.ENIs {
			if e.Subnet == n.ID && carries(k.c, k.s.Limits, e) && !e.Busy && !e.Stays && k.idleSlots(e) > 0 && k.had(e) {
				t.Fatalf("%d slots in %s, %d are to stay, %s has rested ones and pods need %d in all: %+v", surplus+n.Keep, n.ID, n.Keep, e.ID, k.s.Needed, k.steps)
			}
		}
	}
}

// had tells whether the ENI had rested slots before the plan: what only comes back now goes with the next one.
func (k trial) had(e ENI) bool {
	before, _ := find(k.s, e.ID)
	return number(before, eni.IPv4, usable)+number(before, eni.IPv6, usable) >= number(e, eni.IPv4, usable)+number(e, eni.IPv6, usable)
}

// toMove returns how many slots there are in subnets that are spared. Where pods need all but one of the node's, a plan moves one.
func (k trial) toMove() int {
	n := 0
	for _, e := range k.next.ENIs {
		if in, _ := subnetOf(k.s, e.Subnet); k.isSpared(in) && carries(k.c, k.s.Limits, e) {
			n += slotsOn(k.next, e)
		}
	}
	return n
}

// checkMoved: slots move out of the subnets that are spared within a few plans, and none of them moves twice: what goes back
// as more comes elsewhere waits for that, and nothing comes back to such a subnet.
func (k trial) checkMoved(t *rapid.T) {
	first := k.steps
	for range 6 {
		before := k.next
		if k.s, k.steps = before, Plan(k.c, before, k.target); len(k.steps) == 0 {
			return
		}
		k.next = applied(before, k.steps)
		k.checkSpares(t)
		for _, step := range k.steps {
			if n, _ := subnetOf(before, step.Subnet); n.Spared && (step.Do == Assign || step.Do == Create) && !inBlocks(k.s.Limits, k.s.Families) {
				t.Fatalf("first %+v\nthen %+v", first, k.steps)
			}
		}
	}
	t.Fatalf("first %+v\nand at last %+v", first, k.steps)
}

// What goes anyway goes from the subnet that others wait for, though the newest ENI lies elsewhere.
func TestASparedSubnetGivesFirst(t *testing.T) {
	free := func(ip string, n int) (list []Address) {
		for a := netip.MustParseAddr(ip); len(list) < n; a = a.Next() {
			list = append(list, Address{Address: eni.Address{Addr: a, State: eni.Free}})
		}
		return list
	}
	s := Snapshot{
		Limits: eni.Limits{ENIs: 2, V4: 20}, Families: []eni.Family{eni.IPv4}, Needed: 1,
		Subnets: []Subnet{{ID: "full", Spared: true, Keep: 8}, {ID: "roomy", Free: 100, New: true}},
		ENIs: []ENI{
			{ID: "eni-a", Index: 0, Subnet: "full", Addresses: free("10.0.0.10", 8)},
			{ID: "eni-b", Index: 1, Subnet: "roomy", Addresses: free("10.0.8.10", 8)},
		},
	}
	for _, step := range Plan(Config{Mode: Batch, Scale: scale.Default()}, s, 10) {
		if step.ENI != "eni-a" || step.Do != Release || len(step.Addrs) != 6 {
			t.Errorf("%s %s %v", step.Do, step.ENI, step.Addrs)
		}
	}
}
