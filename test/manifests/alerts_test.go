package manifests

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/operator"
	pages "github.com/enipool/enipool/pkg/operator/web"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/pkg/status/web"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// alerts is a PrometheusRule, whose types are not Kubernetes' own.
type alerts struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec ruleFile `json:"spec"`
}

// ruleFile is a rule file of Prometheus.
type ruleFile struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	} `json:"groups"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func readAlerts(t *testing.T) ruleFile { return readRules(t, "monitoring") }

func readRules(t *testing.T, folder string) ruleFile {
	t.Helper()
	var a alerts
	if err := yaml.UnmarshalStrict([]byte(read(t, root+"/"+folder+"/prometheusrule.yaml")), &a); err != nil {
		t.Fatal(err)
	}
	return a.Spec
}

// TestTheAlertsAreThoseOfConf: kustomize reads no file outside of its folder.
// pkg/status/web looks at the queries of those to the last label.
func TestTheAlertsAreThoseOfConf(t *testing.T) {
	var want ruleFile
	if err := yaml.UnmarshalStrict([]byte(read(t, "../../conf/alerts.yaml")), &want); err != nil {
		t.Fatal(err)
	}
	got := readAlerts(t).Groups
	if diff := cmp.Diff(want.Groups, got[:min(len(want.Groups), len(got))]); diff != "" {
		t.Errorf("copy the groups of conf/alerts.yaml to the beginning of monitoring/prometheusrule.yaml (-conf +here):\n%s", diff)
	}
}

// exported returns the names of the metrics of an agent that has something to tell, and of an operator.
func exported(t *testing.T) []string {
	t.Helper()
	names := exportedBy(t, operatorPages())
	m := web.New("v1")
	m.Observe(status.Status{Exhausted: "subnet-a", Watched: true, Synced: true, Health: health.Report{Reason: health.AddressesAvailable}})
	return append(names, exportedBy(t, m.Handler(nil, false))...)
}

// leader is an operator with one subnet.
type leader struct{ pages.Source }

func (leader) Report(context.Context) (operator.Report, error) {
	now := time.Now()
	return operator.Report{Epoch: 1, DescribedAt: &now, Subnets: []operator.Room{{ID: "subnet-a"}}}, nil
}

func operatorPages() http.Handler {
	m := pages.New("v1")
	m.Show(leader{}, "Assign")
	return m.Handler(leader{}, false)
}

func exportedBy(t *testing.T, h http.Handler) (names []string) {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^([a-z]\w*)[{ ]`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, found[1])
	}
	return names
}

func TestEveryAlertAsksForMetricsThatThereAreAndHelpsWhoIsWoken(t *testing.T) {
	metrics, page, seen := exported(t), read(t, root+"/README.md"), map[string]bool{}
	for _, g := range append(readAlerts(t).Groups, readRules(t, "operator-monitoring").Groups...) {
		for _, a := range g.Rules {
			if !strings.HasPrefix(a.Alert, "Enipool") || seen[a.Alert] {
				t.Errorf("alert %q: the name is taken, or not ours", a.Alert)
			}
			seen[a.Alert] = true
			for _, wrong := range wrongAlert(a, metrics) {
				t.Errorf("%s: %s", a.Alert, wrong)
			}
			row := strings.ToLower(a.Alert)
			if !strings.HasSuffix(a.Annotations["runbook_url"], "/conf/kubernetes/README.md#"+row) {
				t.Errorf("%s: runbook_url %q is not its row", a.Alert, a.Annotations["runbook_url"])
			}
			if !regexp.MustCompile(`(?m)^\| <a id="` + row + `"></a>` + "`" + a.Alert + "`" + ` \| .+ \|$`).MatchString(page) {
				t.Errorf("conf/kubernetes/README.md does not say what to do about %s", a.Alert)
			}
		}
	}
	for _, found := range regexp.MustCompile("(?m)^\\| <a id=\"\\w+\"></a>`(Enipool\\w+)` \\|").FindAllStringSubmatch(page, -1) {
		if !seen[found[1]] {
			t.Errorf("conf/kubernetes/README.md tells of %s, which is no alert", found[1])
		}
	}
	// One for each of what a cluster has in store.
	for _, name := range []string{"EnipoolAgentDown", "EnipoolLoopHangs", "EnipoolPodsWait", "EnipoolNodeFault", "EnipoolSubnetExhausted", "EnipoolThrottled",
		"EnipoolCloudAway", "EnipoolLeaks", "EnipoolOperatorAbsent", "EnipoolOperatorPodsWait", "EnipoolOperatorDescribesOld"} {
		if !seen[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// wrongAlert returns what is wrong with an alert.
func wrongAlert(a alert, metrics []string) (list []string) {
	names := regexp.MustCompile(`\b(?:(?:enipool|process|go)_\w+|up)\b`).FindAllString(a.Expr, -1)
	if len(names) == 0 {
		list = append(list, "it asks for no metric")
	}
	for _, name := range names {
		if name != "up" && !slices.Contains(metrics, name) { // up is Prometheus' own
			list = append(list, "metric "+name+" is not exported")
		}
	}
	if strings.Count(a.Expr, "(") != strings.Count(a.Expr, ")") || strings.Count(a.Expr, `"`)%2 > 0 {
		list = append(list, "expr: something is not closed")
	}
	if d, err := time.ParseDuration(a.For); a.For != "" && (err != nil || d <= 0) {
		list = append(list, "for: "+a.For)
	}
	if s := a.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, s) {
		list = append(list, "severity: "+s)
	}
	if a.Annotations["summary"] == "" || len(a.Annotations["description"]) < 40 {
		list = append(list, "summary and description don't say what it is and what to do")
	}
	return list
}

func TestAWrongAlertIsFound(t *testing.T) {
	good := alert{Expr: `sum(up == 0) + enipool_ready{a="b"} > 1`, For: "5m", Labels: map[string]string{"severity": "info"},
		Annotations: map[string]string{"summary": "x", "description": strings.Repeat("x", 40)}}
	if wrong := wrongAlert(good, []string{"enipool_ready"}); wrong != nil {
		t.Errorf("a good one: %v", wrong)
	}
	for _, change := range []func(*alert){
		func(a *alert) { a.Expr = "vector(1)" },
		func(a *alert) { a.Expr = "enipool_redy" },
		func(a *alert) { a.Expr = "sum(up" },
		func(a *alert) { a.For = "soon" },
		func(a *alert) { a.Labels = nil },
		func(a *alert) { a.Annotations = map[string]string{"summary": "x"} },
	} {
		bad := good
		change(&bad)
		if wrong := wrongAlert(bad, []string{"enipool_ready"}); len(wrong) != 1 {
			t.Errorf("%+v: %v", bad, wrong)
		}
	}
}
