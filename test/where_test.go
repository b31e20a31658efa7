package test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Who follows the page finds each file and each test that it names. A plain name is of a file in the folder before it.
func TestThePageWhereToTouchNamesWhatThereIs(t *testing.T) {
	page := read(t, "pkg/WHERE.md")
	if lines := strings.Count(page, "\n"); lines >= 60 {
		t.Errorf("it has %d lines and is to be read in one go", lines)
	}
	tests := map[string]bool{}
	for _, s := range parsed(t, "..") {
		for _, f := range functionsOf(s) {
			tests[f.Name.Name] = true
		}
	}
	files, folder := 0, ""
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(page, -1) {
		switch name := m[1]; {
		case strings.HasPrefix(name, "Test"):
			if !tests[name] {
				t.Errorf("there is no %s", name)
			}
		case regexp.MustCompile(`^[\w./-]+\.(go|md|yaml|json)$`).MatchString(name):
			files++
			if _, err := os.Stat("../" + name); err != nil && !strings.Contains(name, "/") {
				name = path.Join(folder, name)
			}
			if _, err := os.Stat("../" + name); err != nil {
				t.Errorf("there is no %s", name)
			}
			folder = path.Dir(name)
		}
	}
	if files < 20 {
		t.Errorf("only %d files were found", files)
	}
}
