package pool

import (
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/health"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The status and the node's condition name the same cause: both orders are one.
func TestKindsCountInTheOrderOfTheReasonsOfAFault(t *testing.T) {
	order := health.Reasons()
	var got []int
	words := map[string]bool{}
	for _, k := range Kinds() {
		at := slices.Index(order, k.Reason())
		if at < 1 || k.String() == "" || words[k.String()] {
			t.Errorf("%d: word %q, reason %q", k, k, k.Reason())
		}
		words[k.String()] = true
		got = append(got, at)
	}
	if !slices.IsSorted(got) {
		t.Errorf("the kinds have these places among the reasons: %v", got)
	}
	for _, reason := range order[1:] {
		if !slices.ContainsFunc(Kinds(), func(k Kind) bool { return k.Reason() == reason }) {
			t.Errorf("no kind is told as %s", reason)
		}
	}
}

func TestTheCauseThatKeepsTheMostAwayCountsAmongItsKind(t *testing.T) {
	list := []Cause{{Kind: UnderWay, Slots: 90}, {Kind: SubnetFull, Object: "a", Slots: 3}, {Kind: SubnetFull, Object: "b", Slots: 8},
		{Kind: Throttled}, {Kind: SubnetFull, Object: "c", Slots: 8}}
	want := []Cause{{Kind: SubnetFull, Object: "b", Slots: 8}, {Kind: SubnetFull, Object: "c", Slots: 8}, {Kind: SubnetFull, Object: "a", Slots: 3},
		{Kind: Throttled}, {Kind: UnderWay, Slots: 90}}
	if diff := cmp.Diff(want, Rank(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the cloud refused is told as what it was and when it is tried again, whatever it keeps away.
func TestARefusalIsTheSameCauseWhereverItIsInTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		s.NoNew = anyRefusal(t, "no new ENIs")
		refusals := []Cause{s.NoNew}
		for _, n := range s.Subnets {
			refusals = append(refusals, n.Blocked, n.NoNew)
		}
		for _, e := range s.ENIs {
			refusals = append(refusals, e.NoMore)
		}
		for _, c := range TargetCauses(anyConfig(t), s, rapid.IntRange(0, 60).Draw(t, "target")) {
			if c.Kind == 0 || c.Words == "" {
				t.Fatalf("%+v says nothing", c)
			}
			for _, r := range refusals {
				if r.Is() && strings.HasSuffix(c.Words, r.Words) && (c.Kind != r.Kind || c.Next != r.Next) {
					t.Fatalf("%+v is told as %+v", r, c)
				}
			}
		}
	})
}

// Whoever asks first, and in whatever order things were noticed: the same causes rank the same.
func TestRankIsOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Cause {
			return Cause{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Object: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "object"),
				Slots: rapid.IntRange(0, 2).Draw(t, "slots"), Words: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "words")}
		}), 0, 12, rapid.ID[Cause]).Draw(t, "causes")
		ranked := Rank(slices.Clone(list))
		if again := Rank(rapid.Permutation(list).Draw(t, "other order")); !slices.Equal(ranked, again) {
			t.Fatalf("%v\nand %v", ranked, again)
		}
		for _, c := range list {
			if !slices.ContainsFunc(ranked, c.repeats) {
				t.Fatalf("%v is not told by %v", c, ranked)
			}
		}
		for i, c := range ranked[min(1, len(ranked)):] {
			if slices.ContainsFunc(ranked[:i+1], c.repeats) {
				t.Fatalf("%v is told twice in %v", c, ranked)
			}
			if before := ranked[i]; before.Kind > c.Kind || before.Kind == c.Kind && before.Slots < c.Slots {
				t.Fatalf("%v before %v", before, c)
			}
		}
	})
}
