package test

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counts is a package in which every measure finds something, and something beside it
// that it leaves.
const counts = `package counts

import "errors"

var errOpen = errors.New("waiter 1") // what programs read
var errBook = errors.New("the book is open")
var place = "pkg/book"

type tagged struct{ V int ` + "`json:\"a dead key\"`" + ` }

func closeAll() {}
func leave() {}
func startDelete() { leave := "a waiter"; _ = leave }
func Exported() {}

func (x tagged) leave() {}
func (x tagged) letGo(leave int) {
	_ = x
	for i := range leave {
		_ = i
	}
	n := 1
	_ = n
	// A reason.
	_ = leave
	_ = leave
	_ = leave
	_ = leave
	_ = leave
	_ = leave
	_ = n
	_ = leave
	_ = leave
	_ = leave
	if i := n; i > 1 {
		_ = i
	}
}

func longest() {
	_ = 1
	_ = 2
	_ = 3
	_ = 4
	_ = 5
	_ = 6
	_ = 7
	_ = 8
	_ = 9
	_ = 10
	_ = 11
	_ = 12
	_ = 13
	_ = 14
	_ = 15
	_ = 16
	_ = 17
	_ = 18
}
`

// parsedText parses the text of a file.
func parsedText(t *testing.T, name, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source{pkg: strings.TrimSuffix(name, ".go"), file: name, ast: file, fset: fset}
}

func TestLanguageIsCountedInASmallPackage(t *testing.T) {
	p := part{name: "counts", sources: []source{parsedText(t, "counts.go", counts)}}
	var got strings.Builder
	for _, m := range measures(t) {
		found, of := m.find(p)
		got.WriteString(m.name + " " + tally{len(found), of}.cell(m) + "\n" + firstOf(found))
	}
	want := `functions 2/4 50%
	counts.go:12: func leave
	counts.go:40: func longest
methods 1/2 50%
	counts.go:16: func leave
silent 1/2 50%
	counts.go:40: func longest has 20 lines
letters 1/5 20%
	counts.go:22: n is used 13 lines below
shadows 2
	counts.go:13: leave is a function too
	counts.go:17: leave is a function too
words 2
	counts.go:6: book
	counts.go:13: waiter
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLanguageEntriesOnlyBecomeLess(t *testing.T) {
	share, number := measure{limit: 50, share: true, from: 5}, measure{}
	for _, tt := range []struct {
		what      string
		m         measure
		entry     int
		found, of int
		should    int
		wrong     string
	}{
		{"a share within the limit", share, 0, 5, 10, 0, ""},
		{"a share that is a bit over it", share, 0, 101, 200, 0, "51, may have 50"},
		{"a share of a few", share, 0, 4, 4, 0, ""},
		{"as much as its entry", share, 60, 6, 10, 60, ""},
		{"more than its entry", share, 60, 7, 10, 60, "70, may have 60"},
		{"a little less than its entry", share, 62, 6, 10, 60, ""},
		{"much less than its entry", share, 70, 6, 10, 60, "60, its entry says 70: go test ./test -run Language -lower"},
		{"an entry that the limit covers", share, 52, 5, 10, 0, "50, needs no entry: go test ./test -run Language -lower"},
		{"none where none may be", number, 0, 0, 0, 0, ""},
		{"a first one", number, 0, 1, 0, 0, "1, may have 0"},
		{"the last one", number, 1, 0, 0, 0, "0, needs no entry: go test ./test -run Language -lower"},
	} {
		should, wrong := tt.m.judge(tt.entry, tt.m.figure(tt.found, tt.of))
		if should != tt.should || wrong != tt.wrong {
			t.Errorf("%s: %d, %q, want %d, %q", tt.what, should, wrong, tt.should, tt.wrong)
		}
	}
}
