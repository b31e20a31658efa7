package web

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

func conf(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../conf/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// rules is a rule file of Prometheus.
type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      struct{ Severity string }
	Annotations struct {
		Summary, Description string
		Runbook              string `yaml:"runbook_url"`
	}
}

// runbooks is where people find what to do about an alert.
const runbooks = "https://github.com/enipool/enipool/blob/main/conf/kubernetes/README.md#"

// placeholder is what a text of an alert takes from its labels.
var placeholder = regexp.MustCompile(`\$labels\.(\w+)`)

func TestTheAlertsAskForWhatIsExported(t *testing.T) {
	var file rules
	if err := yaml.UnmarshalWithOptions(conf(t, "alerts.yaml"), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	e, seen, page := exported(t), map[string]bool{}, string(conf(t, "kubernetes/README.md"))
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if !strings.HasPrefix(r.Alert, "Enipool") || seen[r.Alert] || g.Name == "" {
				t.Errorf("alert %q of group %q: the name is taken, or not ours", r.Alert, g.Name)
			}
			seen[r.Alert] = true
			anchor := strings.ToLower(r.Alert)
			if r.Annotations.Runbook != runbooks+anchor || !strings.Contains(page, `<a id="`+anchor+`">`) {
				t.Errorf("%s: runbook_url %q is not that of a row of the page on clusters", r.Alert, r.Annotations.Runbook)
			}
			for _, problem := range append(e.wrong(r.Expr), e.texts(r)...) {
				t.Errorf("%s: %s", r.Alert, problem)
			}
		}
	}
	// One for each of what issue and reality have in store for a node.
	for _, name := range []string{"EnipoolNotReady", "EnipoolNodeFault", "EnipoolSubnetExhausted", "EnipoolLimitReached", "EnipoolForbidden", "EnipoolCloudAway", "EnipoolAddressesLost", "EnipoolCacheDamaged"} {
		if !seen[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// texts returns what is wrong with the rest of a rule. A label that the query
// sums away is empty in the texts.
func (e exports) texts(r rule) (list []string) {
	if d, err := time.ParseDuration(r.For); r.For != "" && (err != nil || d <= 0) {
		list = append(list, "for: "+r.For)
	}
	if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels.Severity) {
		list = append(list, "severity: "+r.Labels.Severity)
	}
	if r.Annotations.Summary == "" || r.Annotations.Description == "" {
		list = append(list, "it has no summary or no description")
	}
	labels := slices.Clone(target)
	if kept := regexp.MustCompile(`^(?:sum|max) by \(([^)]*)\)`).FindStringSubmatch(r.Expr); kept != nil {
		labels = word.FindAllString(kept[1], -1)
	} else {
		for _, name := range word.FindAllString(r.Expr, -1) {
			labels = slices.AppendSeq(labels, maps.Keys(e[name]))
		}
	}
	for _, p := range placeholder.FindAllStringSubmatch(r.Annotations.Summary+r.Annotations.Description, -1) {
		if !slices.Contains(labels, p[1]) {
			list = append(list, "the texts use label "+p[1]+", which the query does not keep")
		}
	}
	return list
}

// dashboard is what matters here of Grafana's format.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

func TestTheDashboardAsksForWhatIsExported(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal(conf(t, "kubernetes/dashboard/grafana-dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 || len(d.Panels) == 0 {
		t.Fatalf("not a dashboard: %+v", d)
	}
	e, used := exported(t), ""
	for _, v := range d.Templating.List {
		if v.Type == "query" && len(e.wrong(regexp.MustCompile(`, (instance|cluster)\)$`).ReplaceAllString(v.Definition, ")"))) > 0 {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
		}
	}
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d tells nothing", p.ID)
		}
		for _, q := range p.Targets {
			used += q.Expr + "\n"
			for _, problem := range e.wrong(q.Expr) {
				t.Errorf("%s: %s", p.Title, problem)
			}
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + l[1] + `\b`).MatchString(q.Expr) {
					t.Errorf("%s: the legend uses %s, which the query does not keep", p.Title, l[1])
				}
			}
		}
	}
	// What other systems of this kind lack is in the picture.
	for _, name := range []string{"enipool_demand", "enipool_need", "enipool_target", "enipool_reason", "enipool_orphans", "enipool_cloud_calls_total", "enipool_fault", "enipool_capacity"} {
		if !strings.Contains(used, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestThePanelsOfTheDashboardDontOverlap(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal(conf(t, "kubernetes/dashboard/grafana-dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	type cell struct{ x, y int }
	ids, cells := map[int]bool{}, map[cell]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: id %d is taken, or it is too wide: %+v", p.Title, p.ID, p.GridPos)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := cell{p.GridPos.X + x, p.GridPos.Y + y}
				if other := cells[at]; other != "" {
					t.Fatalf("%s lies over %s at %v", p.Title, other, at)
				}
				cells[at] = p.Title
			}
		}
	}
}
