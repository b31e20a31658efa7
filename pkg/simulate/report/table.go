package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
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
		fmt.Fprintf(&out, "%-8s %s\n", f.About, printable(f.Text))
	}
	out.WriteString("\n")
	if len(r.Results) == 0 {
		out.WriteString("no setting was played\n")
	} else if err := r.printSheets(&out); err != nil {
		return err
	}
	if width <= 0 {
		width = usualWidth
	}
	r.printSparks(&out, width)
	_, err := w.Write(out.Bytes())
	return err
}

// printSheets prints all tables; what takes long is of one setting after the other.
func (r Report) printSheets(out *bytes.Buffer) error {
	lowest := false
	for i, s := range sheetsOf(r.Results) {
		if i > 0 {
			out.WriteString("\n")
		}
		names := []string{"", "SETTING"}
		for _, one := range r.Results {
			names = append(names, printable(one.Name))
		}
		cells, marked := markLowest(s.cellRows(r.Results))
		lowest = lowest || marked
		if err := printLines(out, names, append(s.headLines(), cells...)); err != nil {
			return err
		}
	}
	if lowest {
		out.WriteString("* the lowest of its column\n")
	}
	for _, one := range r.Results {
		if one.Served == nil && len(one.Usage) > 0 {
			out.WriteString("\n")
			if err := printUsage(out, one); err != nil {
				return err
			}
		}
		if one.Served != nil {
			out.WriteString("\n")
			if err := printRequests(out, one); err != nil {
				return err
			}
		}
		if one.Topologies != nil {
			out.WriteString("\n")
			if err := printHosted(out, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// printLines prints names to the left, and numbers to the right, so that they compare.
func printLines(out *bytes.Buffer, names []string, lines [][]string) error {
	wide := widestOf(names)
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, len(margin), ' ', tabwriter.AlignRight)
	for i, line := range lines {
		fmt.Fprintf(t, "%s\t%s\t\n", padRight(names[i], wide), strings.Join(line, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		line = strings.TrimPrefix(line, margin) // of the first column
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return nil
}

// headLines returns the lines above the numbers: groups, each over its first column,
// and columns.
func (s sheet) headLines() [][]string {
	lines := make([][]string, 2)
	group := ""
	for _, c := range s {
		over := ""
		if c.group != group {
			group, over = c.group, strings.ToUpper(c.group)
		}
		lines[0] = append(lines[0], over)
		lines[1] = append(lines[1], strings.ToUpper(c.name))
	}
	return lines
}

// markLowest returns the cells with a star at the lowest, and whether there is one.
func markLowest(rows [][]cell) (lines [][]string, lowest bool) {
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

func widestOf(words []string) int {
	wide := 0
	for _, w := range words {
		wide = max(wide, utf8.RuneCountInString(w))
	}
	return wide
}

// padRight fills a word up to a width.
func padRight(word string, width int) string {
	return word + strings.Repeat(" ", max(width-utf8.RuneCountInString(word), 0))
}
