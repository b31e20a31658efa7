package report

import (
	"bytes"
	"strconv"

	"github.com/enipool/enipool/pkg/simulate"
)

// usageHeads are the columns of the table of what a setting makes of the account's rates.
var usageHeads = []string{"A SECOND", "LIMIT", "SHARE", "REFUSED"}

// printUsage prints how much of the account's rate of each kind of request a setting used.
func printUsage(out *bytes.Buffer, r simulate.Result) error {
	names, lines := []string{printable(r.Name)}, [][]string{usageHeads}
	for _, u := range r.Usage {
		limit, share := none, none
		if u.Limit > 0 {
			limit, share = strconv.FormatFloat(u.Limit, 'f', -1, 64), strconv.FormatFloat(100*u.Share(), 'f', 1, 64)+"%"
		}
		names = append(names, "  "+printable(u.Name))
		lines = append(lines, []string{strconv.FormatFloat(u.PerSecond, 'f', 2, 64), limit, share, countText(float64(u.Refused))})
	}
	return printLines(out, names, lines)
}
