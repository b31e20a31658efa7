package simulate

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
)

// typed returns what simulate makes of arguments.
func typed(t *testing.T, args ...string) simulation {
	t.Helper()
	f, cmd := &simulateFlags{}, &cobra.Command{}
	f.register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	s, err := f.readInput(f.compare)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return s
}

func TestTheExamplesCanBePlayed(t *testing.T) {
	t.Chdir("../../..")
	for line := range strings.Lines(simulateExample) {
		args, found := strings.CutPrefix(strings.TrimSpace(line), "enipoolctl simulate ")
		if !found {
			t.Errorf("no example: %s", line)
		}
		typed(t, strings.Fields(args)...)
	}
}

func TestTheWorldIsWhatTheFlagsSay(t *testing.T) {
	w := typed(t, "--workload", "steady", "--duration", "1m").world
	want := simulate.World{
		Limits: eni.Limits{ENIs: 8, V4: 30}, MaxPods: 110,
		Subnets: []simulate.Subnet{{ID: "10.0.0.0/16", CIDR: netip.MustParsePrefix("10.0.0.0/16"), Reserved: 3}},
		Latency: w.Latency, Wait: 5 * time.Second, Seed: 1,
	}
	if diff := cmp.Diff(want, w, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}

	w = typed(t, "--workload", "steady", "--duration", "1m", "--instance-type", "m5.large", "--subnet", "a=10.1.0.0/24", "--subnet", "10.2.0.0/24",
		"--available", "a=100", "--nodes", "3", "--pods-per-node", "5", "--eni-quota", "9", "--lead", "1s", "--wait", "0s", "--seed", "7", "--describing", "none",
		"--latency", "describe=1s", "--latency", "assign=2s+3s").world
	want = simulate.World{
		Limits: eni.Limits{ENIs: 3, V4: 10}, MaxPods: 27,
		Subnets: []simulate.Subnet{{ID: "a", CIDR: netip.MustParsePrefix("10.1.0.0/24"), Reserved: 5, Taken: 151},
			{ID: "10.2.0.0/24", CIDR: netip.MustParsePrefix("10.2.0.0/24"), Reserved: 5}},
		MaxENIs: 9, Mutating: sim.Bucket{Burst: 100, Every: 200 * time.Millisecond}, Lead: time.Second, Seed: 7,
		Latency: map[string]sim.Latency{
			"Limits": {Base: time.Second}, "Interfaces": {Base: time.Second}, "Subnets": {Base: time.Second},
			"AssignAddresses":   {Base: 2 * time.Second, Jitter: 3 * time.Second},
			"UnassignAddresses": {Base: 600 * time.Millisecond, Jitter: 400 * time.Millisecond},
			"CreateInterface":   {Base: 4 * time.Second, Jitter: 3 * time.Second},
			"DeleteInterface":   {Base: time.Second, Jitter: time.Second},
		},
		Driver: simulate.EC2().Driver, Buckets: simulate.EC2().Buckets,
	}
	if diff := cmp.Diff(want, w, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("typed (-want +got):\n%s", diff)
	}
}

func TestTheCloudDecidesWhatIsNotTyped(t *testing.T) {
	bucket := func(burst int, every time.Duration) sim.Bucket { return sim.Bucket{Burst: burst, Every: every} }
	for _, tt := range []struct {
		args                 string
		mutating, describing sim.Bucket
		reserved             int
	}{
		{"", sim.Bucket{}, sim.Bucket{}, 3},
		{"--cloud baidu", bucket(30, 50*time.Millisecond), bucket(30, 50*time.Millisecond), 3},
		{"--cloud bce", bucket(30, 50*time.Millisecond), bucket(30, 50*time.Millisecond), 3},
		{"--cpus 4 --memory 8", sim.Bucket{}, sim.Bucket{}, 3},
		{"--cloud aws", bucket(100, 200*time.Millisecond), bucket(100, 50*time.Millisecond), 5},
		{"--instance-type m5.xlarge", bucket(100, 200*time.Millisecond), bucket(100, 50*time.Millisecond), 5},
		{"--cloud aws --mutating 7/0.5", bucket(7, 2*time.Second), bucket(100, 50*time.Millisecond), 5},
		{"--cloud baidu --describing 1/1000", bucket(30, 50*time.Millisecond), bucket(1, time.Millisecond), 3},
		{"--cloud aws --mutating none --describing none", sim.Bucket{}, sim.Bucket{}, 5},
	} {
		w := typed(t, append([]string{"--workload", "steady", "--pods-per-node", "3", "--duration", "1m"}, strings.Fields(tt.args)...)...).world
		if w.Mutating != tt.mutating || w.Describing != tt.describing || w.Subnets[0].Reserved != tt.reserved {
			t.Errorf("%s: %v, %v, %d reserved", tt.args, w.Mutating, w.Describing, w.Subnets[0].Reserved)
		}
	}
}

// A cloud alone is a question: how long its nodes take to begin, with each mode.
func TestACloudDecidesInstanceTypeLoadAndModes(t *testing.T) {
	for _, tt := range []struct {
		args, load, instanceType string
		duration                 time.Duration
		limits                   eni.Limits
		settings                 int
	}{
		{"--cloud aws", "start", "m5.xlarge", 30 * time.Minute, eni.Limits{ENIs: 4, V4: 15}, 3},
		{"--cloud bce --duration 5m", "start", "bcc.g5.c4m16", 5 * time.Minute, eni.Limits{ENIs: 5, V4: 16, NoPrimary: true}, 3},
		{"--cloud aws --workload steady --instance-type m5.large", "steady", "m5.large", 24 * time.Hour, eni.Limits{ENIs: 3, V4: 10}, 0},
		{"--cloud aws --workload surge --max-enis 5 --ips-per-eni 6 --pods-per-node 4", "surge", "", 30 * time.Minute, eni.Limits{ENIs: 5, V4: 6}, 3},
		{"--workload surge --compare batch --pods-per-node 9", "surge", "", 30 * time.Minute, eni.Limits{ENIs: 8, V4: 30}, 1},
	} {
		f, cmd := &simulateFlags{}, &cobra.Command{}
		f.register(cmd)
		if err := cmd.ParseFlags(append([]string{"--pods-per-node", "3"}, strings.Fields(tt.args)...)); err != nil {
			t.Fatal(err)
		}
		f.settleDefaults()
		s, err := f.readInput(f.comparedModes())
		if err != nil {
			t.Fatalf("%s: %v", tt.args, err)
		}
		if s.load.Name != tt.load || s.instanceType != tt.instanceType || s.load.Duration != tt.duration || s.world.Limits != tt.limits || len(f.comparedModes()) != tt.settings {
			t.Errorf("%s: %s for %s, %q with %+v, %v", tt.args, s.load.Name, s.load.Duration, s.instanceType, s.world.Limits, f.comparedModes())
		}
	}
}

func TestADefaultSubnetHasRoom(t *testing.T) {
	for addresses, want := range map[int]string{1: "10.0.0.0/16", 65536: "10.0.0.0/16", 65537: "10.0.0.0/15", 2_400_003: "10.0.0.0/10", 1 << 30: "10.0.0.0/8"} {
		if got := roomy(addresses).String(); got != want {
			t.Errorf("%d addresses: %s, want %s", addresses, got, want)
		}
	}
}

func TestMaxPodsFollowsFlagFileLoadAndInstanceType(t *testing.T) {
	m := account.Instance{}
	m.ENIs, m.V4 = 8, 30 // 232 pods
	for _, tt := range []struct{ flag, peak, configured, want int }{
		{0, 30, 0, 110}, {0, 130, 0, 130}, {0, 30, 60, 60}, {0, 70, 60, 70}, {0, 30, 250, 232}, {32, 30, 60, 32}, {232, 232, 0, 232},
	} {
		got, err := (&playFlags{maxPods: tt.flag}).podDensity(m, tt.peak, tt.configured)
		if err != nil || got != tt.want {
			t.Errorf("%+v: %d, %v", tt, got, err)
		}
	}
}

func TestATracePlaysAsLongAndOnAsManyNodesAsItSays(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	anyNode := write("any.csv", "time,pods\n0,12\n600,3\n")
	named := write("named.csv", "time,node,pods\n0,a,12\n0,b,2\n60,b,3\n")
	for _, tt := range []struct {
		args        string
		nodes, pods int
		duration    time.Duration
	}{
		{"--trace " + anyNode, 1, 12, 10 * time.Minute},
		{"--trace " + anyNode + " --nodes 3 --stagger 5m", 3, 36, 10 * time.Minute},
		{"--trace " + anyNode + " --duration 1h", 1, 12, time.Hour},
		{"--trace " + named, 2, 14, time.Minute},
		{"--trace " + named + " --nodes 2", 2, 14, time.Minute},
	} {
		l := typed(t, strings.Fields(tt.args)...).load
		if len(l.Nodes) != tt.nodes || l.Pods() != tt.pods || l.Duration != tt.duration {
			t.Errorf("%s: %d nodes, %d pods, %s", tt.args, len(l.Nodes), l.Pods(), l.Duration)
		}
	}
}

func TestAPageComesAsAWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.html")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page, err := cli.NewPageFile(link)
	if err != nil {
		t.Fatal(err)
	}
	page.Discard()
	if entries, _ := os.ReadDir(dir); len(entries) != 2 || read() != "old" {
		t.Errorf("discarding left %v, %q", entries, read())
	}
	if page, err = cli.NewPageFile(link); err != nil {
		t.Fatal(err)
	}
	if err := page.Write(func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		t.Fatal(err)
	}
	page.Discard()
	if at, err := os.Readlink(link); read() != "new" || err != nil || at != path {
		t.Errorf("%q, %s, %v", read(), at, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left over: %v", entries)
	}
}

func TestAnInterruptEndsItWithoutLeftovers(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	dir := t.TempDir()
	var out, said bytes.Buffer
	code := cli.Run(ctx, Command(""), []string{"--workload", "burst", "--html", filepath.Join(dir, "page.html")}, &out, &said)
	if want := "enipoolctl: interrupted before all settings were played\n"; code != 2 || said.String() != want || out.Len() > 0 {
		t.Errorf("exit %d, %q, %q", code, said.String(), out.String())
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left over: %v", entries)
	}
}

// Not a terminal: no bar.
func TestNoProgressIsShownToPrograms(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 1, time.Hour)
	p.showPlayed(0, time.Minute)
	p.end()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}
