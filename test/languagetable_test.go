package test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
)

// languageTable is what was counted, a row for each package and document, and their sum.
// Documents without a finding have none.
type languageTable struct {
	rows     []string
	measures []measure
	counts   map[string]map[string]tally // by row and measure
}

type tally struct{ found, of int }

func (n tally) cell(m measure) string {
	switch {
	case !m.share:
		return fmt.Sprint(n.found)
	case n.of == 0:
		return "-"
	}
	return fmt.Sprintf("%d/%d %d%%", n.found, n.of, 100*n.found/n.of)
}

func (l *languageTable) add(p part, m measure, found, of int) {
	if p.sources == nil && found == 0 {
		return
	}
	if l.counts[p.name] == nil {
		l.counts[p.name], l.rows = map[string]tally{}, append(l.rows, p.name)
	}
	sum := l.counts["all"][m.name]
	l.counts["all"][m.name], l.counts[p.name][m.name] = tally{sum.found + found, sum.of + of}, tally{found, of}
}

func (l *languageTable) String() string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head, limits := "", "limit"
	for _, m := range l.measures {
		head += "\t" + m.name
		limits += fmt.Sprintf("\t%d", m.limit)
		if m.share {
			limits += "%"
		}
	}
	fmt.Fprintf(w, "%s\n%s\n", head, limits)
	for _, row := range append(l.rows, "all") {
		fmt.Fprint(w, row)
		for _, m := range l.measures {
			fmt.Fprint(w, "\t", l.counts[row][m.name].cell(m))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	return b.String()
}

// linesOfGo counts the lines of the tree by what they are for.
func linesOfGo(t *testing.T) string {
	t.Helper()
	var product, support, tests, rest, all int
	for _, s := range parsed(t, "..") {
		text, err := os.ReadFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		n := bytes.Count(text, []byte("\n"))
		all += n
		ours := strings.HasPrefix(s.file, "../pkg/") || strings.HasPrefix(s.file, "../plugins/")
		switch {
		case strings.HasSuffix(s.file, "_test.go"):
			tests += n
		case strings.HasPrefix(s.file, "../test/"), ours && strings.HasSuffix(s.pkg, "test"):
			support += n
		case ours:
			product += n
		default:
			rest += n
		}
	}
	return fmt.Sprintf("product %d, test support %d, tests %d, other (conf/, scripts/) %d, all %d", product, support, tests, rest, all)
}
