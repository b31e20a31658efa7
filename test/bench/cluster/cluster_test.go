package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	testbed "github.com/enipool/enipool/test/kube"
)

// All parts work, with few nodes and short times. What they measure is not judged.
func TestASmallClusterIsMeasured(t *testing.T) {
	testbed.Need(t)
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../../../plugins/enipool-operator").CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, out)
	}
	s := sizes{nodes: 6, pods: 60, atOnce: 2, rates: 1, arrive: 500 * time.Millisecond, quiet: time.Second, settle: time.Second, phases: true, operator: filepath.Join(dir, "enipool-operator")}
	out, said := filepath.Join(dir, "CLUSTER.md"), &strings.Builder{}
	if err := runAll(t.Context(), s, "growth|rest|per-node", out, said); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"| 6 nodes with 60 pods in 500ms: until all pods have addresses ", "| writes a second to the API server, quiet for 1s, without leases ",
		"| per-node mode, the same 2 nodes at once in virtual time"} {
		if !strings.Contains(string(text), row) {
			t.Errorf("there is no row %q in:\n%s", row, text)
		}
	}
}

func TestMetricsAreReadAsTheAPIServerWritesThem(t *testing.T) {
	before := readTraffic([]byte(`# HELP apiserver_request_total Counter
apiserver_request_total{code="201",group="",resource="pods",scope="resource",verb="POST"} 7
apiserver_request_total{code="200",group="",resource="pods",scope="resource",verb="GET"} 9
`))
	after := readTraffic([]byte(`apiserver_request_total{code="201",group="",resource="pods",scope="resource",verb="POST"} 10
apiserver_request_total{code="409",group="",resource="pods",scope="resource",verb="POST"} 1
apiserver_request_total{code="200",group="",resource="pods",scope="resource",verb="GET"} 90
apiserver_request_total{code="200",group="enipool.io",resource="nodenetworks",subresource="status",verb="PUT"} 2
apiserver_request_body_size_bytes_sum{group="enipool.io",resource="nodenetworks",verb="update"} 4096
apiserver_response_sizes_sum{group="enipool.io",resource="nodenetworks",verb="PUT"} 5e+03
apiserver_response_sizes_sum{group="",resource="pods",verb="PUT"} 5e+03
`))
	want := traffic{writes: map[string]float64{"pods": 4, "nodenetworks": 2}, bytes: map[string]float64{"requests": 4096, "answers": 5000}}
	if diff := cmp.Diff(want, after.since(before), cmp.AllowUnexported(traffic{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheBoundIsThatOfTheShare(t *testing.T) {
	for nodes, want := range map[int]time.Duration{80: 600 * time.Millisecond, 1000: 230*time.Second + 600*time.Millisecond, 5000: 1230*time.Second + 600*time.Millisecond} {
		if got := (sizes{rates: 1}).bound(nodes); got != want {
			t.Errorf("the bound of %d nodes is %s, want %s", nodes, got, want)
		}
	}
}
