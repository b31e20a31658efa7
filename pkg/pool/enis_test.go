package pool

import (
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/scale"
	"pgregory.net/rapid"
)

// The keys of cce-planned-cluster-mode.md for a node, below what its instance may have.
func TestANodesOwnLimitsAreBelowThoseOfTheInstance(t *testing.T) {
	for _, tt := range []struct {
		name   string
		c      Config
		limits eni.Limits
		want   int // slots at most
	}{
		{"none", Config{}, eni.Limits{ENIs: 8, V4: 30}, 232},
		{"ENIs", Config{MaxAllocateENI: 3}, eni.Limits{ENIs: 8, V4: 30}, 87},
		{"ENIs for pods, so without the first", Config{MaxAllocateENI: 3, FirstENI: 1}, eni.Limits{ENIs: 8, V4: 30}, 87},
		{"no more than there are", Config{MaxAllocateENI: 9, MaxIPsPerENI: 40, FirstENI: 1}, eni.Limits{ENIs: 8, V4: 30}, 203},
		{"addresses, the primary among them", Config{MaxIPsPerENI: 11}, eni.Limits{ENIs: 8, V4: 30}, 80},
		{"both, as the document multiplies them", Config{MaxAllocateENI: 8, MaxIPsPerENI: 30}, eni.Limits{ENIs: 9, V4: 40}, 232},
		{"in whole blocks", Config{MaxIPsPerENI: 50}, eni.Limits{ENIs: 1, V4: 145, V4Block: eni.Block{Bits: 28, Size: 16}}, 48},
		{"and one at least", Config{MaxIPsPerENI: 8}, eni.Limits{ENIs: 1, V4: 145, V4Block: eni.Block{Bits: 28, Size: 16}}, 16},
	} {
		if got := tt.c.Most(tt.limits, v4, 0); got != tt.want {
			t.Errorf("%s: %d slots, want %d", tt.name, got, tt.want)
		}
	}
}

func TestBurstableENIsAreAsLargeAsTheNodeSays(t *testing.T) {
	c := Config{Mode: Burstable, Multiple: 1, MaxIPsPerENI: 10, MaxAllocateENI: 2, Scale: scale.Default()}
	s := Snapshot{Families: v4, Limits: eni.Limits{ENIs: 8, V4: 30}, Unmanaged: 3, Subnets: []Subnet{{ID: "subnet-a", Free: 200, New: true}}}
	if z := c.Sizing(s.Limits, v4); z.Batch != 9 {
		t.Errorf("a batch of %d, want 9", z.Batch)
	}
	s = applied(s, Plan(c, s, 30))
	checkENIs(t, s, 2, func(int) int { return 9 })
	if got := strings.Join(Texts(TargetCauses(c, s, 18)), "\n"); got != "" {
		t.Errorf("nothing is missing: %s", got)
	}
	list := Texts(TargetCauses(c, s, 19))
	if want := "demand needs 19 slots and the node holds 18 at most: 2 ENIs for pods with 9 slots each"; len(list) == 0 || list[0] != want {
		t.Errorf("%q, want %s", list, want)
	}
}

func TestNoENIBeyondTheNodesOwnLimitIsMadeOrSaid(t *testing.T) {
	s := node(v4, card(0, v4, 0, 16), card(1, v4, 0, 16))
	s.Subnets = append(s.Subnets, Subnet{ID: "subnet-b", Free: 200, New: true})
	s.ENIs[1].Busy = true
	s.ENIs[1].Addresses = s.ENIs[1].Addresses[:8]
	c := Config{MaxAllocateENI: 2}
	if steps := Plan(c, s, 32); len(steps) != 0 {
		t.Errorf("%+v", steps)
	}
	const want = "2 ENIs for pods, as many as maxAllocateENI lets the node have"
	if list := Texts(TargetCauses(c, s, 32)); !slices.Contains(list, want) {
		t.Errorf("%q", list)
	}
	if got := c.Full(s); got != want {
		t.Errorf("%q", got)
	}
	if got := (Config{}).Full(s); got != "" {
		t.Errorf("%q", got)
	}
	s.Unmanaged = 2
	if got, want := (Config{}).Full(s), "ENI limit reached: 4 of 4, 0 of them being made and 2 not enipool's"; got != want {
		t.Errorf("%q, want %s", got, want)
	}
}

func TestENIsAreMadeBeforehand(t *testing.T) {
	for _, tt := range []struct {
		name   string
		c      Config
		target int
		want   string
	}{
		{"a node that starts", Config{PreAllocateENI: 3}, 16, "create in subnet-a with 16: demand needs 16 slots, 0 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left\n" +
			"create in subnet-a with 1: a new ENI in subnet-a is made beforehand, the 2nd of the 3 of preAllocateENI\n" +
			"create in subnet-a with 1: a new ENI in subnet-a is made beforehand, the 3rd of the 3 of preAllocateENI"},
		{"burstable ones are full", Config{Mode: Burstable, Multiple: 1, PreAllocateENI: 2}, 16,
			"create in subnet-a with 16: demand needs 16 slots, 0 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left\n" +
				"create in subnet-a with 16: a new ENI in subnet-a is made beforehand, the 2nd of the 2 of preAllocateENI"},
		{"no more than the node may have", Config{PreAllocateENI: 3, MaxAllocateENI: 1}, 16,
			"create in subnet-a with 16: demand needs 16 slots, 0 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left"},
		{"one is what pods need anyway", Config{PreAllocateENI: 1}, 16,
			"create in subnet-a with 16: demand needs 16 slots, 0 there, 16 to come on a new ENI in subnet-a, which has 200 addresses left"},
	} {
		s := node(v4)
		got := text(Plan(tt.c, s, tt.target))
		if got != tt.want+"\n" {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// No ENI more is made beforehand than the instance has for pods, though the primary's place looks free while nothing is known of
// it: what that one would hold is beyond what may be kept, and the ENI that gets more would have to give as much back.
func TestThePrimarysPlaceIsForNoENIMadeBeforehand(t *testing.T) {
	s := node(v4, card(1, v4, 2, 0))
	s.Limits = eni.Limits{ENIs: 2, V4: 5}
	got := text(Plan(Config{FirstENI: 1, PreAllocateENI: 2}, s, 3))
	if want := "assign eni-b 1 ipv4: demand needs 3 slots, 2 there, 1 to come on eni-b\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestENIsMadeBeforehandStay: they are there after one plan where a subnet can fill them,
// a plan after that has nothing to do, and what they hold beyond the target is an address
// each, or a block.
func TestENIsMadeBeforehandStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := trial{c: anyConfig(t), s: anySnapshot(t), target: rapid.IntRange(0, 60).Draw(t, "target")}
		k.c.PreAllocateENI = rapid.IntRange(1, 5).Draw(t, "beforehand")
		k.steps = Plan(k.c, k.s, k.target)
		k.next = applied(k.s, k.steps)
		k.own()
		k.checkForm(t)
		for _, step := range k.steps {
			k.checkStep(t, step)
		}
		k.checkLimits(t)
		k.checkKept(t)
		if k.awaits() {
			return
		}
		for range 3 + k.toMove() {
			k.steps = Plan(k.c, k.next, k.target)
			k.next = applied(k.next, k.steps)
		}
		if len(k.steps) > 0 {
			t.Fatalf("it does not come to rest: %+v", k.steps)
		}
		k.s = k.next
		k.checkThere(t)
	})
}

// checkThere: at rest fewer are there only where no more may be, or no subnet could fill
// one; and nothing beyond the target rests but a slot each.
func (k trial) checkThere(t *rapid.T) {
	n := 0
	for _, e := range k.s.ENIs {
		if e.Index >= k.c.FirstIndex(k.s.Limits) {
			n++
		}
	}
	there, owned := sum(k.c, k.s)
	carriers, attached := n+len(k.s.Pending), len(k.s.ENIs)+len(k.s.Pending)+k.s.Unmanaged
	may := attached < k.s.Limits.ENIs && carriers < k.c.mostCarriers(k.s.Limits) && owned < k.most()
	fills := slices.ContainsFunc(k.s.Subnets, func(s Subnet) bool {
		return s.New && !k.isSpared(s) && !s.Blocked.Is() && !s.NoNew.Is() && k.fills(newField(s, k.s).left, min(perENI(k.s.Limits, k.s.Families), k.most()-owned))
	})
	if carriers < k.c.PreAllocateENI && may && fills {
		t.Fatalf("%d ENIs for pods, %d are to be there: %+v", carriers, k.c.PreAllocateENI, k.s)
	}
	more := there - k.ceiling() - k.c.PreAllocateENI
	if k.c.Mode == Burstable || more <= 0 || inBlocks(k.s.Limits, k.s.Families) || there < k.reachable() {
		return
	}
	for _, e := range k.s.ENIs {
		rested := 1 << 20
		for _, f := range k.s.Families {
			rested = min(rested, number(e, f, func(a Address) bool { return usable(a) && a.State == eni.Free }))
		}
		if carries(k.c, k.s.Limits, e) && !e.Busy && !e.Stays && rested > 1 {
			t.Fatalf("%d slots too many, and %s has %d rested ones", more, e.ID, rested)
		}
	}
}

// checkKept: a plan deletes none of the oldest that are to be there beforehand.
func (k trial) checkKept(t *rapid.T) {
	var old []string
	for _, e := range k.s.ENIs {
		if carries(k.c, k.s.Limits, e) && len(old) < k.c.PreAllocateENI {
			old = append(old, e.ID)
		}
	}
	for _, step := range k.steps {
		if step.Do == Delete && slices.Contains(old, step.ENI) {
			t.Fatalf("%+v of those made beforehand, %q", step, old)
		}
	}
}
