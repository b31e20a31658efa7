package cluster

import (
	"strings"
	"testing"
)

// An agent that others have taken over writes what it likes into its node's object, which is read on the terminals of people.
func TestATableGivesATerminalNoOrders(t *testing.T) {
	var out strings.Builder
	f := frame[string]{rows: []string{"cause\x1b]0;title\x07\x1b[2J\rall is well\u009b2J"}, isBad: func(string) bool { return false },
		columns: func(moment) []column[string] {
			return []column[string]{{head: "CAUSE", cell: func(s string) any { return s }}}
		}}
	if err := f.printTable(&picture{Writer: &out, red: map[string]bool{}}, moment{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "\nCAUSE\ncause ]0;title  [2J all is well 2J\n") {
		t.Errorf("%q", &out)
	}
}
