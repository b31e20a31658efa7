package cloud

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Dashboards and alerts ask for these words.
func TestOutcomesAreTheLabelsThatDashboardsAskFor(t *testing.T) {
	got := []Outcome{OutcomeOf(nil)}
	for _, kind := range append(Kinds(), ErrTaken) {
		got = append(got, OutcomeOf(fmt.Errorf("assign: %w", &Error{Op: "AssignAddresses", Kind: kind, Detail: "forbidden, not found"})))
	}
	got = append(got, OutcomeOf(errors.New("forbidden")))
	want := []Outcome{"ok", "throttled", "subnet-has-no-free-address", "limit-reached", "not-found", "forbidden", "cloud-unavailable", "outcome-unknown", "address-taken", "outcome-unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
