package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/google/go-cmp/cmp"
)

func asJSON(t *testing.T, r Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestJSONOfAReport(t *testing.T) {
	golden(t, "two.json", asJSON(t, sample(2, 2)))
}

func TestJSONOfNothingHasEmptyLists(t *testing.T) {
	golden(t, "nothing.json", asJSON(t, Report{Results: []simulate.Result{{}}}))
}

// What is read from the JSON and written again is the same text: nothing depends on
// the order of a map, and no number loses anything.
func TestJSONSurvivesARoundTrip(t *testing.T) {
	r := sample(3, 50)
	r.Results[1].Name = `</script><b>&"'`
	first := asJSON(t, r)
	var read readReport
	if err := json.Unmarshal(first, &read); err != nil {
		t.Fatal(err)
	}
	var second bytes.Buffer
	out := json.NewEncoder(&second)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), second.String()); diff != "" {
		t.Errorf("-first +second:\n%s", diff)
	}
}

// readReport reads the JSON as a program of somebody else would: seconds are numbers.
type readReport struct {
	Release  string          `json:"enipool"`
	Load     json.RawMessage `json:"load"`
	Instance Instance        `json:"machine"`
	Subnets  []Subnet        `json:"subnets"`
	Cloud    json.RawMessage `json:"cloud"`
	Lead     float64         `json:"lead"`
	Wait     float64         `json:"wait"`
	Seed     uint64          `json:"seed"`
	Results  []readResult    `json:"results"`
}

type readResult struct {
	Name  string `json:"name"`
	Pods  int    `json:"pods"`
	Waits struct {
		P50    float64 `json:"p50"`
		P99    float64 `json:"p99"`
		Max    float64 `json:"max"`
		Waited int     `json:"waited"`
		Failed int     `json:"failed"`
		Never  int     `json:"never"`
	} `json:"waits"`
	Idle   simulate.Idle  `json:"idle"`
	Calls  simulate.Calls `json:"calls"`
	Series []readBin      `json:"series"`
}

type readBin struct {
	Start     float64 `json:"start"`
	Demand    int     `json:"demand"`
	Target    int     `json:"target"`
	Owned     int     `json:"owned"`
	Free      int     `json:"free"`
	Idle      int     `json:"idle"`
	Waiting   int     `json:"waiting"`
	Longest   float64 `json:"longest"`
	Calls     int     `json:"calls"`
	Describes int     `json:"looks"`
}

func TestReportsAreTheSameEachTime(t *testing.T) {
	want := string(asJSON(t, sample(2, 20)))
	for range 20 {
		if diff := cmp.Diff(want, string(asJSON(t, sample(2, 20)))); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestNewSaysWhatWasPlayed(t *testing.T) {
	w := simulate.World{
		MaxENIs: 100, MaxPods: 30, Wait: 5 * time.Second, Seed: 1 << 63,
		Latency:    map[string]sim.Latency{"": {Base: time.Second}, "AssignAddresses": {}, "Zebra": {Base: 1, Jitter: 2}},
		Describing: sim.Bucket{Every: time.Second},
	}
	w.Limits.ENIs, w.Limits.V6 = 3, 10
	for k := range 6 {
		w.Subnets = append(w.Subnets, simulate.Subnet{ID: fmt.Sprint("s", k)})
	}
	got := New("v1", w, simulate.Load{Nodes: [][]simulate.Pod{{}, make([]simulate.Pod, 1)}}, nil)
	var facts bytes.Buffer
	for _, f := range got.facts() {
		fmt.Fprintf(&facts, "%s: %s\n", f.About, f.Text)
	}
	want := `load: 0s of 2 nodes with 1 pod
machine: 3 ENIs of 10 addresses, at most 30 pods
subnets: s0, s1, s2, s3, and 2 more
cloud: calls take: AssignAddresses 0s, Zebra <1ms, other 1s; any number of changes; 1 look at once, then one each 1s; at most 100 ENIs
agent: knows of a pod when its ADD comes, which waits up to 5s for an address
seed: 9223372036854775808
enipool: v1
`
	if diff := cmp.Diff(want, facts.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
