package cloud

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/pool"
	"github.com/google/go-cmp/cmp"
)

// Dashboards and alerts ask for these words.
func TestOutcomesAreTheLabelsThatDashboardsAskFor(t *testing.T) {
	got := []Outcome{OutcomeOf(nil)}
	for _, kind := range Kinds() {
		got = append(got, OutcomeOf(fmt.Errorf("assign: %w", &Error{Op: "AssignAddresses", Kind: kind, Detail: "forbidden, not found"})))
	}
	got = append(got, OutcomeOf(errors.New("forbidden")))
	want := []Outcome{"ok", "throttled", "subnet-has-no-free-address", "limit-reached", "not-found", "forbidden", "cloud-unavailable", "outcome-unknown", "address-taken", "outcome-unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a kind means is read from its row by the engine, the agent, the metrics and what people are
// told. None of them has a list of its own in which a kind could be missing.
func TestEachKindHasAllItsProperties(t *testing.T) {
	optional := map[string]bool{"PauseMaking": true, "Advice": true, "RegionOnly": true}
	words := map[Outcome]bool{}
	for _, kind := range Kinds() {
		m := MeaningOf(&Error{Kind: kind})
		if m.Kind != kind || words[m.Outcome] {
			t.Errorf("%v is told as %v, in the word %q", kind, m.Kind, m.Outcome)
		}
		words[m.Outcome] = true
		for f, value := range reflect.ValueOf(m).Fields() {
			byAccount := f.Name == "Pause" && m.Pauses == ItsCalls
			if unset := value.IsZero(); !optional[f.Name] && unset != byAccount {
				t.Errorf("%v: %s is %v", kind, f.Name, value)
			}
		}
	}
}

// A kind that only a Region returns has all properties too, and the metrics of an agent, which makes
// no such call, have no series for it.
func TestAKindOfRegionsIsAKindLikeTheOthers(t *testing.T) {
	m := MeaningOf(fmt.Errorf("move: %w", &Error{Kind: ErrTaken}))
	if m.Kind != ErrTaken || m.Effect != PartialEffect || m.Again != MayPass || m.Pauses != ItsObject || !m.RegionOnly {
		t.Errorf("ErrTaken means %+v", m)
	}
	if kinds, of := Kinds(), NodeKinds(); len(of) != len(kinds)-1 || len(Outcomes()) != len(of) {
		t.Errorf("%v of %v are of a Cloud, with the words %v", of, kinds, Outcomes())
	}
}

// Not found is whatever the call names. Only that the subnet does not exist is mended by naming another one.
func TestTheCauseTellsPeopleMoreThanTheKind(t *testing.T) {
	for _, tt := range []struct {
		err    Error
		cause  pool.Kind
		advice string
	}{
		{Error{Kind: ErrNotFound, Why: NoSuchSubnet}, pool.NoSubnet, "cloud check"},
		{Error{Kind: ErrNotFound, Why: NoSuchInstance}, pool.WrongInstance, "cloud check"},
		{Error{Kind: ErrNotFound, Why: NoSuchInterface}, pool.CallFailed, "cloud check"},
		{Error{Kind: ErrNotFound}, pool.CallFailed, "cloud check"},
		{Error{Kind: ErrUnknown, Why: NoSuchSubnet}, pool.CallFailed, ""},
		{Error{Kind: ErrForbidden, Why: WrongClock}, pool.Forbidden, "clock"},
		{Error{Kind: ErrForbidden, Why: Unsigned}, pool.Forbidden, "no credentials"},
		{Error{Kind: ErrUnavailable, Why: Between}, pool.Unavailable, "NO_PROXY"},
	} {
		if m := MeaningOf(&tt.err); m.Cause != tt.cause || !strings.Contains(m.Advice, tt.advice) {
			t.Errorf("%+v is told as %s, with the advice %q", tt.err, m.Cause, m.Advice)
		}
	}
}

// The page tells people of each kind.
func TestThePageHasEachKind(t *testing.T) {
	page, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(string(page), "\n| Err"); rows != len(Kinds()) {
		t.Errorf("the table of DESIGN.md has %d kinds of %d", rows, len(Kinds()))
	}
}
