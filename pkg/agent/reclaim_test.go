package agent

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/placement"
)

// has returns how many addresses of pods each node has, by the cloud.
func (z *zone) has() (list []int) {
	for _, n := range z.nodes {
		list = append(list, n.total())
	}
	return list
}

// starve takes all that the subnet has left, and lets a node have so many pods more than it has addresses for.
func (z *zone) starve(n *testNode, pods int) {
	z.t.Helper()
	if err := z.account.LeaveFree("subnet-a", 0); err != nil {
		z.t.Fatal(err)
	}
	for n.add() == nil {
	}
	for range pods - 1 {
		_ = n.add()
	}
}

// untilServed lets pods try until all have an address or the time is up, and returns how many still wait.
func (z *zone) untilServed(n *testNode, within time.Duration) (left int) {
	for began := z.now(); z.now()-began < within; {
		if left = n.retry(); left == 0 {
			return 0
		}
		sleep(500 * time.Millisecond)
	}
	return left
}

// asked returns what each node is asked to do without.
func (z *zone) asked() (list []int) {
	for _, n := range z.nodes {
		list = append(list, int(z.object(n.name).Status.Reclaim))
	}
	return list
}

// Ten slots of the 20, 8 and 5 that nodes have idle come from the first, exactly; it asks for none of them as long as the zone
// has nothing, and has them back when it has.
func TestIdleSlotsGoToNodesWhosePodsWait(t *testing.T) {
	inZone(t, 3, []int{20, 8, 5, 1}, func(t *testing.T, z *zone) {
		if got := z.has(); !slices.Equal(got, []int{23, 11, 8, 4}) {
			t.Fatalf("the nodes have %v", got)
		}
		for i, want := range []int32{20, 8, 5} {
			if got := z.object(fmt.Sprint("n", i)).Spec.IdleSlots; got != want {
				t.Errorf("n%d tells of %d idle slots, want %d", i, got, want)
			}
		}
		first, poor := z.nodes[0], z.nodes[3]
		z.starve(poor, 10)
		if left := z.untilServed(poor, 20*time.Second); left > 0 {
			t.Errorf("%d pods wait", left)
		}
		sleep(time.Minute)
		if got := z.has(); !slices.Equal(got, []int{13, 11, 8, 14}) {
			t.Errorf("the nodes have %v", got)
		}
		s := first.status()
		if s.AskedBack != 10 || s.Target != 13 {
			t.Errorf("%+v", s)
		}
		writes, asked := z.specs[first.name], z.asked()
		for range 60 {
			sleep(time.Minute)
			first.must(t)
		}
		if got := z.specs[first.name]; got > writes+1 { // the number of idle slots, once
			t.Errorf("%d writes of an agent that does without", got-writes)
		}
		if got := z.has(); !slices.Equal(got, []int{13, 11, 8, 14}) || !slices.Equal(asked, []int{10, 0, 0, 0}) || !slices.Equal(z.asked(), asked) {
			t.Errorf("the nodes have %v, asked for %v", got, asked)
		}
		if s := first.status(); s.Health.Capacity != 13 || s.Health.Faulty {
			t.Errorf("%+v", s.Health)
		}
		if err := z.account.LeaveFree("subnet-a", 60); err != nil {
			t.Fatal(err)
		}
		sleep(20 * time.Minute)
		if got := z.has(); !slices.Equal(got, []int{23, 11, 8, 15}) || !slices.Equal(z.asked(), []int{0, 0, 0, 0}) {
			t.Errorf("the nodes have %v, asked for %v", got, z.asked())
		}
		if s := first.status(); s.AskedBack != 0 || s.Health.Capacity <= 23 {
			t.Errorf("%+v", s)
		}
	})
}

// hasIn returns how many addresses of pods the node has in each of those subnets, by its object.
func (z *zone) hasIn(name string, subnets ...string) (list []int) {
	for _, id := range subnets {
		sum := 0
		for _, e := range z.object(name).Status.ENIs {
			if e.Subnet == id {
				sum += len(e.Addresses)
			}
		}
		list = append(list, sum)
	}
	return list
}

// A node has addresses in two subnets, and the pods of another one, which has no ENI for any other subnet, wait for those of the
// first: what is asked of the node goes from there, though its newest ENI is elsewhere and idle.
func TestIdleSlotsGoFromTheSubnetThatStarves(t *testing.T) {
	subnets := []sim.Subnet{subnet("subnet-a", "10.0.4.0/26"), subnet("subnet-b", "10.0.8.0/24")}
	inZoneOf(t, subnets, []eni.Limits{{ENIs: 2, V4: 8}, {ENIs: 1, V4: 40}}, 3, []int{10, 1}, func(t *testing.T, z *zone) {
		first, poor := z.nodes[0], z.nodes[1]
		has := func(n *testNode) []int { return z.hasIn(n.name, "subnet-a", "subnet-b") }
		if a, b := has(first), has(poor); !slices.Equal(a, []int{7, 6}) || !slices.Equal(b, []int{4, 0}) {
			t.Fatalf("the nodes have %v and %v", a, b)
		}
		if s := z.object(first.name).Spec; s.IdleSlots != 10 || !maps.Equal(s.IdleIn, map[string]int32{"subnet-a": 4, "subnet-b": 6}) {
			t.Errorf("%d slots are idle, %v", s.IdleSlots, s.IdleIn)
		}
		z.starve(poor, 3)
		if left := z.untilServed(poor, 20*time.Second); left > 0 {
			t.Errorf("%d pods wait", left)
		}
		sleep(10 * time.Minute)
		if a, b := has(first), has(poor); !slices.Equal(a, []int{4, 6}) || !slices.Equal(b, []int{7, 0}) || !slices.Equal(z.asked(), []int{3, 0}) {
			t.Errorf("the nodes have %v and %v, asked for %v", a, b, z.asked())
		}
		// There is no more there than the last idle one, and what is idle elsewhere helps nobody.
		z.starve(poor, 3)
		if left := z.untilServed(poor, time.Minute); left != 2 {
			t.Errorf("%d pods wait, want 2", left)
		}
		sleep(10 * time.Minute)
		if a := has(first); !slices.Equal(a, []int{3, 6}) || !slices.Equal(z.asked(), []int{4, 0}) {
			t.Errorf("the node has %v, asked for %v", a, z.asked())
		}
	})
}

// Whatever the nodes have idle, they release what is missing and no more, in the shares of placement.Reclaim,
// though agents end
// and begin in the middle and another operator leads: no node goes below what its pods need and one more.
func TestIdleSlotsAreReleasedExactly(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 45))
			free := []int{1 + r.IntN(20), 1 + r.IntN(20), 1 + r.IntN(20), 1}
			inZone(t, 3, free, func(t *testing.T, z *zone) {
				need := 1 + r.IntN(25)
				want, poor := z.has(), z.nodes[3]
				var idle []int // as the objects tell, which may be a little less than there is
				for _, n := range z.nodes[:3] {
					idle = append(idle, int(z.object(n.name).Spec.IdleSlots))
				}
				for i, n := range placement.Reclaim(need, idle, 1) {
					want[i], want[3] = want[i]-n, want[3]+n
				}
				z.starve(poor, need)
				for range 20 {
					poor.retry()
					sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
					if r.IntN(3) == 0 {
						n := z.nodes[r.IntN(4)]
						n.kill()
						n.start(-1, false)
					}
					if r.IntN(8) == 0 {
						z.end()
						z.lead()
					}
				}
				left := z.untilServed(poor, 10*time.Minute)
				sleep(10 * time.Minute)
				if got := z.has(); !slices.Equal(got, want) {
					t.Errorf("idle %v, %d missing: the nodes have %v, want %v, asked for %v", free, need, got, want, z.asked())
				}
				if got := 3 + 1 + need - left; got != want[3] {
					t.Errorf("%d of the pods wait though the node has %d", left, want[3])
				}
				sleep(time.Hour)
				if got := z.has(); !slices.Equal(got, want) {
					t.Errorf("an hour later the nodes have %v, want %v", got, want)
				}
			})
		})
	}
}

// A node whose agent does not run is asked in vain, and then others are: it keeps what it has when its agent is back.
func TestANodeThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	inZone(t, 3, []int{20, 8, 5, 1}, func(t *testing.T, z *zone) {
		silent, poor := z.nodes[0], z.nodes[3]
		silent.kill()
		z.starve(poor, 5)
		if left := z.untilServed(poor, time.Minute); left > 0 {
			t.Errorf("%d pods wait", left)
		}
		sleep(time.Minute)
		silent.start(-1, false)
		sleep(10 * time.Minute)
		if got := z.has(); !slices.Equal(got, []int{23, 7, 7, 9}) || !slices.Equal(z.asked(), []int{0, 4, 1, 0}) {
			t.Errorf("the nodes have %v, asked for %v", got, z.asked())
		}
	})
}

// Of a node with prefixes whole ones are asked for, as many as it takes, and those go of which no pod uses anything.
func TestIdlePrefixesGoToNodesWhosePodsWait(t *testing.T) {
	inZoneOf(t, []sim.Subnet{subnet("subnet-a", "10.0.4.0/24")}, slices.Repeat([]eni.Limits{slashes28(5)}, 3), 3, []int{40, 25, 1}, func(t *testing.T, z *zone) {
		if got := z.has(); !slices.Equal(got, []int{48, 32, 16}) {
			t.Fatalf("the nodes have %v", got)
		}
		// Two prefixes and the one slot that an operator leaves.
		for i, want := range []int32{33, 17, 0} {
			if got := z.object(fmt.Sprint("n", i)).Spec.IdleSlots; got != want {
				t.Errorf("n%d tells of %d idle slots, want %d", i, got, want)
			}
		}
		poor := z.nodes[2]
		z.starve(poor, 3)
		if left := z.untilServed(poor, time.Minute); left > 0 {
			t.Errorf("%d pods wait", left)
		}
		sleep(10 * time.Minute)
		if got := z.has(); !slices.Equal(got, []int{32, 32, 32}) || !slices.Equal(z.asked(), []int{16, 0, 0}) {
			t.Errorf("the nodes have %v, asked for %v", got, z.asked())
		}
		for _, n := range z.nodes {
			n.must(t)
		}
	})
}
