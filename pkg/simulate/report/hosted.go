package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/simulate"
)

// printHosted prints how pods of topologies fared with a setting: when they came, and when nodes were drained of them.
func printHosted(out *bytes.Buffer, r simulate.Result) error {
	names := []string{printable(r.Name) + ", pods of topologies"}
	lines := [][]string{strings.Fields("PODS WITHOUT P50 P99 MAX ENIS ASSIGNED UNASSIGNED REQUESTS")}
	var costs []string
	add := func(name string, p simulate.Placed) {
		requests, words := listRequests(p.Requests)
		names = append(names, "  "+name)
		line := []string{countText(float64(p.Pods)), countText(float64(p.Without)), durationText(p.P50), durationText(p.P99), durationText(p.Max)}
		for _, n := range []int{p.Made, p.Assigned, p.Unassigned, requests} {
			line = append(line, countText(float64(n)))
		}
		// Of those that came when the time was up nothing was asked for yet.
		if lines = append(lines, line); len(words) > 0 {
			costs = append(costs, "  "+name+": "+strings.Join(words, ", "))
		}
	}
	add("at first", r.Topologies.First)
	if r.Topologies.Moved != nil {
		add("moved", *r.Topologies.Moved)
	}
	if err := printLines(out, names, lines); err != nil {
		return err
	}
	for _, line := range costs {
		out.WriteString(line + "\n")
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
