package order

import (
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/pool"
	"github.com/google/go-cmp/cmp"
)

// An operator would say nothing of a cause without a row.
func TestEachKindOfCauseHasARow(t *testing.T) {
	var want, got []pool.Kind
	want = append(pool.Kinds(), AccountLimit, Isolated)
	for _, row := range reasons {
		got = append(got, row.kind)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Agents and dashboards know these words, and an agent makes of each what it was to the operator, as far as a node has the same kind.
func TestAReasonMeansTheSameToOperatorAndAgent(t *testing.T) {
	lasting := []Reason{"Forbidden", "InstanceUnknown", "SubnetFull", "NoSubnet", "AccountLimit", "Isolated"}
	got := map[Reason]pool.Kind{}
	for _, r := range Reasons() {
		got[r] = r.Kind()
		if r.Lasts() != slices.Contains(lasting, r) {
			t.Errorf("%s lasts: %t", r, r.Lasts())
		}
	}
	want := map[Reason]pool.Kind{"Forbidden": pool.Forbidden, "InstanceUnknown": pool.WrongInstance, "CloudUnavailable": pool.Unavailable,
		"AddressLimit": pool.AddressLimit, "SubnetFull": pool.SubnetFull, "InterfaceLimit": pool.ENILimit, "NoSubnet": pool.NoSubnet,
		"Throttled": pool.Throttled, "AccountLimit": pool.ENILimit, "Isolated": pool.SubnetFull}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, k := range append(pool.Kinds(), AccountLimit, Isolated) {
		if r := ReasonOf(k); r != "" && got[r] != k && k != pool.CallFailed && k < AccountLimit {
			t.Errorf("%s is told as %s, which an agent takes for %s", k, r, got[r])
		}
	}
	for _, r := range []Reason{"", "Cosmic"} {
		if r.Kind() != pool.CallFailed || r.Lasts() {
			t.Errorf("%q, which no release has, is %s and lasts: %t", r, r.Kind(), r.Lasts())
		}
	}
}
