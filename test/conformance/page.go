package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/test/bench/table"
)

// result is a variant and what became of the specs on it.
type result struct {
	variant variant
	began   time.Time
	specs   []spec
}

// count returns how many specs of a group had an outcome; every group if it is empty.
func (r result) count(group string, o outcome) int {
	n := 0
	for _, s := range r.specs {
		if (group == "" || s.group == group) && s.outcome == o {
			n++
		}
	}
	return n
}

// page is the whole of CONFORMANCE.md: only what was run is on it.
func page(head string, results []result) string {
	var b strings.Builder
	b.WriteString(head)
	for _, r := range results {
		fmt.Fprintf(&b, "- **%s**, run on %s: %s\n", r.variant.name, r.began.Format(time.DateOnly), r.variant.about)
	}
	b.WriteString("\n" + table.Markdown(countsTable(results)))
	for _, r := range results {
		writeSpecs(&b, "Failed with "+r.variant.name, r.specs, failed)
	}
	// What a spec wants of a cluster is the same in all of them.
	if len(results) > 0 {
		writeSpecs(&b, "Skipped by themselves with "+results[0].variant.name, results[0].specs, skipped)
	}
	return b.String()
}

// countsTable has a line for each group of specs, and a column for each variant.
func countsTable(results []result) [][]string {
	head, all := []string{"specs"}, []string{"all"}
	var groups []string
	for _, r := range results {
		head = append(head, r.variant.name)
		all = append(all, r.cell(""))
		for _, s := range r.specs {
			groups = append(groups, s.group)
		}
	}
	slices.Sort(groups)
	lines := [][]string{head}
	for _, g := range slices.Compact(groups) {
		line := []string{g}
		for _, r := range results {
			line = append(line, r.cell(g))
		}
		lines = append(lines, line)
	}
	return append(lines, all)
}

func (r result) cell(group string) string {
	ok, bad, out := r.count(group, passed), r.count(group, failed), r.count(group, skipped)
	text := fmt.Sprintf("%d of %d passed", ok, ok+bad)
	if out > 0 {
		text += fmt.Sprintf(", %d skipped", out)
	}
	return text
}

// writeSpecs writes a section of those with the outcome, or none where there are none.
func writeSpecs(b *strings.Builder, title string, specs []spec, o outcome) {
	specs = slices.DeleteFunc(slices.Clone(specs), func(s spec) bool { return s.outcome != o })
	if len(specs) == 0 {
		return
	}
	slices.SortFunc(specs, func(x, y spec) int { return strings.Compare(x.name, y.name) })
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, s := range specs {
		fmt.Fprintf(b, "- %s\n  `%s`\n", s.name, strings.ReplaceAll(s.reason, "`", "'"))
	}
}
