package web

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// family is a metric as its page tells it: the name that its series begin with.
type family struct{ name, kind, help, labels string }

// families returns all metrics of ours, by name.
func families(t *testing.T) (list []family) {
	t.Helper()
	e, text := exported(t), get(tellingAll(), "/metrics").Body.String()
	for _, m := range regexp.MustCompile(`(?m)^# HELP (enipool_\w+) (.*)\n# TYPE \w+ (\w+)$`).FindAllStringSubmatch(text, -1) {
		series := m[1]
		if m[3] == "histogram" {
			series += "_count"
		}
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(e[series])) {
			labels = append(labels, "`"+name+"`")
		}
		list = append(list, family{m[1], m[3], m[2], strings.Join(labels, ", ")})
	}
	return list
}

// Who upgrades looks there for the names that queries and dashboards of their own use.
func TestThePageTellsEachMetricInTheWordsOfTheCode(t *testing.T) {
	const head = "| metric | labels | what it is |\n|---|---|---|\n"
	_, table, found := strings.Cut(string(conf(t, "kubernetes/README.md")), head)
	table, _, closed := strings.Cut(table, "\n\n")
	if !found || !closed {
		t.Fatal("conf/kubernetes/README.md has no table of metrics")
	}
	var want []string
	for _, f := range families(t) {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", f.name, f.labels, f.help))
	}
	if diff := cmp.Diff(want, strings.Split(table, "\n")); diff != "" {
		t.Errorf("the table of metrics of conf/kubernetes/README.md (-code +page):\n%s", diff)
	}
}

// Whatever a page or a file of conf/ names is a metric, or a series of a histogram.
func TestPagesNameNoMetricThatThereIsNot(t *testing.T) {
	known := map[string]bool{}
	for _, f := range families(t) {
		known[f.name] = true
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			known[f.name+end] = f.kind == "histogram"
		}
	}
	pages := 0
	for _, top := range []string{"README.md", "CHANGELOG.md", "conf", "pkg"} {
		err := filepath.WalkDir("../../../"+top, func(path string, d fs.DirEntry, err error) error {
			kind := filepath.Ext(path)
			if err != nil || d.IsDir() || kind != ".md" && (top != "conf" || !slices.Contains([]string{".yaml", ".json"}, kind)) {
				return err
			}
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				for _, name := range regexp.MustCompile(`\benipool_\w+`).FindAllString(line, -1) {
					if !known[name] && !strings.HasPrefix(name, "enipool_operator_") { // pkg/operator/web looks at those
						t.Errorf("%s:%d: there is no metric %s", path, i+1, name)
					}
				}
			}
			pages++
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if pages < 20 {
		t.Fatalf("only %d pages were found", pages)
	}
}

// What an agent of the previous release exported is still there, with its labels and their values:
// queries, alerts and dashboards of people go on after an upgrade.
func TestTheSeriesOfThePreviousReleaseAreExported(t *testing.T) {
	text, err := os.ReadFile("testdata/9295a34/series.txt")
	if err != nil {
		t.Fatal(err)
	}
	now, count := scrape(t, tellingAll()), 0
	for series := range strings.Lines(string(text)) {
		if _, there := now[strings.TrimSpace(series)]; !there {
			t.Errorf("%s is gone", strings.TrimSpace(series))
		}
		count++
	}
	if count < 100 {
		t.Fatalf("only %d series", count)
	}
}
