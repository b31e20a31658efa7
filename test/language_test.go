package test

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

var lower = flag.Bool("lower", false, "write what became less into test/language.txt")

// part is a package, or a document with its text.
type part struct {
	name    string
	sources []source
	text    string
}

// finding is one place that a measure counts.
type finding struct{ at, what string }

func (f finding) String() string { return f.at + ": " + f.what }

func (s source) at(n ast.Node, format string, args ...any) finding {
	at := s.fset.Position(n.Pos())
	return finding{fmt.Sprintf("%s:%d", strings.TrimPrefix(at.Filename, "../"), at.Line), fmt.Sprintf(format, args...)}
}

// measure is something that can be counted about how a package speaks. The limits are
// where the models and the best packages of our own are, not tighter. Counted by this
// test: corerad 72a0d8d, kilo 944dff57, metallb 7938d3f89, karpenter-provider-aws
// 1d927085d, amazon-vpc-cni-k8s b52188387.
type measure struct {
	name  string
	limit int // in percent, or a number where share is false
	share bool
	from  int // of fewer a share says nothing
	find  func(part) (found []finding, of int)
}

func measures(t *testing.T) []measure {
	wrong, _ := glossary(t)
	return []measure{
		// The models have 3 to 13 %, corerad/internal/crhttp 2 of 5; our cni, netconf, node and
		// host 23 to 32 %.
		{name: "functions", limit: 33, share: true, from: 11, find: oneWordFunctions},
		// The models have 2 to 17 %, but corerad 83 %; our host, cni and node 35 to 44 %.
		{name: "methods", limit: 50, share: true, from: 11, find: oneWordMethods},
		// corerad 5 %, vpc-cni 22, karpenter 32, kilo 45, metallb 46; our cni 32, agent 44, engine 46.
		{name: "silent", limit: 50, share: true, from: 5, find: silentFunctions},
		// The models have 0 to 7 %, our agent 4 %.
		{name: "letters", limit: 7, share: true, from: 50, find: farLetters},
		// metallb/internal/bgp/frr and karpenter's instancetype have 3. Names of the language
		// are never shadowed: names_test.go.
		{name: "shadows", limit: 3, find: counted(shadowed)},
		{name: "words", limit: 0, find: counted(func(p part) []finding { return wrongWords(p, wrong) })},
	}
}

func counted(find func(part) []finding) func(part) ([]finding, int) {
	return func(p part) ([]finding, int) { return find(p), 0 }
}

// figure is what a part has of a measure: a share is rounded up, so that one that is a bit
// over the limit is over it.
func (m measure) figure(found, of int) int {
	switch {
	case !m.share:
		return found
	case of < m.from:
		return 0
	}
	return (100*found + of - 1) / of
}

// stale is by how much an entry may be above what is there: it need not be lowered with
// every function.
const stale = 3

// judge compares a figure with its entry in language.txt, which is 0 where there is none,
// and returns the entry as it should be, with what is wrong.
func (m measure) judge(entry, figure int) (should int, wrong string) {
	switch most := max(entry, m.limit); {
	case figure > most:
		return entry, fmt.Sprintf("%d, may have %d", figure, most)
	case entry > 0 && figure <= m.limit:
		return 0, fmt.Sprintf("%d, needs no entry: go test ./test -run Language -lower", figure)
	case entry > figure+stale:
		return figure, fmt.Sprintf("%d, its entry says %d: go test ./test -run Language -lower", figure, entry)
	}
	return min(entry, figure), ""
}

// Each part may have what language.txt says, which only becomes less, or what the limits
// say. With -v a table of all is printed.
func TestLanguageOfPackagesOnlyImproves(t *testing.T) {
	all := measures(t)
	table := languageTable{measures: all, counts: map[string]map[string]tally{"all": {}}}
	entries, should := allowed(t), map[string]int{}
	for _, p := range parts(t) {
		for _, m := range all {
			key := p.name + " " + m.name
			found, of := m.find(p)
			table.add(p, m, len(found), of)
			entry, wrong := m.judge(entries[key], m.figure(len(found), of))
			if wrong != "" && (entry == entries[key] || !*lower) {
				t.Errorf("%s: %s\n%s", key, wrong, firstOf(found))
			}
			should[key] = entry
			delete(entries, key)
		}
	}
	for key := range entries {
		if !*lower {
			t.Errorf("test/language.txt: there is no %s: go test ./test -run Language -lower", key)
		}
	}
	if *lower {
		keep(t, should)
	}
	t.Logf("lines of Go: %s\n%s", linesOfGo(t), table.String())
}

func firstOf(list []finding) string {
	const most = 20
	var b strings.Builder
	for _, f := range list[:min(most, len(list))] {
		fmt.Fprintf(&b, "\t%s\n", f)
	}
	if len(list) > most {
		fmt.Fprintf(&b, "\tand %d more\n", len(list)-most)
	}
	return b.String()
}

// parts returns the packages in order, then the documents.
func parts(t *testing.T) (list []part) {
	t.Helper()
	packages := map[string]*part{}
	for _, s := range parsed(t, "../pkg", "../plugins") {
		if strings.HasSuffix(s.file, "_test.go") {
			continue
		}
		name := strings.TrimPrefix(path.Dir(s.file), "../")
		if packages[name] == nil {
			packages[name] = &part{name: name}
		}
		packages[name].sources = append(packages[name].sources, s)
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		list = append(list, *packages[name])
	}
	return append(list, documents(t)...)
}
