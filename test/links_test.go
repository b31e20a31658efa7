package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages returns the repository's pages for people, by path from its top.
func pages(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && slices.Contains([]string{".build", ".git", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			list = append(list, strings.TrimPrefix(path, "../"))
		}
		return err
	})
	if err != nil || len(list) < 25 {
		t.Fatalf("%d pages: %v", len(list), err)
	}
	return list
}

// anchors returns what a link to a part of a page may name: its headings, as they are spelled in links, and the anchors that it has itself.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		word := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(word, " ", "-")] = true
	}
	for _, m := range regexp.MustCompile(`<a id="([^"]+)">`).FindAllStringSubmatch(page, -1) {
		all[m[1]] = true
	}
	return all
}

// ownURL is where the repository's files are shown to the world.
var ownURL = regexp.MustCompile(`^https://github.com/enipool/enipool/(?:blob|tree)/main/`)

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(read(t, page), -1) {
			to, part, _ := strings.Cut(m[1], "#")
			to = ownURL.ReplaceAllString(to, strings.Repeat("../", strings.Count(page, "/")))
			if strings.Contains(to, "://") {
				continue // nothing outside is asked
			}
			links++
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			} else if part != "" && !anchors(read(t, target))[part] {
				t.Errorf("%s: link to %s: that page has no such heading", page, m[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links", links)
	}
}

// examplePaths are of files that people make.
var examplePaths = []string{"conf/kubernetes/my-operator", "conf/kubernetes/mine", "conf/NAME", "test/fakecloud/NAME", "pkg/NAME"}

// What pages and workflows say of make, its variables and our own files is there.
func TestTargetsAndFilesThatPeopleAreToldExist(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	workflows, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(workflows) == 0 {
		t.Fatalf("workflows %v: %v", workflows, err)
	}
	all := slices.DeleteFunc(pages(t), func(page string) bool { return page == "CHANGELOG.md" }) // it tells of what was
	for _, w := range workflows {
		all = append(all, strings.TrimPrefix(w, "../"))
	}
	told := 0
	for _, page := range all {
		text := read(t, page)
		for _, m := range regexp.MustCompile("(?m)(?:`|^ {4}|run: |&& |[A-Z]=\\S+ )make ((?:[a-z][a-z0-9-]*\\b *)+)").FindAllStringSubmatch(text, -1) {
			for _, target := range strings.Fields(m[1]) {
				if told++; !targets[target] {
					t.Errorf("%s: make %s: the Makefile has no such target", page, target)
				}
			}
		}
		for _, m := range regexp.MustCompile(`(?m)(?:^|[\s\x60([])(?:\./)?((?:scripts|conf|pkg|plugins|test|\.ci|\.github)/[\w/.-]*\w)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil && !slices.Contains(examplePaths, m[1]) {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if told < 20 {
		t.Errorf("only %d targets", told)
	}
}
