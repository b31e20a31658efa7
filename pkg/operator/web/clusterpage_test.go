package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/page/pagetest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *time.Time {
	when := noon.Add(d)
	return &when
}

// node is one that an operator serves.
func node(name string, want, have, waiting int) operator.Why {
	return operator.Why{Node: name, Mode: "Operator", Wanted: operator.Wanted{Want: want, Have: have, Waiting: waiting}}
}

func TestTheWorstNodesComeFirst(t *testing.T) {
	longest, later := node("longest", 8, 4, 1), node("later", 8, 4, 3)
	longest.Since, later.Since = at(-time.Hour), at(-time.Minute)
	joining, cut := node("joining", 8, 8, 0), node("cut", 8, 8, 2)
	joining.Mode, cut.Wrong = "Joining", "the cluster does not reach it"
	nodes := []operator.Why{{Node: "none"}, node("well", 8, 8, 0), joining, {Node: "own", Mode: "Self"}, node("short", 8, 7, 0), node("shorter", 8, 5, 0), node("empty", 8, 0, 0), cut, node("unknown", 8, 4, 9), later, longest}
	var order []string
	for _, g := range worstFirst(nodes) {
		order = append(order, g.letter+" "+g.Node)
	}
	want := []string{"W longest", "W later", "W unknown", "N cut", "E empty", "S shorter", "S short", "C joining", "A none", "A own", "O well"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheBannerSaysWhatCountsFirst(t *testing.T) {
	waiting := node("n1", 8, 4, 2)
	waiting.Causes = []operator.Told{{Reason: "SubnetExhausted", Message: "subnet-a is full", Next: at(30 * time.Second)}}
	for _, tt := range []struct {
		name  string
		facts facts
		want  banner
	}{
		{"all is well", facts{report: operator.Report{Nodes: map[string]int{"Operator": 3}}, nodes: []operator.Why{node("n1", 8, 8, 0)}},
			banner{"good", "Ready", "All 3 nodes of this operator have what they ask for.", ""}},
		{"pods wait", facts{report: operator.Report{Slots: operator.Slots{Waiting: 2, Short: 4}}, nodes: []operator.Why{waiting}},
			banner{"bad", "Pods wait", "2 pods wait for an address, 4 slots are missing. The worst is n1: pods wait, 4 of 8 slots, 2 pods wait; SubnetExhausted: subnet-a is full", "in 30s"}},
		{"slots are missing", facts{report: operator.Report{Slots: operator.Slots{Short: 4}}, nodes: []operator.Why{node("n1", 8, 4, 0)}},
			banner{"warn", "Nodes are short", "0 pods wait for an address, 4 slots are missing. The worst is n1: short, 4 of 8 slots", "at once, when there is room and a token"}},
		{"describes fail", facts{report: operator.Report{Failing: "no permission"}, nodes: []operator.Why{waiting}},
			banner{"bad", "The cloud can't be described", "no permission", "it is tried again by itself; /check tells what the operator may do in the cloud"}},
		{"another leads", facts{err: operator.ErrNotLeading},
			banner{"warn", "Waiting", "This operator does not lead, and knows nothing of the cluster.", "the Lease enipool-operator names the one that does: open its page"}},
		{"it is busy", facts{err: errors.New("deadline")}, banner{"bad", "No answer", "The operator does not answer: deadline", "this page asks again"}},
		{"it observes", facts{report: operator.Report{Observe: true}}, banner{"warn", "Observing", "The operator calls nothing: operator.yaml says observe.", ""}},
	} {
		if diff := cmp.Diff(tt.want, bannerOf(tt.facts, worstFirst(tt.facts.nodes), noon)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, diff)
		}
	}
}

// many is a cluster of that many nodes, of which a tenth wait.
func many(count int) (list []operator.Why) {
	for i := range count {
		w := node(fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i/62500, i/250%250, i%250), 32, 32, 0)
		if i%10 == 0 {
			w.Have, w.Waiting = 16, 4
			w.Causes = []operator.Told{{Reason: "SubnetExhausted", Message: "subnet-0a1b2c3d4e5f60718 has no free address"}}
		}
		list = append(list, w)
	}
	return list
}

// asked is a request of a browser.
func asked() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept", "text/html")
	return r
}

func TestThePageOfALargeClusterIsBounded(t *testing.T) {
	for _, count := range []int{5000, 20_000} {
		var out strings.Builder
		if err := clusterTemplate.Execute(&out, clusterPageOf(facts{nodes: many(count)}, noon)); err != nil {
			t.Fatal(err)
		}
		cells := strings.Count(out.String(), `<i class="`) - len(grades)
		t.Logf("%d nodes: %d bytes, %d cells", count, out.Len(), cells)
		if out.Len() > 200_000 || cells > mostCells+mostShared+len(grades) {
			t.Errorf("%d nodes: %d bytes, %d cells", count, out.Len(), cells)
		}
	}
}

// Each node is in a cell, and a cell of several has nodes of one grade.
func TestSharedCellsStandForAllOthers(t *testing.T) {
	nodes := worstFirst(many(9000))
	cells, share := heatOf(nodes)
	stand := 0
	for _, c := range cells {
		var n int
		if _, err := fmt.Sscanf(c.Text, "%d nodes: ", &n); err != nil {
			n = 1
		}
		stand += n
	}
	if stand != len(nodes) || share != 43 {
		t.Errorf("%d cells stand for %d of %d nodes, up to %d each", len(cells), stand, len(nodes), share)
	}
}

func TestABrowserGetsThePageAndAProgramTheList(t *testing.T) {
	m, s := leading()
	s.report.Recent = []operator.Ended{{At: noon, Node: "n7", What: "move", Object: "eni-2", From: "eni-1", Addresses: 1}, {At: noon, Node: "n8", What: "release", Addresses: -3, Error: "no"}}
	w := httptest.NewRecorder()
	m.Handler(s, false).ServeHTTP(w, asked())
	text := strings.Join(strings.Fields(w.Body.String()), " ")
	for _, want := range []string{"<b>n7</b> move 1 address eni-2 from eni-1", `<b>n8</b> release 3 addresses <span class="failed">failed: no`, "subnet-a", "<td>3.5</td>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	if got := get(m, s, "/").Body.String(); !strings.HasPrefix(got, "enipool-operator\n") {
		t.Errorf("a program gets %.50q", got)
	}
}

func BenchmarkThePageOfACluster(b *testing.B) {
	nodes := many(5000)
	for b.Loop() {
		var out strings.Builder
		if err := clusterTemplate.Execute(&out, clusterPageOf(facts{nodes: nodes}, noon)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTheClustersPageIsAsHTMLTemplateMakesIt(t *testing.T) {
	pagetest.Compare[clusterPage](t, clusterHTML)
}
