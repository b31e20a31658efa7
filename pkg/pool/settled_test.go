package pool

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// calm returns the snapshot with most of what a plan would do something about gone.
func calm(t *rapid.T, s Snapshot) Snapshot {
	s.Families = s.Families[:1]
	if often(t, "nothing pending") {
		s.Pending = nil
	}
	for i := range s.ENIs {
		e := &s.ENIs[i]
		if often(t, "nothing coming") {
			e.Coming, e.Leaving = nil, false
		}
		var kept []Address
		for _, a := range e.Addresses {
			if a.Family() == s.Families[0] {
				kept = append(kept, a)
			}
		}
		e.Addresses = kept
		for k := range e.Addresses {
			if a := &e.Addresses[k]; often(t, "stays") {
				a.Lost, a.Committed = false, false
				if a.State == eni.Releasing {
					a.State = eni.Free
				}
			}
		}
	}
	return s
}

// thereOf is there of Settled, plainly.
func thereOf(s Snapshot) []int {
	there := make([]int, len(s.ENIs))
	for i, e := range s.ENIs {
		for _, a := range e.Addresses {
			if there[i]++; !usable(a) {
				there[i] = -1000
			}
		}
	}
	return there
}

func TestWhatIsSettledNeedsNoPlan(t *testing.T) {
	settled := 0
	rapid.Check(t, func(t *rapid.T) {
		c, s := anyConfig(t), calm(t, anySnapshot(t))
		if seldom(t, "beforehand") {
			c.PreAllocateENI = 3
		}
		_, owned := sum(c, s)
		target := max(0, owned-rapid.IntRange(-2, 4).Draw(t, "surplus"))
		if often(t, "exactly") {
			target = owned
		}
		if !Settled(c, s, thereOf(s), target) {
			return
		}
		settled++
		if steps := Plan(c, s, target); len(steps) > 0 {
			t.Fatalf("settled at %d, and the plan is %v", target, steps)
		}
		if why := TargetCauses(c, s, target); len(why) > 0 {
			t.Fatalf("settled at %d, and blocked by %v", target, why)
		}
	})
	if settled == 0 {
		t.Error("no case was settled: the test proves nothing")
	}
}

// A node of an instance that has fewer ENIs than are to be there beforehand waits for none.
func TestMoreENIsThanTheInstanceHasAreNotWaitedFor(t *testing.T) {
	c, s := Config{FirstENI: 1, PreAllocateENI: 3}, node(v4, card(0, v4, 0, 0), card(1, v4, 4, 2))
	s.Limits.ENIs = 2
	if !Settled(c, s, []int{0, 6}, 6) {
		t.Error("not settled")
	}
}

func TestOnlyWhatIsCertainIsSettled(t *testing.T) {
	free := func(n int) []Address { return make([]Address, n) }
	base := Snapshot{Families: []eni.Family{eni.IPv4}, Limits: eni.Limits{ENIs: 4, V4: 11}, ENIs: []ENI{{Index: 0, Addresses: free(4)}, {Index: 1, Addresses: free(2)}}}
	batch := Config{Mode: Batch}
	for name, change := range map[string]func(*Config, *Snapshot, []int, *int){
		"one too few":          func(_ *Config, _ *Snapshot, _ []int, target *int) { *target++ },
		"one too many":         func(_ *Config, _ *Snapshot, _ []int, target *int) { *target-- },
		"burstable":            func(c *Config, _ *Snapshot, _ []int, _ *int) { c.Mode = Burstable },
		"two families":         func(_ *Config, s *Snapshot, _ []int, _ *int) { s.Families = []eni.Family{eni.IPv4, eni.IPv6} },
		"an ENI in the making": func(_ *Config, s *Snapshot, _ []int, _ *int) { s.Pending = []Pending{{}} },
		"an ENI that leaves":   func(_ *Config, s *Snapshot, _ []int, _ *int) { s.ENIs[1].Leaving = true },
		"an empty ENI":         func(_ *Config, _ *Snapshot, there []int, target *int) { there[1], *target = 0, 4 },
		"one on its way back":  func(_ *Config, _ *Snapshot, there []int, target *int) { there[1], *target = -1, 3 },
		"the node's own ENI":   func(c *Config, _ *Snapshot, _ []int, _ *int) { c.FirstENI = 1 },
		"the limits' own ENI":  func(_ *Config, s *Snapshot, _ []int, _ *int) { s.Limits.NoPrimary = true },
		"ENIs beforehand":      func(c *Config, _ *Snapshot, _ []int, _ *int) { c.PreAllocateENI = 3 },
		"beyond its most":      func(c *Config, _ *Snapshot, _ []int, _ *int) { c.MaxAllocate = 5 },
	} {
		c, s, there, target := batch, base, []int{4, 2}, 6
		s.ENIs = append([]ENI(nil), base.ENIs...)
		if !Settled(c, s, there, target) {
			t.Fatal("the case to begin with is not settled")
		}
		if change(&c, &s, there, &target); Settled(c, s, there, target) {
			t.Errorf("%s: settled", name)
		}
	}
}
