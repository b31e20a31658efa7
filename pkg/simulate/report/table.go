package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/enipool/enipool/pkg/simulate"
)

// usualWidth is the length of sparklines if none is asked for.
const usualWidth = 100

// margin is left of each column.
const margin = "  "

// Table writes the report for a terminal: what was played, a row for each setting,
// and sparklines of at most width characters, 100 if it is 0.
func (r Report) Table(w io.Writer, width int) error {
	var out bytes.Buffer
	for _, f := range r.facts() {
		fmt.Fprintf(&out, "%-8s %s\n", f.About, plain(f.Text))
	}
	out.WriteString("\n")
	if len(r.Results) == 0 {
		out.WriteString("no setting was played\n")
	} else if err := printRows(&out, r.Results); err != nil {
		return err
	}
	if width <= 0 {
		width = usualWidth
	}
	r.printSparks(&out, width)
	_, err := w.Write(out.Bytes())
	return err
}

// printRows prints names to the left, and numbers to the right, so that they compare.
func printRows(out *bytes.Buffer, results []simulate.Result) error {
	names := []string{"", "SETTING"}
	for _, r := range results {
		names = append(names, plain(r.Name))
	}
	wide := widest(names)
	cells, lowest := printed(rows(results))
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, len(margin), ' ', tabwriter.AlignRight)
	for i, line := range append(heads(), cells...) {
		fmt.Fprintf(t, "%s\t%s\t\n", leftward(names[i], wide), strings.Join(line, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		line = strings.TrimPrefix(line, margin) // of the first column
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if lowest {
		out.WriteString("* the lowest of its column\n")
	}
	return nil
}

// heads returns the lines above the numbers: groups, each over its first column,
// and columns.
func heads() [][]string {
	lines := make([][]string, 2)
	group := ""
	for _, c := range columns() {
		over := ""
		if c.group != group {
			group, over = c.group, strings.ToUpper(c.group)
		}
		lines[0] = append(lines[0], over)
		lines[1] = append(lines[1], strings.ToUpper(c.name))
	}
	return lines
}

// printed returns the cells with a star at the lowest, and whether there is one.
func printed(rows [][]cell) (lines [][]string, lowest bool) {
	for _, row := range rows {
		var line []string
		for _, c := range row {
			if c.Lowest {
				c.Text, lowest = "*"+c.Text, true
			}
			line = append(line, c.Text)
		}
		lines = append(lines, line)
	}
	return lines, lowest
}

func widest(words []string) int {
	wide := 0
	for _, w := range words {
		wide = max(wide, utf8.RuneCountInString(w))
	}
	return wide
}

// leftward fills a word up to a width.
func leftward(word string, width int) string {
	return word + strings.Repeat(" ", max(width-utf8.RuneCountInString(word), 0))
}
