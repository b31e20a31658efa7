package health

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page for people is made of what conditions, events and metrics say, and of no
// more.
func TestThePageTellsEachReasonInTheWordsOfTheCode(t *testing.T) {
	text, err := os.ReadFile("../../conf/kubernetes/README.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	_, table, found := strings.Cut(page, "| reason | what it means | what to do |\n|---|---|---|\n")
	table, _, closed := strings.Cut(table, "\n\n")
	if !found || !closed {
		t.Fatal("conf/kubernetes/README.md has no table of reasons")
	}
	var want []string
	for _, f := range faults {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", f.reason, f.words, f.remedy))
	}
	if diff := cmp.Diff(want, strings.Split(table, "\n")); diff != "" {
		t.Errorf("the table of conf/kubernetes/README.md (-code +page):\n%s", diff)
	}
	if !regexp.MustCompile(`\| event \| .` + AddressesAvailable + `., Normal \|`).MatchString(page) {
		t.Errorf("the page does not tell of %s", AddressesAvailable)
	}
}
