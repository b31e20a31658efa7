package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/plugins/enipoolctl/simulate"
)

// bounds are the numbers that both commands tell.
type bounds struct {
	Needed, Planned  int
	Bound, PlanBound float64
	By               string
}

// played returns what simulate says of a setting with an operator.
func played(t *testing.T, args ...string) bounds {
	t.Helper()
	var out bytes.Buffer
	cmd := simulate.Command("v1")
	cmd.SetOut(&out)
	cmd.SetArgs(append(args, "--operator", "--compare", "batch", "--duration", "1m", "-o", "json"))
	if err := cmd.Execute(); err != nil {
		t.Fatal(args, err)
	}
	var report struct {
		Results []struct {
			Name   string
			Served bounds
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	last := report.Results[len(report.Results)-1]
	if last.Name != "batch, operator" {
		t.Fatal(last)
	}
	return last.Served
}

// topologyOf writes a file with a topology of a subnet that is its own.
func topologyOf(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "topologies.yaml")
	text := `apiVersion: enipool.io/v1alpha1
kind: Subnet
metadata: {name: db}
spec: {use: Exclusive}
---
apiVersion: enipool.io/v1alpha1
kind: PodSubnetTopology
metadata: {name: databases}
spec: {subnets: [{id: db}], strategy: {type: Sticky, ttl: 24h}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPlanTellsTheBoundThatSimulateDoes(t *testing.T) {
	hosting := []string{"--subnet", "db=10.0.0.0/16", "--subnet", "a=10.1.0.0/16", "--file", topologyOf(t), "--topology-pods", "databases=100010", "--topology-places", "14"}
	// Of more than 10,000 nodes no agents are played beside the operator.
	for _, tt := range []struct {
		name     string
		both     []string
		plan     []string
		simulate []string
		pods     int
	}{
		{"three ENIs", []string{"--instance-type", "m5.xlarge", "--cloud", "aws", "--max-pods", "30"}, nil, []string{"--pods-per-node", "30"}, 300030},
		{"half of the rates", []string{"--instance-type", "m5.xlarge", "--cloud", "aws", "--max-pods", "56", "--share", "50"}, nil, []string{"--pods-per-node", "56"}, 560056},
		{"pods that are needed", []string{"--instance-type", "m5.xlarge", "--cloud", "aws", "--max-pods", "56"}, []string{"--pods", "200021"}, []string{"--pods-per-node", "21"}, 210021},
		{"prefixes", []string{"--instance-type", "m5.large", "--cloud", "aws", "--max-pods", "110", "--prefixes"}, nil, []string{"--pods-per-node", "110"}, 1100110},
		{"baidu", []string{"--instance-type", "bcc.g5.c16m64", "--cloud", "baidu", "--max-pods", "100"}, nil, []string{"--pods-per-node", "100"}, 1000100},
		{"topologies", []string{"--instance-type", "m5.xlarge", "--cloud", "aws", "--topology-places", "14"}, append([]string{"--max-pods", "30"}, hosting...),
			[]string{"--max-pods", "40", "--pods-per-node", "40", "--topology-share", "25"}, 400040},
		{"topologies beside prefixes", []string{"--instance-type", "m5.xlarge", "--cloud", "aws", "--topology-places", "14", "--prefixes"}, append([]string{"--max-pods", "90"}, hosting...),
			[]string{"--max-pods", "100", "--pods-per-node", "100", "--topology-share", "10"}, 1000100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both := append([]string{"--nodes", "10001"}, tt.both...)
			want := played(t, slices.Concat(both, tt.simulate)...)
			out, _ := run(slices.Concat(both, tt.plan, []string{"--operator", "-o", "json"})...)
			var answer struct {
				Plans []struct {
					Operator struct {
						Share, Pods, Changes, Planned int
						After, PlannedAfter           float64
						By                            string
					}
				}
			}
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatal(err, out)
			}
			o := answer.Plans[0].Operator
			if got := (bounds{o.Changes, o.Planned, o.After, o.PlannedAfter, o.By}); got != want || o.Pods != tt.pods || got.Bound == 0 {
				t.Errorf("%+v for %d pods; simulate says %+v for %d", got, o.Pods, want, tt.pods)
			}
		})
	}
}

func TestWhatAnOperatorTakesIsSaid(t *testing.T) {
	args := []string{"--subnet", "10.0.0.0/16", "--instance-type", "m5.xlarge", "--nodes", "200", "--max-pods", "30", "--operator"}
	out, err := run(args...)
	const line = "  starting 200 nodes at once: 1,400 requests that change something; with an operator that takes 80% of the account's rates all 6,000 pods have addresses after 1m34s at the soonest (AttachNetworkInterface)\n"
	if err != nil || !strings.Contains(out, line) {
		t.Errorf("%v: no %q in\n%s", err, line, out)
	}
	out, err = run(append(args, "-o", "csv")...)
	if rows := strings.Split(out, "\n"); err != nil || !strings.HasSuffix(rows[0], ",neededENIs,eniQuota,operatorShare,operatorNodes,operatorPods,operatorChanges,operatorAfter,operatorBy,operatorPlanned,operatorPlannedAfter") ||
		!strings.HasSuffix(rows[1], ",,,,,,,,,,") || !strings.HasSuffix(rows[2], ",600,5000,80,200,6000,1400,93.75,AttachNetworkInterface,1400,93.75") {
		t.Errorf("%v:\n%s", err, out)
	}
	file := topologyOf(t)
	for want, more := range map[string][]string{
		"all 6,200 pods, 200 of topologies among them, have addresses after 2m24s":                       {"--topology-places", "1", "--topology-pods", "databases=200"},
		"note: pods of topologies are not among them: no place of a node is kept for them":               {"--topology-pods", "databases=200"},
		"with what nodes keep ready 1,400 requests, after 1m34s":                                         {"--topology-places", "0", "--pods", "5401"},
		"; with an operator that takes 1% of the account's rates all 6,000 pods have addresses after 2h": {"--share", "1"},
	} {
		more = slices.Concat(args, []string{"--file", file, "--subnet", "db=10.1.0.0/16"}, more)
		if out, _ := run(more...); !strings.Contains(out, want) {
			t.Errorf("%v: no %q in\n%s", more, want, out)
		}
	}
	out, _ = run("--instance-type", "bcc.g5.c16m64", "--cross-subnet", "--nodes", "20", "--operator", "--file", file, "--subnet", "db=10.1.0.0/16", "--topology-pods", "databases=20", "--topology-places", "9")
	if want := "note: pods of topologies are not among them: ENIs of other subnets carry them"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

func TestWhatCanNotBeReckonedForAnOperatorIsRefused(t *testing.T) {
	for want, args := range map[string]string{
		"--share: is for --operator":                                                        "--nodes 2 --instance-type m5.large --share 50",
		"--share 0: must be from 1 to 100":                                                  "--nodes 2 --instance-type m5.large --operator --share 0",
		"--operator: say how many nodes start at once with --nodes":                         "--pods 100 --instance-type m5.large --operator",
		"--nodes 1000001: must be at most 1000000 with --operator":                          "--nodes 1000001 --instance-type m5.large --operator",
		"--operator: say with --cloud whose rates it takes: aws or baidu":                   "--nodes 2 --max-enis 8 --ips-per-eni 40 --operator",
		"--operator: is for a plan; leave it out with --karpenter and --cluster-autoscaler": "--nodes 2 --instance-type m5.large --operator --karpenter",
		fmt.Sprintf("--operator: a node has %d ENIs, and an agent knows at most ", 200):     "--nodes 2 --max-enis 200 --ips-per-eni 40 --cloud aws --operator",
	} {
		if out, err := run(strings.Fields(args)...); err == nil || !strings.HasPrefix(err.Error(), want) || out != "" {
			t.Errorf("%s: %v, want %s\n%s", args, err, want, out)
		}
	}
}
