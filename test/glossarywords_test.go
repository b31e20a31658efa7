package test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A banned word is wrong in every name and comment of the Go files, exported or not, tests among them.
type banned struct {
	word  *regexp.Regexp
	say   string
	only  []string          // the folders where it is wrong; empty: all
	but   map[string]string // folders where it means something else, and what
	names bool              // only names are read: comments may have it, as plain English does
}

// bannedWords are those words of the glossary's second column that mean nothing else in code. Its other words do: a link is
// dead, a table foreign, a lock given back.
var bannedWords = []banned{
	{word: word("books?"), say: "node cache, node state"},
	{word: word("blockers?"), say: "cause"},
	{word: word("obstacles?"), say: "cause"},
	{word: word("troubles?"), say: "cause"},
	{word: word("complaints?"), say: "cause"},
	{word: word("orphans?"), say: "stale allocation", but: map[string]string{
		"test/kube/pause": "a process whose parent has ended",
	}},
	{word: word("waiters?"), say: "pending ADD"},
	{word: word("wish(?:es)?"), say: "target, demand, need"},
	{word: word("goals?"), say: "target, demand, need"},
	{word: word("glances?"), say: "describe"},
	{word: word("sights?"), say: "describe"},
	{word: word("surveys?"), say: "describe"},
	{word: word("own among them"), say: "primary ENI"},
	// What the kernel should hold is wanted too; the strategy of package scale has the word in its file.
	{word: word("wanted"), say: "target, demand, need", names: true, only: []string{"pkg/agent", "pkg/pool"}},
	{word: word("machines?"), say: "instance, node", names: true, but: map[string]string{
		"pkg/ipam":           "a state machine that makes a test's moves",
		"pkg/order":          "a state machine that makes a test's moves",
		"pkg/host":           "the computer, as /proc shows it",
		"pkg/config/kubelet": "the computer that the test runs on",
		"scripts/image":      "a processor, as in the header of an ELF file",
		"test/bench":         "the computer that is measured",
	}},
}

// word matches a word, or one of some, in whatever letters.
func word(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`) }

// isBelow tells whether a file is one of the folders' or below.
func isBelow(file string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(file, folder+"/") })
}

func (b banned) applies(file string) bool {
	for folder := range b.but {
		if isBelow(file, folder) {
			return false
		}
	}
	return len(b.only) == 0 || isBelow(file, b.only...)
}

// eachName calls f with every name that the file declares: what declared finds, fields, methods and labels.
func eachName(file *ast.File, f func(*ast.Ident)) {
	ast.Inspect(file, func(n ast.Node) bool {
		var names []*ast.Ident
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.FuncType: // its fields come
		case *ast.Field:
			names = n.Names
		case *ast.LabeledStmt:
			names = append(names, n.Label)
		default:
			names = declared(n)
		}
		for _, name := range names {
			f(name)
		}
		return true
	})
}

var humps = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// wordsOf splits a name into its words.
func wordsOf(name string) string {
	return humps.ReplaceAllString(strings.ReplaceAll(name, "_", " "), "$1$3 $2$4")
}

// usesOf finds the word in the names and the comments of a file.
func (b banned) usesOf(s source) (found []finding) {
	eachName(s.ast, func(name *ast.Ident) {
		if b.word.MatchString(wordsOf(name.Name)) && !slices.Contains(keyNames, name.Name) {
			found = append(found, s.at(name, "%s", name.Name))
		}
	})
	if b.names {
		return found
	}
	for _, group := range s.ast.Comments {
		for _, c := range group.List {
			if w := b.word.FindString(c.Text); w != "" {
				found = append(found, s.at(c, "a comment with %q", w))
			}
		}
	}
	return found
}

func TestNamesAndCommentsHaveNoBannedWords(t *testing.T) {
	for _, s := range parsed(t, "../conf", "../pkg", "../plugins", "../scripts", "../test") {
		file := strings.TrimPrefix(s.file, "../")
		for _, b := range bannedWords {
			if !b.applies(file) {
				continue
			}
			for _, f := range b.usesOf(s) {
				t.Errorf("%s; the glossary says %s", f, b.say)
			}
		}
	}
}

// An exception that nothing needs any more would hide the next mistake.
func TestExceptionsToBannedWordsAreNeeded(t *testing.T) {
	all := parsed(t, "../conf", "../pkg", "../plugins", "../scripts", "../test")
	for _, b := range bannedWords {
		for folder := range b.but {
			if !slices.ContainsFunc(all, func(s source) bool {
				return isBelow(strings.TrimPrefix(s.file, "../"), folder) && len(b.usesOf(s)) > 0
			}) {
				t.Errorf("nothing in %s has %s", folder, b.word)
			}
		}
	}
}

func TestBannedWordsAreFoundWhereverTheyAre(t *testing.T) {
	s := parsedText(t, "names.go", `package names
// An orphan is told.
type cache struct { oldBook, notebook int; Blockers []string }
func (c cache) troubles() { // no troubleshooting
	wish, ok := 1, true
	for _, goal := range []int{wish} { _ = goal }
	_ = ok
	OrphanAge := "a book"
	_ = OrphanAge
}
var SURVEYResult, aws_wishes, machineID, machinery, needWanted int
`)
	var got []string
	for _, b := range bannedWords {
		for _, f := range b.usesOf(s) {
			got = append(got, f.String())
		}
	}
	want := []string{
		"names.go:3: oldBook", "names.go:3: Blockers", "names.go:4: troubles", `names.go:2: a comment with "orphan"`,
		"names.go:5: wish", "names.go:11: aws_wishes", "names.go:6: goal", "names.go:11: SURVEYResult",
		"names.go:11: needWanted", "names.go:11: machineID",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	for _, file := range []string{"pkg/agent/a.go", "pkg/hostport/a.go"} {
		for _, b := range bannedWords {
			if b.word.MatchString("wanted") && b.applies(file) != (file == "pkg/agent/a.go") {
				t.Errorf("%s: wanted is looked for: %t", file, b.applies(file))
			}
		}
	}
}
