// Package table writes what benchmarks measured as tables.
package table

import (
	"slices"
	"strings"
)

// Markdown renders a table, of which the first line is the head; it reads well on a terminal too.
func Markdown(table [][]string) string {
	width := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	rule := make([]string, len(width))
	for i, w := range width {
		rule[i] = strings.Repeat("-", w)
	}
	var b strings.Builder
	for _, line := range slices.Insert(slices.Clone(table), 1, rule) {
		for i, cell := range line {
			b.WriteString("| " + cell + strings.Repeat(" ", width[i]-len([]rune(cell))) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}
