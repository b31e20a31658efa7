package web

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"pgregory.net/rapid"
)

func get(m *Metrics, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	m.Handler(nil, false).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// scrape returns all series with their values, as Prometheus gets them.
func scrape(t testing.TB, m *Metrics) map[string]float64 {
	t.Helper()
	w := get(m, "/metrics")
	if w.Code != http.StatusOK {
		t.Fatalf("/metrics: %d\n%s", w.Code, w.Body)
	}
	series := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		v, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		series[line[:at]] = v
	}
	return series
}

// gaugesOf returns the series of the gauges that are made from the status: what Prometheus is told is
// a gauge, whatever its name ends in. That of the release is made at the start.
func gaugesOf(t testing.TB, m *Metrics) map[string]float64 {
	t.Helper()
	of := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (enipool_\w+) gauge$`).FindAllStringSubmatch(get(m, "/metrics").Body.String(), -1) {
		of[found[1]] = found[1] != "enipool_build_info"
	}
	kept := map[string]float64{}
	for series, v := range scrape(t, m) {
		if name, _, _ := strings.Cut(series, "{"); of[name] {
			kept[series] = v
		}
	}
	return kept
}

// A gauge may be called anything: its name tells no more than that it is ours.
func TestAGaugeOfSecondsIsAGauge(t *testing.T) {
	m := New("v1")
	for _, name := range []string{"enipool_test_seconds", "enipool_test_total_seconds", "enipool_test_info", "test"} {
		m.registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name}))
	}
	m.registry.MustRegister(newCounter("enipool_test_total", "", "a"))
	want := map[string]float64{"enipool_ready": 0, "enipool_test_seconds": 0, "enipool_test_total_seconds": 0, "enipool_test_info": 0}
	if diff := cmp.Diff(want, gaugesOf(t, m)); diff != "" {
		t.Error(diff)
	}
}

func TestTheGaugesAreTheLastStatus(t *testing.T) {
	m := New("v1")
	m.Observe(status.Status{Reason: "up", Exhausted: "subnet-b"})
	m.Observe(status.Status{Demand: 36, Need: 48, Target: 49, Reason: "hold-delay", Burst: true, Most: 109, MaxPods: 110,
		Addresses: status.Addresses{Attached: 28, Free: 1, Used: 2, Cooling: 3, Releasing: 4, Lost: 5, Held: 16, Unlinked: 9, Damaged: 6, Reserved: 8, Claimed: 1},
		ENIs:      2, ENILimit: 4, PendingADDs: 35, StaleAllocations: 7, InFlight: []string{"a", "b"}, Backoff: []string{"c"},
		Causes: []status.Cause{{Kind: "subnet-full"}, {Kind: "throttled"}}, TargetCauses: []string{"d", "e", "f"}, Refused: &status.Refused{}, Ready: true, Exhausted: "subnet-a,subnet-c",
		Findings: status.Findings{LeftOut: []string{"g", "h"}, Misrouted: []string{"i"}, Unlinked: []string{"j", "k", "l"}, Undone: make([]status.Undone, 4)}})
	want := map[string]float64{
		"enipool_demand": 36, "enipool_need": 48, "enipool_target": 49, "enipool_in_burst": 1, "enipool_most": 109,
		"enipool_max_pods": 110, "enipool_enis": 2, "enipool_eni_limit": 4, "enipool_waiters": 35, "enipool_orphans": 7,
		"enipool_in_flight": 2, "enipool_backoffs": 1, "enipool_blockers": 3, "enipool_quarantined": 2, "enipool_misrouted": 1, "enipool_links_missing": 3, "enipool_repairs_undone": 4, "enipool_config_ok": 0, "enipool_ready": 1,
		`enipool_addresses{state="free"}`: 1, `enipool_addresses{state="used"}`: 2, `enipool_addresses{state="cooling"}`: 3,
		`enipool_addresses{state="releasing"}`: 4, `enipool_addresses{state="lost"}`: 5, `enipool_addresses{state="held"}`: 7, `enipool_addresses{state="unlinked"}`: 9, `enipool_addresses{state="damaged"}`: 6, `enipool_addresses{state="reserved"}`: 8,
		`enipool_subnet_exhausted{subnet="subnet-a"}`: 1, `enipool_subnet_exhausted{subnet="subnet-b"}`: 0, `enipool_subnet_exhausted{subnet="subnet-c"}`: 1,
	}
	for kind := range strings.FieldsSeq("forbidden unavailable wrong-instance operator-silent cache-unusable address-limit subnet-full eni-limit no-subnet throttled link-missing setup-failed call-failed held-by-others room-taken under-way") {
		want[fmt.Sprintf("enipool_cause{kind=%q}", kind)] = float64(oneIf(kind == "subnet-full"))
	}
	for _, r := range reasons {
		want[fmt.Sprintf("enipool_reason{reason=%q}", r)] = 0
	}
	for _, r := range health.Reasons()[1:] {
		want[fmt.Sprintf("enipool_fault{reason=%q}", r)] = 0
	}
	want[`enipool_reason{reason="hold-delay"}`] = 1
	if diff := cmp.Diff(want, gaugesOf(t, m)); diff != "" {
		t.Error(diff)
	}
}

// The metrics of the fast path tell whether it is on, why not, and what took it.
func TestTheFastPathIsTold(t *testing.T) {
	const on = "enipool_fast_path"
	off := func(cause string) string { return fmt.Sprintf("enipool_fast_path_off{cause=%q}", cause) }
	packets := func(direction string) string {
		return fmt.Sprintf("enipool_fast_path_packets_total{direction=%q}", direction)
	}
	counted := map[string]float64{packets("out"): 12, packets("in"): 34, packets("local"): 56}
	for _, tt := range []struct {
		name string
		path *status.FastPath
		want map[string]float64
	}{
		{"an agent that keeps none", nil, nil},
		{"on", &status.FastPath{Out: 12, In: 34, Local: 56}, map[string]float64{on: 1}},
		{"switched off", &status.FastPath{Off: []string{"the key fastPath is off"}, Out: 12, In: 34, Local: 56},
			map[string]float64{on: 0, off("the key fastPath is off"): 1}},
		{"off for several causes, one of them twice", &status.FastPath{Off: []string{"a \"b\"", "IPVS serves addresses", "a \"b\""}, Out: 12, In: 34, Local: 56},
			map[string]float64{on: 0, off("a \"b\""): 1, off("IPVS serves addresses"): 1}},
		{"a chain whose name is no text", &status.FastPath{Off: []string{"chain \xff of ip t"}, Out: 12, In: 34, Local: 56},
			map[string]float64{on: 0, off("chain ? of ip t"): 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New("v1")
			m.Observe(status.Status{FastPath: tt.path})
			got := scrape(t, m)
			maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.HasPrefix(name, on) })
			if tt.want != nil {
				maps.Copy(tt.want, counted)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatTheClusterKnowsIsToldAndWhatItDoesNotIsNot(t *testing.T) {
	for _, tt := range []struct {
		name  string
		s     status.Status
		want  map[string]float64
		fault string // the only series of it that is 1
	}{
		{"no cluster", status.Status{Health: health.Report{Reason: health.AddressesAvailable, Capacity: 57}}, map[string]float64{"enipool_capacity": 57}, ""},
		{"nothing was judged yet", status.Status{Watched: true, Health: health.Report{Capacity: -1}}, map[string]float64{"enipool_pods_known": 0}, ""},
		{"no capacity is known", status.Status{Health: health.Report{Reason: health.CloudForbidden, Faulty: true, Capacity: -1}}, nil, health.CloudForbidden},
		{"a full subnet", status.Status{Watched: true, Synced: true, Pods: 19, Health: health.Report{Faulty: true, Reason: health.SubnetExhausted}},
			map[string]float64{"enipool_pods_known": 1, "enipool_pods": 19, "enipool_capacity": 0}, health.SubnetExhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New("v1")
			m.Observe(tt.s)
			got, fault := map[string]float64{}, ""
			for name, v := range scrape(t, m) {
				reason, isFault := strings.CutPrefix(name, "enipool_fault{reason=")
				if isFault && v == 1 {
					fault += strings.Trim(reason, `"}`)
				}
				if strings.HasPrefix(name, "enipool_pods") || strings.HasPrefix(name, "enipool_capacity") {
					got[name] = v
				}
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || fault != tt.fault {
				t.Errorf("fault %q, want %q\n%s", fault, tt.fault, diff)
			}
		})
	}
}

func TestAReasonThatIsNewHereIsToldToo(t *testing.T) {
	m := New("v1")
	m.Observe(status.Status{Reason: "hold-moon"})
	if got := scrape(t, m)[`enipool_reason{reason="hold-moon"}`]; got != 1 {
		t.Errorf("got %v", got)
	}
}

func TestBeforeTheFirstTickTheOnlyNumberIsThatItIsNotReady(t *testing.T) {
	if diff := cmp.Diff(map[string]float64{"enipool_ready": 0}, gaugesOf(t, New("v1"))); diff != "" {
		t.Error(diff)
	}
}

// Zeros would be holes in the sums over a cluster whose agents are restarted.
func TestWhatTheCloudHasNotToldYetIsNoNumber(t *testing.T) {
	m := New("v1")
	m.Observe(status.Status{Demand: 3, Target: 16, ENIs: 1, Ready: true})
	got := gaugesOf(t, m)
	for _, name := range []string{"enipool_need", "enipool_most", "enipool_eni_limit"} {
		if n, told := got[name]; told {
			t.Errorf("%s %v", name, n)
		}
	}
	if got["enipool_target"] != 16 || got["enipool_enis"] != 1 {
		t.Errorf("got %v", got)
	}
}

func TestWhatHappensIsCounted(t *testing.T) {
	m := New("v1.2.3")
	m.Call("AssignAddresses", "ok", 300*time.Millisecond)
	m.Call("AssignAddresses", "throttled", 2*time.Second)
	m.Step(status.Step{Action: "assign"})
	m.Repaired("kernel", 3)
	m.Repaired("kernel", 0)
	m.Error("tick")
	m.Tick(800 * time.Microsecond)
	m.Waited("served", 300*time.Millisecond)
	m.Waited("served", 40*time.Second)
	got := scrape(t, m)
	for name, want := range map[string]float64{
		`enipool_cloud_calls_total{op="AssignAddresses",outcome="ok"}`:        1,
		`enipool_cloud_calls_total{op="AssignAddresses",outcome="throttled"}`: 1,
		`enipool_cloud_call_seconds_count{op="AssignAddresses"}`:              2,
		`enipool_cloud_call_seconds_sum{op="AssignAddresses"}`:                2.3,
		`enipool_cloud_call_seconds_bucket{op="AssignAddresses",le="0.5"}`:    1,
		`enipool_steps_total{action="assign",outcome="ok"}`:                   1,
		`enipool_repairs_total{what="kernel"}`:                                3,
		`enipool_errors_total{kind="tick"}`:                                   1,
		`enipool_tick_seconds_bucket{le="0.001"}`:                             1,
		`enipool_add_wait_seconds_count{outcome="served"}`:                    2,
		`enipool_add_wait_seconds_bucket{outcome="served",le="0.5"}`:          1,
		`enipool_add_wait_seconds_sum{outcome="served"}`:                      40.3,
		`enipool_tick_seconds_sum`:                                            0.0008,
		`enipool_tick_seconds_count`:                                          1,
		`enipool_build_info{release="v1.2.3"}`:                                1,
	} {
		if v, there := got[name]; v != want || !there {
			t.Errorf("%s is %v (there: %v), want %v", name, v, there, want)
		}
	}
}

// rate() and increase() see the first of a kind only where there was a 0 before.
func TestEverySeriesThatIsKnownBeforehandBeginsAtZero(t *testing.T) {
	got := scrape(t, New("v1", cloud.Outcomes()...))
	var want []string
	failures := []string{"ok"}
	for _, kind := range cloud.NodeKinds() {
		failures = append(failures, strings.ReplaceAll(kind.Error(), " ", "-"))
	}
	methods := []string{"Describe"}
	for m := range reflect.TypeFor[cloud.Cloud]().Methods() {
		together := []string{"Limits", "Interfaces", "Subnets"} // are Describe
		calls := !slices.Contains([]string{"Known", "Notes", "Recall"}, m.Name)
		if calls && !slices.Contains(together, m.Name) {
			methods = append(methods, m.Name)
		}
	}
	for _, op := range methods {
		want = append(want, fmt.Sprintf("enipool_cloud_call_seconds_count{op=%q}", op))
		for _, outcome := range failures {
			want = append(want, fmt.Sprintf("enipool_cloud_calls_total{op=%q,outcome=%q}", op, outcome))
		}
	}
	for a := pool.Restore; a <= pool.Delete; a++ {
		for _, outcome := range []string{"ok", "failed"} {
			want = append(want, fmt.Sprintf("enipool_steps_total{action=%q,outcome=%q}", a, outcome))
		}
	}
	for _, outcome := range []string{"served", "exhausted", "failed"} {
		want = append(want, fmt.Sprintf("enipool_add_wait_seconds_count{outcome=%q}", outcome))
	}
	for _, name := range want {
		if v, there := got[name]; v != 0 || !there {
			t.Errorf("%s is %v (there: %v), want 0", name, v, there)
		}
	}
	ours := 0
	for name := range got {
		if strings.HasPrefix(name, "enipool_") {
			ours++
		}
	}
	if ours > 170 {
		t.Errorf("%d series on a node with nothing to tell", ours)
	}
}

func TestGoAndTheProcessAreMeasuredToo(t *testing.T) {
	got := scrape(t, New("v1"))
	for _, name := range []string{"process_resident_memory_bytes", "process_cpu_seconds_total", "go_goroutines"} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

func TestTheNamesAndHelpTextsAreAsPrometheusWantsThem(t *testing.T) {
	m := New("v1")
	m.Observe(status.Status{Exhausted: "subnet-a", Reason: "up"})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Whatever ticks and scrapes cross, the states of one scrape sum up to what is
// attached, and to nothing in between.
func TestAScrapeSeesOneTickAlone(t *testing.T) {
	m := New("v1")
	var ticks sync.WaitGroup
	ticks.Go(func() {
		for n := range 2000 {
			m.Observe(status.Status{Target: 7 * n, Addresses: status.Addresses{Attached: 7 * n, Free: n, Used: n, Cooling: n, Releasing: n, Lost: n, Held: n, Damaged: n}})
			m.Tick(time.Millisecond)
		}
	})
	for range 100 {
		series, sum := scrape(t, m), 0.0
		for name, v := range series {
			if strings.HasPrefix(name, "enipool_addresses{") {
				sum += v
			}
		}
		if sum != series["enipool_target"] {
			t.Errorf("states sum up to %v, the same tick had %v", sum, series["enipool_target"])
		}
	}
	ticks.Wait()
}

func TestTheStatesSumUpToWhatIsAttached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SliceOfN(rapid.IntRange(0, 4096), 8, 8).Draw(t, "states")
		a := status.Addresses{Free: n[0], Used: n[1], Cooling: n[2], Releasing: n[3], Lost: n[4], Held: n[6] + n[7], Unlinked: n[7], Damaged: n[5]}
		a.Attached = a.Free + a.Used + a.Cooling + a.Releasing + a.Lost + a.Held + a.Damaged
		m := New("v1")
		m.Observe(status.Status{Addresses: a})
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, f := range families {
			if f.GetName() == "enipool_addresses" {
				for _, state := range f.GetMetric() {
					sum += int(state.GetGauge().GetValue())
				}
			}
		}
		if sum != a.Attached {
			t.Errorf("sum %d, attached %d", sum, a.Attached)
		}
	})
}
