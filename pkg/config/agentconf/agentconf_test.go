package agentconf

import (
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const sample = "../../../conf/agent.yaml"

// least is what a file must have: the keys without a default.
const least = `
vpcCIDRs: [10.0.0.0/16]
cloud: {endpoint: "unix:///run/enipool/vpc.sock"}
`

var compare = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

// defaults is what least stands for.
func defaults() Config {
	c := Default()
	c.Settings.VPC = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	c.Cloud.Endpoint = "unix:///run/enipool/vpc.sock"
	return c
}

func readSample(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTheSampleHasTheDefaults(t *testing.T) {
	for name, text := range map[string][]byte{"the sample": readSample(t), "the least": []byte(least)} {
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(defaults(), got, compare); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// shownKeys are the full names of the keys in a file.
func shownKeys(t *testing.T, text []byte) map[string]bool {
	t.Helper()
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for name, v := range file {
		section, _ := v.(map[string]any)
		shown[name] = section == nil
		for sub := range section {
			shown[name+"."+sub] = true
		}
	}
	return shown
}

// TestTheSampleExplainsEveryKey finds the keys where the parser has them.
func TestTheSampleExplainsEveryKey(t *testing.T) {
	text := readSample(t)
	shown := shownKeys(t, text)
	for _, k := range allKeys(new(Config)) {
		last := k.Name[strings.LastIndex(k.Name, ".")+1:]
		if !shown[k.Name] && (k.Name != multipleAlias || !strings.Contains(string(text), last)) {
			t.Errorf("%s does not show %s", sample, k.Name)
		}
	}
	// Each group of keys stands below a comment.
	before := ""
	for line := range strings.Lines(string(text)) {
		if word := strings.TrimSpace(line); word != "" && !strings.HasPrefix(word, "#") && before == "" && !slices.Contains(sections, strings.TrimSuffix(word, ":")) {
			t.Errorf("%s does not explain %s", sample, word)
		}
		before = strings.TrimSpace(line)
	}
}

// eachKey are files and what they make of the defaults.
var eachKey = []struct {
	text string
	want func(*Config)
}{
	{"node: node-1", func(c *Config) { c.Node = "node-1" }},
	{"node: 17", func(c *Config) { c.Node = "17" }},
	{"cache: /run/other//node.cache", func(c *Config) { c.Cache = "/run/other/node.cache" }},
	{"state: /var/lib/agent.json", func(c *Config) { c.State = "/var/lib/agent.json" }},
	{"routing: rule", func(c *Config) { c.Settings.Routing = ipam.Rule }},
	{"firewall: nftables", func(c *Config) { c.AnyFirewall = false }},
	{"firewall: auto", func(*Config) {}},
	{"{firewall: iptables, routing: rule}", func(c *Config) {
		c.AnyFirewall, c.Settings.Firewall, c.Settings.Routing = false, ipam.Iptables, ipam.Rule
	}},
	{"vpcCIDRs: [10.0.0.0/16, 2001:db8::/56]", func(c *Config) {
		c.Settings.VPC = append(c.Settings.VPC, netip.MustParsePrefix("2001:db8::/56"))
	}},
	{"{snat: false, vpcCIDRs: []}", func(c *Config) { c.Settings.SNAT, c.Settings.VPC = false, nil }},
	{"fastPath: auto", func(c *Config) { c.FastPath = Auto }},
	{"fastPath: off", func(c *Config) { c.FastPath = Off }},
	{"fastPath: 'off'", func(c *Config) { c.FastPath = Off }},
	{"coolDown: 0s", func(c *Config) { c.Settings.CoolDown = 0 }},
	{"markMask: 0xff", func(c *Config) { c.Settings.MarkMask = 0xff }},
	{`markMask: "0xff000000"`, func(c *Config) { c.Settings.MarkMask = 0xff000000 }},
	{"families: [ipv6, ipv4]", func(c *Config) { c.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6} }},
	{"families: [ipv6]", func(c *Config) { c.Settings.Families = []eni.Family{eni.IPv6} }},
	{"families: []", func(*Config) {}},
	{"gatedNamespaces: [db, cache]", func(c *Config) { c.Settings.Gated = []string{"db", "cache"} }},
	{"gatedNamespaces: []", func(*Config) {}},
	{"cloud: {endpoint: http://127.0.0.1:9810}", func(c *Config) { c.Cloud.Endpoint = "http://127.0.0.1:9810" }},
	{"cloud: {endpoint: 'http://[::1]:9810/'}", func(c *Config) { c.Cloud.Endpoint = "http://[::1]:9810/" }},
	{"cloud: {endpoint: 'http://localhost:80'}", func(c *Config) { c.Cloud.Endpoint = "http://localhost:80" }},
	{"cloud: {provider: sim, callsPerSecond: 7, callsBurst: 8, concurrent: 9, timeout: 3s}", func(c *Config) {
		c.Cloud.CallsPerSec, c.Cloud.CallsBurst, c.Cloud.Concurrent, c.Cloud.Timeout = 7, 8, 9, 3*time.Second
	}},
	{"cloud: {provider: aws, endpoint: , region: eu-west-1, instance: i-1, cluster: prod.eu_1, prefixes: true}", func(c *Config) {
		c.Cloud.Provider, c.Cloud.Endpoint, c.Cloud.Region, c.Cloud.Instance, c.Cloud.Describe = AWS, "", "eu-west-1", "i-1", SpareDescribe
		c.Cloud.Cluster, c.Cloud.Prefixes = "prod.eu_1", true
	}},
	{"cloud: {provider: aws, endpoint: 'https://ec2.example.org', metadata: 'http://[fd00:ec2::254]'}", func(c *Config) {
		c.Cloud.Describe, c.Cloud.Provider, c.Cloud.Endpoint, c.Cloud.Metadata = SpareDescribe, AWS, "https://ec2.example.org", "http://[fd00:ec2::254]"
	}},
	{"cloud: {provider: baidu, endpoint: 'http://127.0.0.1:80/', metadata: 'http://169.254.169.254', describe: 90s}", func(c *Config) {
		c.Cloud.Describe, c.Cloud.Provider, c.Cloud.Endpoint, c.Cloud.Metadata = 90*time.Second, Baidu, "http://127.0.0.1:80/", "http://169.254.169.254"
	}},
	{"cloud: {subnets: [subnet-1, subnet-2], securityGroups: [sg-1], subnetTags: {pods: yes, Name: 7}, tags: {team: net work}}", func(c *Config) {
		c.Cloud.Subnets, c.Cloud.SecurityGroups = []string{"subnet-1", "subnet-2"}, []string{"sg-1"}
		c.Cloud.SubnetTags, c.Cloud.Tags = map[string]string{"pods": "yes", "Name": "7"}, map[string]string{"team": "net work"}
	}},
	{"cloud: {provider: baidu, endpoint: , kind: bbc, vpc: vpc-1, zone: cn-bj-a, maxENIs: 3, maxIPsPerENI: 41}", func(c *Config) {
		c.Cloud.Describe, c.Cloud.Provider, c.Cloud.Endpoint = SpareDescribe, Baidu, ""
		c.Cloud.Kind, c.Cloud.VPC, c.Cloud.Zone, c.Cloud.MaxENIs, c.Cloud.MaxIPsPerENI = "bbc", "vpc-1", "cn-bj-a", 3, 41
	}},
	{"cloud: {kind: '', vpc: , zone: '', maxENIs: 0, maxIPsPerENI: 0}", func(*Config) {}},
	{"cloud: {subnets: [], securityGroups: [], subnetTags: {}, tags: [], region: '', metadata: '', prefixes: false}", func(*Config) {}},
	{"pool: {strategy: reactive}", func(c *Config) { c.Pool.Scale.Strategy = scale.Reactive }},
	{"pool: {batch: 4}", func(c *Config) { c.Pool.Scale.Batch = 4 }},
	{"pool: {minFree: 0.25}", func(c *Config) { c.Pool.Scale.MinFree, c.Pool.Scale.MaxFree = 25, 125 }},
	{"pool: {minFree: 0, maxFree: 1.50}", func(c *Config) { c.Pool.Scale.MinFree = 0 }},
	{"pool: {minFree: '29%', maxFree: 129%}", func(c *Config) { c.Pool.Scale.MinFree, c.Pool.Scale.MaxFree = 29, 129 }},
	{"pool: {maxFree: 3.0}", func(c *Config) { c.Pool.Scale.MaxFree = 300 }},
	{"pool: {countPrimaries: true, primaryForm: document}", func(c *Config) {
		c.Pool.Scale.CountPrimaries, c.Pool.Scale.Form = true, scale.Document
	}},
	{"pool: {minPool: 32}", func(c *Config) { c.Pool.Scale.MinPool = 32 }},
	{"pool: {stable: 5s, delay: 0s, burstWindow: 1s, releaseInterval: 1s}", func(c *Config) {
		c.Pool.Scale.Stable, c.Pool.Scale.Delay, c.Pool.Scale.BurstWindow, c.Pool.Scale.ReleaseInterval = 5*time.Second, 0, time.Second, time.Second
	}},
	{"pool: {stable: 6s}", func(c *Config) { c.Pool.Scale.Stable = 6 * time.Second }},
	{"pool: {burst: 150%, shrink: 1.5}", func(c *Config) { c.Pool.Scale.BurstPercent, c.Pool.Scale.ShrinkPercent = 150, 150 }},
	{"pool: {exhaustedSpare: 0, exhaustedDelay: 1m}", func(c *Config) { c.Pool.Scale.ExhaustedSpare, c.Pool.Scale.ExhaustedDelay = 0, time.Minute }},
	{"pool: {maxAllocateENI: 8, maxIPsPerENI: 30, preAllocateENI: 2}", func(c *Config) {
		c.Pool.MaxAllocateENI, c.Pool.MaxIPsPerENI, c.Pool.PreAllocateENI = 8, 30, 2
	}},
	{"pool: {topologyPlaces: 4}", func(c *Config) { c.Pool.TopologyPlaces = 4 }},
	{"pool: {firstENI: 1, maxAllocate: 16}", func(c *Config) { c.Pool.FirstENI, c.Pool.MaxAllocate = 1, 16 }},
	{"pool: {burstableMultiple: 2, partial: true, returnENIs: true}", func(c *Config) {
		c.Pool.Multiple, c.Pool.Partial, c.Pool.ReturnENIs = 2, true, true
	}},
	{"pool: {burstableMehrfachENI: 3}", func(c *Config) { c.Pool.Mode, c.Pool.Multiple = pool.Burstable, 3 }},
	{"pool: {burstableMehrfachENI: 0}", func(c *Config) { c.Pool.Mode, c.Pool.Multiple = pool.BestEffort, 0 }},
	{"pool: {mode: burstable, maxAllocate: 10}", func(c *Config) { c.Pool.Mode, c.ModeSet, c.Pool.MaxAllocate = pool.Burstable, true, 10 }},
	{"pool: {minAllocate: 10, preAllocate: 2}", func(c *Config) { c.Pool.MinAllocate, c.Pool.PreAllocate = 10, 2 }},
	{"maxPods: 250", func(c *Config) { c.MaxPods.Fixed = 250 }},
	{"kubeletConfig: /etc/kubelet.yaml", func(c *Config) { c.MaxPods.KubeletConfig = "/etc/kubelet.yaml" }},
	{"kubeletConfig: ''", func(*Config) {}},
	{"kubernetes: {enabled: true, kubeconfig: /etc/kubernetes/agent.conf, taint: false, faultGrace: 45s, faultQuiet: 2m}", func(c *Config) {
		c.Kubernetes.Enabled, c.Kubernetes.Kubeconfig = On, "/etc/kubernetes/agent.conf"
		c.Kubernetes.Health = health.Config{Grace: 45 * time.Second, Quiet: 2 * time.Minute}
	}},
	{"kubernetes: {enabled: auto, kubeconfig: '', taint: true}", func(*Config) {}},
	{"kubernetes: {dra: true, kubeletFolder: /data/kubelet}", func(c *Config) { c.Kubernetes.DRA, c.Kubernetes.KubeletFolder = true, "/data/kubelet" }},
	{"kubernetes: {enabled: 'false'}", func(c *Config) { c.Kubernetes.Enabled = Off }},
	{"{resync: 1h, settle: 0s, orphanAge: 0s, leakAge: 30s}", func(c *Config) {
		c.Resync, c.Settle, c.OrphanAge, c.LeakAge = time.Hour, 0, 0, 30*time.Second
	}},
	{"listen: ''", func(c *Config) { c.Listen = "" }},
	{"listen: 0.0.0.0:80", func(c *Config) { c.Listen = "0.0.0.0:80" }},
	{"listen: '[::1]:0'", func(c *Config) { c.Listen = "[::1]:0" }},
	{"{profile: true, logLevel: debug, logFormat: json}", func(c *Config) {
		c.Profile, c.LogLevel, c.LogFormat = true, slog.LevelDebug, "json"
	}},
	{"{logLevel: error, logFormat: text, profile: false}", func(c *Config) { c.LogLevel = slog.LevelError }},
	{"{node: , pool: , listen: ~, resync: null}", func(*Config) {}},
}

func TestEachKeySetsWhatItSays(t *testing.T) {
	for _, tt := range eachKey {
		got, err := Parse(with(t, tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		want := defaults()
		tt.want(&want)
		if diff := cmp.Diff(want, got, compare); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}

// with returns least with the keys of text in place of, or beside, its own.
func with(t *testing.T, text string) []byte {
	t.Helper()
	var file, more map[string]any
	if err := yaml.Unmarshal([]byte(least), &file); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(text), &more); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for name, v := range more {
		have, ok1 := file[name].(map[string]any)
		section, ok2 := v.(map[string]any)
		if !ok1 || !ok2 {
			file[name] = v
			continue
		}
		for sub, v := range section {
			have[sub] = v
		}
	}
	out, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A node that was set up with maxAboveWatermark stays what it is until somebody
// says otherwise.
func TestTheModeIsTheFilesOrTheNodes(t *testing.T) {
	for _, tt := range []struct {
		text string
		mode pool.Mode
		set  bool
		err  string
	}{
		{"{}", pool.Batch, false, ""},
		{"{maxAboveWatermark: 2}", pool.BestEffort, false, ""},
		{"{maxAboveWatermark: 0}", pool.Batch, false, ""},
		{"{burstableMehrfachENI: 0}", pool.BestEffort, false, ""}, // as CCE has it: not burstable
		{"{burstableMultiple: 0}", pool.BestEffort, false, ""},
		{"{burstableMehrfachENI: 1}", pool.Burstable, false, ""},
		{"{burstableMehrfachENI: 0, maxAboveWatermark: 24}", pool.BestEffort, false, ""},
		{"{burstableMehrfachENI: 1, maxAboveWatermark: 24}", pool.BestEffort, false, ""}, // a node from before stays what it is
		{"{burstableMultiple: 2}", pool.Batch, false, ""},                                // a key of another mode
		{"{mode: batch, burstableMehrfachENI: 1}", pool.Batch, true, ""},
		{"{mode: batch, burstableMehrfachENI: 0}", pool.Batch, true, ""},
		{"{mode: batch}", pool.Batch, true, ""},
		{"{mode: burstable}", pool.Burstable, true, ""},
		{"{mode: besteffort}", pool.BestEffort, true, ""},
		{"{mode: besteffort, maxAboveWatermark: 24}", pool.BestEffort, true, ""},
		{"{mode: batch, maxAboveWatermark: 0}", pool.Batch, true, ""},
		{"{mode: batch, maxAboveWatermark: 2}", 0, false,
			`pool.mode: "batch": must be besteffort while pool.maxAboveWatermark is 2: to change the mode remove pool.maxAboveWatermark`},
		{"{mode: burstable, maxAboveWatermark: 24}", 0, false,
			`pool.mode: "burstable": must be besteffort while pool.maxAboveWatermark is 24: to change the mode remove pool.maxAboveWatermark`},
	} {
		c, err := Parse([]byte(least + "pool: " + tt.text))
		if tt.err != "" {
			if err == nil || withoutLines(err) != tt.err {
				t.Errorf("%s: %v\nwant %s", tt.text, err, tt.err)
			}
			continue
		}
		if err != nil || c.Pool.Mode != tt.mode || c.ModeSet != tt.set {
			t.Errorf("%s: mode %d, set %t, %v", tt.text, c.Pool.Mode, c.ModeSet, err)
		}
	}
}
