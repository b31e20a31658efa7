package report

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/simulate"
)

// started is the report of nodes that began at once in a cloud, made up.
func started() Report {
	r := sample(2, 3)
	calls := map[string][]simulate.Price{
		"AssignAddresses": {{Action: "Assign", Each: 10}},
		"CreateInterface": {{Action: "Create"}, {Action: "Attach", Later: true}, {Action: "Describe", Describes: true, Count: 2, Later: true}},
	}
	r.Cloud.Prices = pricesOf(calls)
	r.Cloud.Buckets = bucketsOf(map[string]sim.Bucket{
		"Attach": {Burst: 50, Every: 200 * time.Millisecond}, "Create": {Burst: 50, Every: 200 * time.Millisecond},
		"Describe": {Burst: 1, Every: time.Second}, "Free": {}, "Reserve": {Burst: 9, Every: time.Second}, // which no call makes
	}, calls)
	second := simulate.Seconds(time.Second)
	r.Results[0].Served = &simulate.Served{
		All: true, Reached: 480 * second, Bound: 390 * second, By: "Attach", Needed: 4000, Planned: 6000, Made: 5000, Refused: 27_470,
		PlanBound: 590 * second,
		Requests: []simulate.Request{
			{Name: "Attach", Changes: true, Needed: 2000, Planned: 3000, Passed: 2500, Refused: 7000, Bound: 390 * second},
			{Name: "Create", Changes: true, Needed: 2000, Planned: 3000, Passed: 2500, Refused: 20_000, Bound: 384 * second},
			{Name: "Describe", Passed: 4000, Refused: 470},
			{Name: "Delete", Changes: true},
		},
	}
	r.Results[1].Served = &simulate.Served{Reached: 3600 * second, Bound: 60 * second, Refused: 3}
	return r
}

func TestTableOfAStart(t *testing.T) {
	golden(t, "start.txt", []byte(table(t, started(), 20)))
}

func TestJSONOfAStart(t *testing.T) {
	text := string(asJSON(t, started()))
	for _, want := range []string{`"reached": 480,`, `"by": "Attach",`, `"planBound": 590,`, `"each": 10,`, `"later": true`, `"request": "Describe",`} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s", want)
		}
	}
}

func TestPageOfAStartHasItsTables(t *testing.T) {
	elements := parsed(t, asHTML(t, started()))
	if len(elements["table"]) != 2+2 {
		t.Fatalf("%d tables", len(elements["table"]))
	}
	page := content(elements["main"][0])
	for _, want := range []string{"all served", "1.23", "9m50s", "is the bound", "Not all pods had an address at the end.", "20.0k"} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if want := len(started().facts()) + len(usualColumns()) + len(servedColumns()); len(elements["dt"]) != want {
		t.Errorf("%d explanations, want %d", len(elements["dt"]), want)
	}
}
