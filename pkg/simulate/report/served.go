package report

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/simulate"
)

// The groups of columns about a load whose pods come at once.
const (
	allServed = "all served"
	changes   = "changes"
)

// servedColumns is the table about how long it took until every pod had its address.
func servedColumns() sheet {
	number := func(of func(simulate.Served) float64) func(simulate.Result) float64 {
		return func(r simulate.Result) float64 {
			if r.Served == nil { // cellOf shows no number then
				return 0
			}
			return of(*r.Served)
		}
	}
	return sheet{
		{allServed, "after", "How long it took until the last pod had its address; all that was played if one has none.",
			number(func(s simulate.Served) float64 { return secondsOf(s.Reached) }), spanOf},
		{allServed, "bound", "How long it takes at least: the requests without which pods get no addresses pass the cloud's limits no sooner.",
			number(func(s simulate.Served) float64 { return secondsOf(s.Bound) }), spanOf},
		{allServed, "ratio", "How many times the bound it took.",
			number(simulate.Served.Ratio), ratioText},
		{allServed, "plan", "The bound of all that the mode orders for these pods, what it keeps ready among it.",
			number(func(s simulate.Served) float64 { return secondsOf(s.PlanBound) }), spanOf},
		{changes, "needed", "Requests that change something: those without which pods get no addresses.",
			number(func(s simulate.Served) float64 { return float64(s.Needed) }), countText},
		{changes, "planned", "All that the mode orders for these pods.",
			number(func(s simulate.Served) float64 { return float64(s.Planned) }), countText},
		{changes, "made", "Those that passed until the last pod had its address.",
			number(func(s simulate.Served) float64 { return float64(s.Made) }), countText},
		{changes, "refused", "Requests that the cloud's limits refused until then, those that only look among them.",
			number(func(s simulate.Served) float64 { return float64(s.Refused) }), countText},
	}
}

// ratioText writes how many times something is.
func ratioText(n float64) string {
	if n <= 0 {
		return none
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}

// requestHeads are the columns of the table of a setting's requests.
var requestHeads = [...]string{"needed", "planned", "passed", "refused", "bound"}

// requestRow is a kind of request with its numbers.
type requestRow struct {
	Name  string
	Cells [len(requestHeads)]string
	Last  bool // it is what the bound comes from
}

// requestRows returns those that there were or should be.
func requestRows(s simulate.Served) []requestRow {
	var list []requestRow
	for _, r := range s.Requests {
		if r.Planned+r.Passed+r.Refused == 0 {
			continue
		}
		row := requestRow{Name: r.Name, Last: r.Name == s.By}
		for i, n := range []int{r.Needed, r.Planned, r.Passed, r.Refused} {
			row.Cells[i] = countText(float64(n))
		}
		row.Cells[len(row.Cells)-1] = durationText(r.Bound)
		list = append(list, row)
	}
	return list
}

// printRequests prints what requests a setting made until all were served.
func printRequests(out *bytes.Buffer, r simulate.Result) error {
	names, lines := []string{printable(r.Name)}, [][]string{nil}
	for _, head := range requestHeads {
		lines[0] = append(lines[0], strings.ToUpper(head))
	}
	for _, row := range requestRows(*r.Served) {
		names = append(names, "  "+printable(row.Name))
		lines = append(lines, row.Cells[:])
	}
	if err := printLines(out, names, lines); err != nil {
		return err
	}
	switch by := r.Served.By; {
	case by != "":
		fmt.Fprintf(out, "  the bound is that of %s\n", printable(by))
	case r.Served.Bound > 0:
		out.WriteString("  the bound is that of all calls together\n")
	}
	if !r.Served.All {
		out.WriteString("  not all pods had an address at the end\n")
	}
	return nil
}
