package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/simulate"
)

// hostedHeads are the columns of the table of a setting's pods of topologies.
var hostedHeads = [...]string{"pods", "without", "p50", "p99", "max", "ENIs", "assigned", "unassigned", "requests"}

// hostedRow is how such pods fared that came together.
type hostedRow struct {
	Name  string
	Cells [len(hostedHeads)]string
	Costs string // each kind of request with its number
}

// hostedRows returns how pods of topologies fared: when they came, and when nodes were drained of them.
func hostedRows(r simulate.HostedResult) []hostedRow {
	rows := []hostedRow{hostedRowOf("at first", r.First)}
	if r.Moved != nil {
		rows = append(rows, hostedRowOf("moved", *r.Moved))
	}
	return rows
}

func hostedRowOf(name string, p simulate.Placed) hostedRow {
	requests, words := listRequests(p.Requests)
	row := hostedRow{Name: name, Costs: strings.Join(words, ", ")}
	cells := []string{countText(float64(p.Pods)), countText(float64(p.Without)), durationText(p.P50), durationText(p.P99), durationText(p.Max)}
	for _, n := range []int{p.Made, p.Assigned, p.Unassigned, requests} {
		cells = append(cells, countText(float64(n)))
	}
	copy(row.Cells[:], cells)
	return row
}

// printHosted prints how pods of topologies fared with a setting.
func printHosted(out *bytes.Buffer, r simulate.Result) error {
	names, lines := []string{printable(r.Name) + ", pods of topologies"}, [][]string{nil}
	for _, head := range hostedHeads {
		lines[0] = append(lines[0], strings.ToUpper(head))
	}
	rows := hostedRows(*r.Topologies)
	for _, row := range rows {
		names = append(names, "  "+row.Name)
		lines = append(lines, row.Cells[:])
	}
	if err := printLines(out, names, lines); err != nil {
		return err
	}
	for _, row := range rows {
		if row.Costs != "" { // of those that came when the time was up nothing was asked for yet
			fmt.Fprintf(out, "  %s: %s\n", row.Name, row.Costs)
		}
	}
	return nil
}

// listRequests returns how many there are, and each action with its number.
func listRequests(of map[string]int) (sum int, words []string) {
	for _, action := range slices.Sorted(maps.Keys(of)) {
		sum += of[action]
		words = append(words, fmt.Sprintf("%s %s", countText(float64(of[action])), printable(action)))
	}
	return sum, words
}
