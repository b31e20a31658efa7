package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/quota"
)

// source is an operator that knows what a test says.
type source struct {
	report operator.Report
	err    error
}

func (s source) Report(context.Context) (operator.Report, error) { return s.report, s.err }

func (s source) Why(_ context.Context, node string) (operator.Why, error) {
	return operator.Why{Node: node, Mode: "Operator", Wanted: operator.Wanted{Want: 48, Have: 32, Waiting: 4}, Class: "starving", Unknown: node == "none"}, s.err
}

func (s source) All(context.Context) ([]operator.Why, error) {
	return []operator.Why{{Node: "n1"}}, s.err
}

func (s source) Check(context.Context) ([]cloud.Finding, error) {
	return []cloud.Finding{{What: "permission", Verdict: cloud.Broken}}, s.err
}

func (s source) Healthy() error { return s.err }

// leading returns the metrics and the source of an operator that has something to tell of everything.
func leading() (*Metrics, source) {
	at := time.Now().Add(-time.Minute)
	s := source{report: operator.Report{Epoch: 7, Nodes: map[string]int{"Operator": 3, "Self": 1}, Satisfied: 2,
		Slots: operator.Slots{Short: 16, Waiting: 4, Quarantined: 1}, Queue: []operator.Waiting{{Class: "starving", Count: 2}, {Class: "giving"}}, UnderWay: 1,
		Budget: []operator.Tokens{{Action: "Assign", Tokens: 3.5, PerSecond: 4, Usual: 4}}, DescribedAt: &at,
		Subnets: []operator.Room{{ID: "subnet-a", State: "Full", Free: 1, Room: -2, Owed: 3}}}}
	m := New("v1")
	m.Show(s, "Assign", "Create")
	return m, s
}

func get(m *Metrics, s Source, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	m.Handler(s, false).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// series returns what is scraped, without what is Go's and the process's.
func series(t *testing.T, m *Metrics, s Source) map[string]string {
	t.Helper()
	w := get(m, s, "/metrics")
	if w.Code != http.StatusOK {
		t.Fatalf("/metrics: %d\n%s", w.Code, w.Body)
	}
	all := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if at := strings.LastIndex(line, " "); strings.HasPrefix(line, "enipool_") {
			all[line[:at]] = strings.TrimSpace(line[at:])
		}
	}
	return all
}

func TestTheGaugesAreWhatTheOperatorKnows(t *testing.T) {
	m, s := leading()
	got := series(t, m, s)
	for name, want := range map[string]string{"epoch": "7", `nodes{mode="Operator"}`: "3", `nodes{mode="Joining"}`: "0", "satisfied": "2", "short": "16", "waiting": "4", "quarantined": "1",
		`queue{class="starving"}`: "2", `queue{class="giving"}`: "0", "under_way": "1", `tokens{action="Assign"}`: "3.5", `rate{action="Assign"}`: "4",
		`subnet_room{subnet="subnet-a"}`: "-2", `subnet_free{subnet="subnet-a"}`: "1", `subnet_owed{subnet="subnet-a"}`: "3", `subnet_full{subnet="subnet-a"}`: "1"} {
		if got["enipool_operator_"+name] != want {
			t.Errorf("%s is %q, want %s", name, got["enipool_operator_"+name], want)
		}
	}
	if got["enipool_operator_describe_age_seconds"] < "6" || got["enipool_operator_describe_age_seconds"] > "7" {
		t.Errorf("age %s", got["enipool_operator_describe_age_seconds"])
	}
}

// One that does not lead says that, and nothing that would be a sum over all of them.
func TestWhoDoesNotLeadTellsOnlyThat(t *testing.T) {
	m, s := New("v1"), source{err: operator.ErrNotLeading}
	m.Show(s)
	got := series(t, m, s)
	if got["enipool_operator_epoch"] != "0" || got["enipool_operator_satisfied"] != "" || got["enipool_operator_waiting"] != "" {
		t.Errorf("%v", got)
	}
	for path, code := range map[string]int{"/budget": 503, "/why?node=n1": 503, "/nodes": 503, "/check": 503, "/healthz": 503, "/why": 400, "/": 200, "/none": 404} {
		if w := get(m, s, path); w.Code != code {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := get(m, source{err: errors.New("context deadline exceeded")}, "/budget"); w.Code != 504 || !strings.Contains(w.Body.String(), "does not answer") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Each counter begins at 0, and counts.
func TestWhatHappensIsCounted(t *testing.T) {
	m, s := leading()
	for _, outcome := range append([]string{"ok", "repeated"}, cloud.Outcomes()...) {
		if name := fmt.Sprintf("enipool_operator_calls_total{action=%q,outcome=%q}", "Create", outcome); series(t, m, s)[name] != "0" {
			t.Errorf("%s does not begin at 0", name)
		}
	}
	m.Called("Assign", nil)
	m.Called("Assign", &cloud.Error{Kind: cloud.ErrThrottled})
	m.Called("Assign", engine.ErrRepeated)
	m.Waited(quota.Starving, 20*time.Second)
	m.Described(2 * time.Second)
	m.Conflicted()
	m.LeaksDeleted(3)
	got := series(t, m, s)
	for name, want := range map[string]string{`calls_total{action="Assign",outcome="ok"}`: "1", `calls_total{action="Assign",outcome="throttled"}`: "1", `calls_total{action="Assign",outcome="repeated"}`: "1",
		`wait_seconds_sum{class="starving"}`: "20", `wait_seconds_count{class="giving"}`: "0", "describe_seconds_sum": "2", "conflicts_total": "1", "leaks_deleted_total": "3"} {
		if got["enipool_operator_"+name] != want {
			t.Errorf("%s is %q, want %s", name, got["enipool_operator_"+name], want)
		}
	}
}

// Who forwards the operator's port and has a web site open whose name is led to that port tells the site nothing of the cluster.
func TestAWebSiteWhoseNameLeadsHereIsToldNothing(t *testing.T) {
	m, s := leading()
	for _, tt := range []struct {
		from, host string
		told       bool
	}{{"127.0.0.1:40000", "evil.example:9810", false}, {"[::1]:40000", "evil.example", false}, {"127.0.0.1:40000", "localhost:9810", true}, {"127.0.0.1:40000", "127.0.0.1:9810", true},
		{"10.0.0.9:40000", "enipool-operator.kube-system.svc:9810", true}} {
		for _, path := range []string{"/", "/nodes", "/budget", "/check", "/why?node=n1"} {
			r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
			r.RemoteAddr, r.Host = tt.from, tt.host
			r.Header.Set("Accept", "text/html")
			if m.Handler(s, false).ServeHTTP(w, r); (w.Code == 200) != tt.told {
				t.Errorf("%s from %s as %s: %d", path, tt.from, tt.host, w.Code)
			}
		}
	}
}

func TestThePagesAnswer(t *testing.T) {
	m, s := leading()
	if w := get(m, s, "/why?node=n1"); w.Code != 200 || !strings.HasPrefix(w.Body.String(), "n1: 32 of 48 slots, 4 pods wait, class starving\n") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var why operator.Why
	if err := json.Unmarshal(get(m, s, "/why?node=n1&output=json").Body.Bytes(), &why); err != nil || why.Want != 48 {
		t.Errorf("%+v, %v", why, err)
	}
	if w := get(m, s, "/why?node=none"); w.Code != 404 || w.Body.String() != "the cluster has no node none\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var r operator.Report
	if err := json.Unmarshal(get(m, s, "/budget").Body.Bytes(), &r); err != nil || r.Epoch != 7 || r.Waiting != 4 || r.Subnets[0].Room != -2 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := get(m, s, "/check").Body.String(); !strings.Contains(got, `"verdict": "broken"`) {
		t.Error(got)
	}
	w := httptest.NewRecorder()
	m.Handler(s, false).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/budget", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestTheNamesAndHelpTextsAreAsPrometheusWantsThem(t *testing.T) {
	m, _ := leading()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func conf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../conf/kubernetes/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page's table is the code, word for word.
func TestThePageTellsEachMetricInTheWordsOfTheCode(t *testing.T) {
	const head = "Those of an operator:\n\n| metric | labels | what it is |\n|---|---|---|\n"
	_, table, found := strings.Cut(conf(t, "README.md"), head)
	table, _, closed := strings.Cut(table, "\n\n")
	if !found || !closed {
		t.Fatal("conf/kubernetes/README.md has no table of the operator's metrics")
	}
	m, s := leading()
	all, text := series(t, m, s), get(m, s, "/metrics").Body.String()
	var want []string
	for _, f := range regexp.MustCompile(`(?m)^# HELP (enipool_\w+) (.*)$`).FindAllStringSubmatch(text, -1) {
		labels := map[string]bool{}
		for name := range all {
			if own, _, _ := strings.Cut(name, "{"); own == f[1] || own == f[1]+"_count" {
				for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(name, -1) {
					labels["`"+l[1]+"`"] = true
				}
			}
		}
		var list []string
		for l := range labels {
			list = append(list, l)
		}
		slices.Sort(list)
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", f[1], strings.Join(list, ", "), f[2]))
	}
	if diff := cmp.Diff(want, strings.Split(table, "\n")); diff != "" {
		t.Errorf("(-code +page):\n%s", diff)
	}
}

// The alerts ask for series that there are, by labels that they have.
func TestTheAlertsAskForWhatIsExported(t *testing.T) {
	var file struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(conf(t, "operator-monitoring/prometheusrule.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	m, s := leading()
	m.Called("Assign", nil)
	m.Waited(quota.Starving, time.Second)
	all, rules := series(t, m, s), 0
	for _, g := range file.Spec.Groups {
		for _, r := range g.Rules {
			rules++
			names := regexp.MustCompile(`(enipool_\w+)(?:\{(\w+="[^"]*")\})?`).FindAllStringSubmatch(r.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s asks for no metric", r.Alert)
			}
			for _, n := range names {
				there := false
				for name := range all {
					own, labels, _ := strings.Cut(name, "{")
					there = there || own == n[1] && strings.Contains(labels, n[2])
				}
				if !there {
					t.Errorf("%s: there is no %s", r.Alert, n[0])
				}
			}
			for _, l := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(r.Expr, -1) {
				for _, label := range strings.Split(l[1], ", ") {
					if !slices.Contains([]string{"job", "le", "subnet", "action"}, label) {
						t.Errorf("%s keeps a label %s", r.Alert, label)
					}
				}
			}
		}
	}
	if rules < 6 {
		t.Errorf("only %d alerts", rules)
	}
}

// Whatever page or file of conf names a metric of the operator, there is one.
func TestPagesNameNoMetricThatThereIsNot(t *testing.T) {
	m, s := leading()
	text := get(m, s, "/metrics").Body.String()
	for _, page := range []string{"README.md", "operator-monitoring/prometheusrule.yaml"} {
		for _, name := range regexp.MustCompile(`\benipool_operator_\w+`).FindAllString(conf(t, page), -1) {
			if !strings.Contains(text, "# TYPE "+regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")+" ") {
				t.Errorf("%s: there is no metric %s", page, name)
			}
		}
	}
}
