package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page that the index does not name is found by nobody.
func TestTheIndexNamesEveryPageOfThePackages(t *testing.T) {
	index := read(t, "pkg/README.md")
	linked := map[string]bool{}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(index, -1) {
		linked[m[1]] = true
		if _, err := os.Stat(filepath.Join("../pkg", m[1])); err != nil {
			t.Errorf("link: %v", err)
		}
	}
	pages := 0
	err := filepath.WalkDir("../pkg", func(name string, d fs.DirEntry, err error) error {
		ours := d != nil && (d.Name() == "DESIGN.md" || d.Name() == "MARKS.md" || d.Name() == "GLOSSARY.md" || d.Name() == "WHERE.md")
		if err == nil && ours {
			pages++
			if page := strings.TrimPrefix(name, "../pkg/"); !linked[page] {
				t.Errorf("pkg/README.md does not name %s", page)
			}
		}
		return err
	})
	if err != nil || pages < 10 {
		t.Errorf("%d pages are in pkg: %v", pages, err)
	}
	for layer := range layers {
		if !regexp.MustCompile(`[|,] ` + layer + `[ ,;]|on them ` + layer + ` `).MatchString(index) {
			t.Errorf("pkg/README.md has no row for the package %s", layer)
		}
	}
}

// Each page is named by an index: README.md, or that of its folder. README.md is to be read in one go.
func TestTheIndexesNameEveryPage(t *testing.T) {
	linked := map[string]bool{"README.md": true}
	for _, index := range []string{"README.md", "pkg/README.md", "conf/migrate/README.md"} {
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(read(t, index), -1) {
			linked[filepath.Join(filepath.Dir(index), m[1])] = true
		}
	}
	for _, page := range pages(t) {
		if !linked[page] && page != "pkg/simulate/report/uplot/README.md" { // of what is embedded there
			t.Errorf("no index names %s", page)
		}
	}
	if lines := strings.Count(read(t, "README.md"), "\n"); lines > 200 {
		t.Errorf("README.md has %d lines", lines)
	}
}
