package test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostOfADriver is how many lines of code a cloud may cost, as pkg/cloud/DESIGN.md says:
// what does not fit is a policy, which is the engine's, or what others need as well, which
// is pkg/cloud/wire's.
const mostOfADriver = 1500

func TestADriverIsSmall(t *testing.T) {
	for _, cloud := range []string{"aws", "bce"} {
		files, err := filepath.Glob("../pkg/cloud/" + cloud + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("files of %s: %v, %v", cloud, files, err)
		}
		all := 0
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				all += codeLines(t, name)
			}
		}
		if all < 100 || all > mostOfADriver {
			t.Errorf("%s has %d lines of code, and may have %d", cloud, all, mostOfADriver)
		}
	}
}

// codeLines counts the lines that are neither blank nor a comment.
func codeLines(t *testing.T, name string) (n int) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" && !strings.HasPrefix(text, "//") {
			n++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}
