package operator_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/enipool/enipool/pkg/operator"
)

// A message in which a letter is cut in two is one that the API server refuses, or that nobody can read.
func TestALongTextIsCutBetweenLetters(t *testing.T) {
	for _, before := range []string{"", "a", "ab"} {
		got := operator.Shorten(before + strings.Repeat("子", 400))
		if !utf8.ValidString(got) || len(got) > 1024 || len(got) < 1022 || !strings.HasSuffix(got, "子...") {
			t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-8:])
		}
	}
	if got := operator.Shorten(strings.Repeat("a", 1024)); len(got) != 1024 || strings.Contains(got, ".") {
		t.Errorf("what is not too long is cut: %q", got)
	}
}
