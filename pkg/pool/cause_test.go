package pool

import (
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/health"
	"github.com/google/go-cmp/cmp"
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
