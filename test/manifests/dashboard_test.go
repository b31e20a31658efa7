package manifests

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The panels of the operator's dashboard ask for metrics that there are, by labels that these have, and all of its metrics are in the picture.
func TestTheDashboardOfTheOperatorAsksForMetricsThatThereAre(t *testing.T) {
	var d struct {
		UID        string
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID                       int
			Type, Title, Description string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ Expr, LegendFormat string }
		}
	}
	text, err := os.ReadFile(root + "/dashboard/grafana-operator.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	used, ids, bottom := "", map[int]bool{}, map[int]int{}
	labels := map[string]string{} // by metric, as the page has them, which is held to the code
	for _, row := range regexp.MustCompile("(?m)^\\| `(enipool_operator_\\w+)` \\| (.*?) \\|").FindAllStringSubmatch(read(t, root+"/README.md"), -1) {
		labels[row[1]] = row[2] + " le cluster"
	}
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 || ids[p.ID] {
			t.Errorf("panel %d tells nothing, or its id is taken", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ { // they come from above to below
			if p.GridPos.Y < bottom[x] || x >= 24 {
				t.Errorf("%s lies over another panel, or beside the page", p.Title)
			}
			bottom[x] = p.GridPos.Y + p.GridPos.H
		}
		for _, q := range p.Targets {
			used += q.Expr + "\n"
			if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") {
				t.Errorf("%s: something is not closed: %s", p.Title, q.Expr)
			}
			for _, name := range regexp.MustCompile(`\benipool_operator_\w+`).FindAllString(q.Expr, -1) {
				if strings.Count(q.Expr, name) != strings.Count(q.Expr, name+`{cluster=~"$cluster"`) {
					t.Errorf("%s: %s is not of the clusters that are chosen", p.Title, name)
				}
				base := strings.TrimSuffix(name, "_bucket")
				if _, there := labels[base]; !there {
					t.Errorf("%s: there is no metric %s", p.Title, name)
				}
				for _, by := range regexp.MustCompile(`by \(([^)]*)\)|`+name+`\{(\w+)!?=`).FindAllStringSubmatch(q.Expr, -1) {
					for _, label := range regexp.MustCompile(`\w+`).FindAllString(by[1]+by[2], -1) {
						if !regexp.MustCompile(`\b` + label + `\b`).MatchString(labels[base]) {
							t.Errorf("%s: %s has no label %s", p.Title, base, label)
						}
					}
				}
			}
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + l[1] + `\b`).MatchString(q.Expr) {
					t.Errorf("%s: the legend uses %s, which the query does not keep", p.Title, l[1])
				}
			}
		}
	}
	if v := d.Templating.List; len(v) != 2 || v[1].Name != "cluster" || v[1].Definition != "label_values(enipool_operator_build_info, cluster)" {
		t.Errorf("nobody can choose a cluster: %v", v)
	}
	for name := range labels {
		if name != "enipool_operator_build_info" && !strings.Contains(used, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
	if d.UID == "" || len(labels) < 10 {
		t.Errorf("uid %q, %d metrics in the page", d.UID, len(labels))
	}
}
