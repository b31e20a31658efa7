package test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// keyNames are exported names with one of the glossary's wrong words that the configuration has as a key.
var keyNames = []string{"OrphanAge"}

// wrongNames finds the glossary's wrong words in the exported names that a package declares. What
// files and metrics are called besides is their tags and texts, which programs read.
func wrongNames(p part, wrong *regexp.Regexp) (found []finding) {
	for _, s := range p.sources {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt:
				return false
			case *ast.FuncDecl:
				found = append(found, wrongName(s, n.Name, wrong)...)
			case *ast.TypeSpec:
				found = append(found, wrongName(s, n.Name, wrong)...)
			case *ast.ValueSpec:
				for _, name := range n.Names {
					found = append(found, wrongName(s, name, wrong)...)
				}
			case *ast.Field:
				for _, name := range n.Names {
					found = append(found, wrongName(s, name, wrong)...)
				}
			}
			return true
		})
	}
	return found
}

func wrongName(s source, name *ast.Ident, wrong *regexp.Regexp) []finding {
	if !name.IsExported() || slices.Contains(keyNames, name.Name) {
		return nil
	}
	words := regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name.Name, "$1 $2")
	if word := wrong.FindString(words); word != "" {
		return []finding{s.at(name, "%s: %s", name.Name, strings.ToLower(word))}
	}
	return nil
}

func TestExportedNamesUseTheGlossarysWords(t *testing.T) {
	wrong, say := glossary(t)
	for _, p := range parts(t) {
		for _, f := range wrongNames(p, wrong) {
			word := f.what[strings.LastIndex(f.what, " ")+1:]
			t.Errorf("%s; the glossary says %s", f, say[strings.TrimSuffix(word, "s")])
		}
	}
}

func TestTheWordsOfTheGlossaryAreFoundInNames(t *testing.T) {
	wrong, _ := glossary(t)
	p := part{sources: []source{parsedText(t, "names.go", `package names
type Waiter struct { Deadline, OrphanAge int; isForeign bool }
func (w Waiter) GoAnew(resting bool) { const Wish = 1; _ = Wish }
var ForeignENIs, DeadlineOf int
`)}}
	var got []string
	for _, f := range wrongNames(p, wrong) {
		got = append(got, f.what)
	}
	if want := []string{"Waiter: waiter", "GoAnew: anew", "ForeignENIs: foreign"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
