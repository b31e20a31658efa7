package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func shared(id string, free, weight int) Subnet {
	return Subnet{ID: id, Zone: "z", Free: free, State: Ready, Described: true, Settings: Settings{Use: Shared, Weight: weight}}
}

// place makes ENIs of 15 secondary addresses until there is no room, and tells where they lie.
func place(subnets []Subnet, asked NewENI) string {
	var got []string
	for {
		c, refused := Choose(Node{Zone: "z"}, asked, subnets, 0)
		if refused.Why != None {
			return strings.Join(append(got, string(refused.Why)), " ")
		}
		got = append(got, c.Subnet)
		at := slices.IndexFunc(subnets, func(s Subnet) bool { return s.ID == c.Subnet })
		subnets[at].Granted += c.Secondaries + 1
	}
}

func TestENIsSpreadOverSubnetsByWeightThenRoom(t *testing.T) {
	for _, tt := range []struct {
		a, b      Subnet
		want      string
		roomA, rB int
	}{
		{shared("a", 100, 0), shared("b", 90, 0), "a b a b a b a b a b a SubnetFull", 4, 10},
		{shared("a", 40, 10), shared("b", 90, 0), "a a b b b b b SubnetFull", 8, 10},
	} {
		subnets := []Subnet{tt.a, tt.b}
		if got := place(subnets, NewENI{Secondaries: 15}); got != tt.want || subnets[0].Room() != tt.roomA || subnets[1].Room() != tt.rB {
			t.Errorf("%s, left %d and %d; want %s, left %d and %d", got, subnets[0].Room(), subnets[1].Room(), tt.want, tt.roomA, tt.rB)
		}
	}
}

func TestWhatHasNoRoomIsRefusedWithItsFigures(t *testing.T) {
	subnets := []Subnet{shared("a", 20, 0), shared("b", 12, 0)}
	_, refused := Choose(Node{Zone: "z"}, NewENI{Secondaries: 29}, subnets, 0)
	if want := (Refusal{SubnetFull, "30 needed, most room 20 in a"}); refused != want {
		t.Errorf("%+v, want %+v", refused, want)
	}
	if c, _ := Choose(Node{Zone: "z"}, NewENI{Secondaries: 29, Partial: true}, subnets, 0); c != (Choice{"a", 19}) {
		t.Errorf("partial: %+v, want 19 in a", c)
	}
	if c, refused := Choose(Node{Zone: "z"}, NewENI{Secondaries: 29, Partial: true}, []Subnet{shared("a", 1, 0)}, 0); refused.Why != SubnetFull {
		t.Errorf("an ENI that serves no pod is made: %+v", c)
	}
	if _, refused := Choose(Node{Zone: "y"}, NewENI{Secondaries: 1}, subnets, 0); refused.Why != NoSubnet {
		t.Errorf("another zone: %+v", refused)
	}
}

func TestWhichSubnetsAreForANode(t *testing.T) {
	n := Node{Zone: "z", Labels: map[string]string{"pool": "db"}}
	for name, tt := range map[string]struct {
		change func(*Subnet)
		want   bool
	}{
		"as it is":               {func(*Subnet) {}, true},
		"another zone":           {func(s *Subnet) { s.Zone = "y" }, false},
		"exclusive":              {func(s *Subnet) { s.Use = Exclusive }, false},
		"disabled":               {func(s *Subnet) { s.Use = Disabled }, false},
		"for these nodes":        {func(s *Subnet) { s.NodeSelector = map[string]string{"pool": "db"} }, true},
		"for others":             {func(s *Subnet) { s.NodeSelector = map[string]string{"pool": "web"} }, false},
		"low":                    {func(s *Subnet) { s.State = Low }, false},
		"full":                   {func(s *Subnet) { s.State, s.RetryAt = Full, 2 }, false},
		"full, to be tried":      {func(s *Subnet) { s.State, s.RetryAt = Full, 1 }, true},
		"never seen in a region": {func(s *Subnet) { s.Described = false }, false},
	} {
		s := shared("a", 100, 0)
		tt.change(&s)
		if got := s.For(n, 1); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Room leaves out what is promised: to load balancers, to calls under way, to ENIs that are to
// be filled.
func TestRoomIsWhatNobodyElseIsPromised(t *testing.T) {
	s := shared("a", 100, 0)
	s.Granted, s.Released, s.KeepFree = 20, 5, 10
	s.Attached = []Target{{Attached: 10, Target: 30}, {Attached: 30, Target: 30}, {Attached: 5}}
	if s.Owed() != 20 || s.Room() != 100-20+5-10-20 {
		t.Errorf("owed %d, room %d", s.Owed(), s.Room())
	}
}

func TestAFullSubnetIsTriedAgainLaterEachTimeAndReadyAfterTwoDescribes(t *testing.T) {
	var i Isolation
	for _, tt := range []struct {
		at      time.Duration
		room    int // of a describe; -1: the cloud refuses
		state   State
		retryAt time.Duration
	}{
		{0, 100, Ready, 0},
		{10 * time.Second, 5, Low, 0},
		{20 * time.Second, 20, Low, 0}, // enough, but not with the margin
		{30 * time.Second, 26, Low, 0},
		{80 * time.Second, 30, Low, 0}, // not yet a minute later
		{90 * time.Second, 30, Ready, 0},
		{100 * time.Second, -1, Full, 130 * time.Second},
		{110 * time.Second, -1, Full, 130 * time.Second}, // was under way with the first
		{130 * time.Second, -1, Full, 190 * time.Second},
		{190 * time.Second, -1, Full, 310 * time.Second},
		{200 * time.Second, 40, Full, 310 * time.Second},
		{250 * time.Second, -1, Full, 310 * time.Second}, // and what the describe showed is gone
		{270 * time.Second, 40, Full, 310 * time.Second},
		{330 * time.Second, 40, Ready, 0},
		{340 * time.Second, 0, Full, 370 * time.Second},
	} {
		if tt.room < 0 {
			i = i.Refused(tt.at)
		} else {
			i = i.Described(tt.at, tt.room, 10)
		}
		if i.State != tt.state || i.RetryAt != tt.retryAt {
			t.Fatalf("at %s, room %d: %s, retry at %s; want %s, %s", tt.at, tt.room, i.State, i.RetryAt, tt.state, tt.retryAt)
		}
	}
	i = Isolation{}
	for range 30 {
		i = i.Refused(i.RetryAt)
	}
	if last := i.Refused(i.RetryAt); last.RetryAt-i.RetryAt != lastRetry {
		t.Errorf("after 30 refusals it is tried after %s, want %s", last.RetryAt-i.RetryAt, lastRetry)
	}
}

func TestShareAndReclaim(t *testing.T) {
	for _, tt := range []struct {
		supply int
		wants  []int
		want   string
	}{
		{10, []int{8, 3, 3}, "[4 3 3]"}, {2, []int{5, 5, 5}, "[1 1 0]"}, {7, []int{1, 2, 9}, "[1 2 4]"}, {0, []int{1}, "[0]"}, {9, []int{1, 0}, "[1 0]"},
	} {
		if got := fmt.Sprint(Share(tt.supply, tt.wants)); got != tt.want {
			t.Errorf("Share(%d, %v) = %s, want %s", tt.supply, tt.wants, got, tt.want)
		}
	}
	for need, want := range map[int]string{10: "[10 0 0]", 16: "[14 2 0]", 17: "[15 2 0]", 100: "[19 7 4]", 0: "[0 0 0]"} {
		if got := fmt.Sprint(Reclaim(need, []int{20, 8, 5}, 1)); got != want {
			t.Errorf("Reclaim(%d) = %s, want %s", need, got, want)
		}
	}
}

// All that there is, or all that is wanted, is shared out; and who has less than another one
// after it got all that it wants, or one less than the other at most.
func TestSharesAreMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 8).Draw(t, "wants")
		supply := rapid.IntRange(0, 120).Draw(t, "supply")
		got, wanted, given := Share(supply, wants), 0, 0
		for i := range wants {
			wanted, given = wanted+wants[i], given+got[i]
			if got[i] > wants[i] {
				t.Fatalf("%v of %v", got, wants)
			}
			for j := range wants {
				if got[i] < wants[i] && got[j] > got[i]+1 {
					t.Fatalf("%v of %v: %d could have more", got, wants, i)
				}
			}
		}
		if given != min(supply, wanted) {
			t.Fatalf("%d given of %d, wanted %d", given, supply, wanted)
		}
	})
}

// What is needed comes free if it is there, nobody falls below spare, and nobody who releases is
// left with less than one who could release more, but for the one that can't be divided.
func TestReclaimTakesFromTheTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		idle := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 8).Draw(t, "idle")
		need, spare := rapid.IntRange(0, 120).Draw(t, "need"), rapid.IntRange(0, 5).Draw(t, "spare")
		take, sum, could := Reclaim(need, idle, spare), 0, 0
		for i := range idle {
			sum, could = sum+take[i], could+max(0, idle[i]-spare)
			if take[i] > max(0, idle[i]-spare) || take[i] < 0 {
				t.Fatalf("%v of %v, spare %d", take, idle, spare)
			}
			for j := range idle {
				if take[i] > 0 && idle[j]-take[j] > idle[i]-take[i]+1 && idle[j]-take[j] > spare {
					t.Fatalf("%v of %v: %d has more left than %d", take, idle, j, i)
				}
			}
		}
		if sum != min(need, could) {
			t.Fatalf("%d of %d, there were %d", sum, need, could)
		}
	})
}
