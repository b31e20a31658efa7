package test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const languageFile = "language.txt"

const languageHead = `# What each package or document may have beyond the limits of language_test.go, counted when it was
# written last. Figures only become less: go test ./test -run Language -lower writes what did.
`

// allowed reads language.txt: a package or document, a measure and a figure a line.
func allowed(t *testing.T) map[string]int {
	t.Helper()
	entries := map[string]int{}
	for line := range strings.Lines(read(t, "test/"+languageFile)) {
		var name, measure string
		var figure int
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscan(line, &name, &measure, &figure); err != nil || figure < 1 {
			t.Fatalf("test/%s: %q is no entry: %v", languageFile, line, err)
		}
		entries[name+" "+measure] = figure
	}
	return entries
}

// keep writes language.txt.
func keep(t *testing.T, entries map[string]int) {
	t.Helper()
	var b strings.Builder
	b.WriteString(languageHead)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if entries[key] > 0 {
			fmt.Fprintf(&b, "%s %d\n", key, entries[key])
		}
	}
	if err := os.WriteFile(languageFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
