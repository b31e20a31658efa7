package aws

import (
	"regexp"
	"testing"
)

// A source is pages, or lines of public source, that anybody can look up.
func TestEachBeliefNamesItsSource(t *testing.T) {
	page := regexp.MustCompile(`^([a-z0-9.-]+\.[a-z]{2,}/\S+?(, "[^"]+"|(, [A-Z][A-Za-z0-9]+)*)?(, |$))+$`)
	open, seen := 0, map[string]bool{}
	for _, b := range New(Options{}).Beliefs() {
		if b.What == "" || seen[b.What] {
			t.Errorf("%+v is told twice, or not at all", b)
		}
		seen[b.What] = true
		switch {
		case b.Source == "":
			open++
		case !page.MatchString(b.Source):
			t.Errorf("%s: %q is no page", b.What, b.Source)
		}
	}
	if len(seen) < 30 || open == 0 || open == len(seen) {
		t.Errorf("%d beliefs, %d of them without a source", len(seen), open)
	}
}
