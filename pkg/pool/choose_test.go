package pool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// Of IPv6 a block is as good as 16 addresses, so what is left of it says less than what
// is left of IPv4: the subnet with the most room of both is not the one that fills an ENI.
func TestANewENILiesWhereItCanBeFilled(t *testing.T) {
	for _, mode := range []Mode{Batch, BestEffort, Burstable} {
		s := node(both)
		s.Limits.V6Block = eni.Block{Bits: 80, Size: 16}
		s.Subnets = []Subnet{{ID: "subnet-a", Free: 18, New: true}, {ID: "subnet-b", Free: 16, New: true}}
		for i := range 3 {
			e := card(i, v4, 0, 16)
			e.Busy, e.Coming = true, []Coming{{Family: eni.IPv6, Count: 16}}
			s.ENIs = append(s.ENIs, e)
		}
		steps := Plan(Config{Mode: mode, Multiple: 1, Partial: true}, s, 64)
		if len(steps) != 1 || steps[0].Do != Create || steps[0].Subnet != "subnet-a" || steps[0].Count != 16 {
			t.Errorf("%s: %+v", mode, steps)
		}
	}
}

func TestAPlanSaysWhereNoSubnetFillsAnENI(t *testing.T) {
	s := node(v4)
	s.Subnets = []Subnet{{ID: "subnet-a", Free: 4, New: true}, {ID: "subnet-b", Free: 9, New: true}}
	steps := Plan(Config{}, s, 16)
	want := []string{
		"demand needs 16 slots, 0 there, 8 to come on a new ENI in subnet-b, which has 9 addresses left: no subnet that takes ENIs now has the 17 that fill one",
		"demand needs 16 slots, 0 there, 3 to come on a new ENI in subnet-a, which has 4 addresses left: no subnet that takes ENIs now has the 17 that fill one",
	}
	if len(steps) != len(want) {
		t.Fatalf("%+v", steps)
	}
	for i, w := range want {
		if steps[i].Reason != w {
			t.Errorf("%s\nwant %s", steps[i].Reason, w)
		}
	}
}

// TestASubnetThatFillsTheENIIsPreferred: in every mode no new ENI lies where it can't be
// filled while a subnet that takes new ENIs could, and what the plan says of it is so.
func TestASubnetThatFillsTheENIIsPreferred(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyCase(t)
		if k.spares() {
			return // see checkSpares
		}
		left := map[string][]int{}
		for _, n := range k.s.Subnets {
			left[n.ID] = newField(n, k.s).left
		}
		for _, step := range k.steps {
			if step.Do == Assign {
				k.take(left[step.Subnet], step.Family, takenOfSubnet(k.s.Limits, step.Family, step.Count))
			}
		}
		_, owned := sum(k.c, k.s)
		_, after := sum(k.c, k.next)
		for _, step := range k.steps {
			if step.Do == Create {
				after -= step.Count
			}
		}
		owned = max(owned, after) // when the first ENI is planned, all assigns are
		awaits := k.awaits()
		for _, step := range k.steps {
			if step.Do != Create {
				continue
			}
			whole := min(perENI(k.s.Limits, k.s.Families), k.most()-owned)
			some := ""
			for _, n := range k.s.Subnets {
				if n.New && !n.Blocked.Is() && !n.NoNew.Is() && k.fills(left[n.ID], whole) {
					some = n.ID
				}
			}
			short := strings.Contains(step.Reason, "no subnet that takes")
			if !awaits && (!k.fills(left[step.Subnet], whole) && some != "" || short != (some == "")) {
				t.Fatalf("%+v of %d slots at most, %s could fill it; left %v", step, whole, some, left)
			}
			if !strings.Contains(step.Reason, fmt.Sprintf("which has %d addresses left", k.room(left[step.Subnet]))) && !awaits {
				t.Fatalf("%q, left %v", step.Reason, left)
			}
			for _, f := range k.s.Families {
				n := step.V4
				if f == eni.IPv6 {
					n = step.V6
				}
				k.take(left[step.Subnet], f, takenOfSubnet(k.s.Limits, f, n)+1)
			}
			owned += step.Count
		}
	})
}

// fills tells whether an ENI gets that many slots and a primary address of each family.
func (k trial) fills(left []int, slots int) bool {
	for i, f := range k.s.Families {
		if startCount(k.s.Limits, f, slots, left[i]-1) < slots {
			return false
		}
	}
	return true
}

func (k trial) room(left []int) int {
	n := left[0]
	for _, l := range left {
		n = min(n, l)
	}
	return n
}

func (k trial) take(left []int, family eni.Family, n int) {
	for i, f := range k.s.Families {
		if f == family && len(left) > 0 {
			left[i] -= n
		}
	}
}
