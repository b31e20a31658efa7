package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enipool/enipool/pkg/simulate"
)

// hosting is the report of nodes with pods of topologies, made up: one setting has moved some, another has none of them.
func hosting() Report {
	r := sample(3, 3)
	second := simulate.Seconds(time.Second)
	first := simulate.Placed{Pods: 1200, Without: 3, P50: 4 * second, P99: 41 * second, Max: 59 * second, Made: 50, Assigned: 1150, Requests: map[string]int{"Create": 50, "Assign": 1150}}
	r.Results[0].Topologies = &simulate.HostedResult{First: first, Moved: &simulate.Placed{Pods: 24, Assigned: 24, Unassigned: 24, Requests: map[string]int{"<Assign>": 24}}}
	r.Results[1].Topologies = &simulate.HostedResult{First: first, Moved: &simulate.Placed{Pods: 24, Without: 24}} // the time was up
	return r
}

// The page and the terminal tell the same of pods of topologies.
func TestPageTellsOfPodsOfTopologiesAsTheTerminalDoes(t *testing.T) {
	r := hosting()
	elements := parsed(t, asHTML(t, r))
	if len(elements["table"]) != 1+2 {
		t.Fatalf("%d tables", len(elements["table"]))
	}
	terminal := strings.Join(strings.Fields(table(t, r, 20)), " ")
	for i, at := range elements["table"][1:] {
		var rows []string
		for n := range at.Descendants() {
			if n.Data == "tr" {
				var cells []string
				for c := range n.ChildNodes() {
					cells = append(cells, content(c))
				}
				rows = append(rows, strings.TrimSpace(strings.Join(cells, " ")))
			}
		}
		rows[0] = strings.ToUpper(rows[0])
		if want := r.Results[i].Name + ", pods of topologies " + strings.Join(rows, " "); !strings.Contains(terminal, want) {
			t.Errorf("the page has %q, and the terminal\n%s", want, terminal)
		}
	}
	var notes []string
	for _, n := range elements["p"] {
		if text := content(n); attribute(n, "class") == "note" && strings.Contains(text, ": ") {
			notes = append(notes, text)
		}
	}
	want := []string{"at first: 1150 Assign, 50 Create", "moved: 24 <Assign>", "at first: 1150 Assign, 50 Create"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("requests, -want +got:\n%s", diff)
	}
}
