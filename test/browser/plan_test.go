package browser

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	modes "github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/pkg/simulate/report"
	"github.com/enipool/enipool/plugins/enipoolctl/plan"
)

// planned returns the page that plan writes.
func planned(t *testing.T, args ...string) string {
	t.Helper()
	folder := t.TempDir()
	topologies, page := filepath.Join(folder, "topologies.yaml"), filepath.Join(folder, "page.html")
	const text = `apiVersion: enipool.io/v1alpha1
kind: Subnet
metadata: {name: subnet-0a1b2c3d4e5f60718}
spec: {use: Exclusive}
---
apiVersion: enipool.io/v1alpha1
kind: PodSubnetTopology
metadata: {name: databases-of-the-shop-and-of-its-warehouses}
spec: {subnets: [{id: subnet-0a1b2c3d4e5f60718}], strategy: {type: Sticky, ttl: 24h}}
`
	if err := os.WriteFile(topologies, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := plan.Command()
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--html", page, "--file", topologies, "--subnet", "subnet-0a1b2c3d4e5f60718=10.8.0.0/24@eu-west-1a", "--instance-type", "m5.xlarge", "--topology-places", "14"))
	_ = cmd.Execute() // it exits with 1 where something does not fit
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// compared returns the page of settings that were played, with the verdict of a search if there is one.
func compared(t *testing.T, v *report.Verdict) string {
	t.Helper()
	r := simulate.EC2()
	w := simulate.World{Limits: eni.Limits{ENIs: 4, V4: 15}, MaxPods: 56, Driver: r.Driver, Mutating: r.Mutating, Describing: r.Describing, Buckets: r.Buckets, Wait: 5 * time.Second,
		Seed: 1, Latency: simulate.UsualLatency(), Subnets: []simulate.Subnet{{ID: "a", CIDR: netip.MustParsePrefix("10.0.0.0/16"), Reserved: 5}}}
	f := simulate.Fleet{Nodes: 40, Pods: 30, Cold: true, Share: 80, Topologies: simulate.Hosted{Pods: 5, Places: 14}}
	var results []simulate.Result
	for _, m := range []modes.Mode{modes.Batch, modes.BestEffort} {
		c := agentconf.Default()
		c.Pool.Mode, c.ModeSet = m, true
		one, err := simulate.Operate(context.Background(), w, f, simulate.Setting{Name: m.String() + ":a=setting,with=a,name=that,is=long,operator", Config: c}, 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, one)
	}
	of := report.New("v1.2.3", w, f.Load("start", 10*time.Minute), results)
	of.Verdict = v
	var out strings.Builder
	if err := of.HTML(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// misaligned finds heads that stand elsewhere than the cells below them.
const misaligned = `[...document.querySelectorAll('table')].flatMap(table => {
  const heads = [...table.tHead.rows].at(-1).cells, row = table.tBodies[0].rows[0]
  return [...heads].filter((h, i) => row.cells[i] && getComputedStyle(h).textAlign != getComputedStyle(row.cells[i]).textAlign).map(h => h.textContent)
}).join('; ')`

// covering finds first columns that do not stay at the side when a table is scrolled, or hide most of it.
const covering = `[...document.querySelectorAll('details')].forEach(d => d.open = true), [...document.querySelectorAll('.scroll')].flatMap(box => {
  box.scrollLeft = 1e6
  const edge = box.getBoundingClientRect(), wrong = []
  for (const cell of [...box.querySelectorAll('tr')].map(r => r.cells[0])) {
    const at = cell.getBoundingClientRect()
    if (Math.abs(at.left - edge.left - 1) > 1) wrong.push(cell.textContent + ' moves by ' + (at.left - edge.left))
    if (box.scrollLeft > 0 && at.width > edge.width / 2) wrong.push(cell.textContent + ' hides ' + at.width + ' of ' + edge.width)
    if (at.height > 160) wrong.push(cell.textContent + ' is ' + at.height + ' high')
  }
  box.scrollLeft = 0
  return wrong
}).join('; ')`

func TestPagesOfPlansAtEachWidthInBothThemes(t *testing.T) {
	c := Start(t)
	verdict := &report.Verdict{Head: "recommended: batch:B=16,mf=50%", Reasons: []string{"no pod waits longer than 1s", "of those it has the fewest idle addresses"}, File: "pool:\n  mode: batch\n"}
	nodes := []string{"--subnet", "subnet-0f1e2d3c4b5a69788=10.0.0.0/18@eu-west-1a", "--nodes", "200", "--operator", "--max-pods", "30", "--max-pods", "42"}
	for _, tt := range []struct {
		name, page string
		verdict    string
		says       string
	}{
		{"plan-fits", planned(t, append(nodes, "--topology-pods", "databases-of-the-shop-and-of-its-warehouses=20")...), "It fits", "starting 200 nodes at once: "},
		{"plan-missing", planned(t, append(nodes, "--topology-pods", "databases-of-the-shop-and-of-its-warehouses=2000")...), "It does not fit", "pods of topologies: does not fit"},
		{"tune", compared(t, verdict), verdict.Head, "no pod waits longer than 1s"},
		{"simulate", compared(t, nil), "", ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if r.URL.Path == "/" {
				_, _ = io.WriteString(w, tt.page) // what is missing is found below
			}
		}))
		for _, v := range views() {
			name := tt.name + "-" + v.String()
			tab := c.Open(server.URL+"/", v)
			if got := tab.Text(".verdict h2"); got != tt.verdict {
				t.Errorf("%s: the verdict is %q, want %q", name, got, tt.verdict)
			}
			if got := tab.Text(".verdict"); !strings.Contains(got, tt.says) {
				t.Errorf("%s: the verdict says %q, not %q", name, got, tt.says)
			}
			if got := tab.Eval(`(v => String(!v || [...document.querySelectorAll('.facts, main .note, table')].every(e => e.getBoundingClientRect().top >= v.getBoundingClientRect().bottom)))(document.querySelector('.verdict'))`); got != "true" {
				t.Errorf("%s: the verdict is not above all else", name)
			}
			check(t, tab, name)
			if got := tab.Eval(misaligned); got != "" {
				t.Errorf("%s: heads are not above their cells: %s", name, got)
			}
			if got := tab.Eval(covering); got != "" {
				t.Errorf("%s: first columns: %s", name, got)
			}
			check(t, tab, name+"-open")
			tab.Close()
		}
		server.Close()
	}
}
