package agentconf

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/google/go-cmp/cmp"
)

func TestErrorsNameTheKeyAndWhatIsAllowed(t *testing.T) {
	const (
		percent    = `whole percent like "50%", or the same as a fraction like 0.5, from `
		endpoint   = "unix:// and an absolute path, or http:// with a loopback address and a port, like http://127.0.0.1:9810"
		tags       = `tags like {key: value}: of at most 128 and 256 bytes, and none of "aws:" or "enipool/", which are taken`
		listenWant = `an IP address (or localhost) and a port like "127.0.0.1:9809", or "" for none`
	)
	for _, tt := range []struct{ text, want string }{
		{"noed: x", "noed: unknown key; did you mean node?"},
		{"batch: 16", "batch: unknown key; did you mean pool.batch?"},
		{"pool: {Batch: 16}", "pool.Batch: unknown key; did you mean pool.batch?"},
		{"pool: {bacth: [1]}", "pool.bacth: unknown key; did you mean pool.batch?"},
		{"pools: {batch: 16}", "pools: unknown key"},
		{"pool: 16", `pool: "16": must be a section: its keys on lines of their own, indented`},
		{"node: a b", `node: "a b": must be a name without blanks of at most 253 bytes`},
		{"cache: node.cache", `cache: "node.cache": must be an absolute path of a file`},
		{"cache: ''", `cache: "": must be an absolute path of a file`},
		{"state: /", `state: "/": must be an absolute path of a file`},
		{"{cache: /a/b, state: /a/./b}", `state: "/a/b": must be another file than cache`},
		{"routing: ebpf", `routing: "ebpf": must be map or rule`},
		{"firewall: iptables", `routing: "map": must be rule with firewall iptables: routing map needs nftables`},
		{"firewall: ufw", `firewall: "ufw": must be auto, nftables or iptables`},
		{"fastPath: on", `fastPath: "on": must be auto or off`},
		{"fastPath: true", `fastPath: "true": must be auto or off`},
		{"fastPath: ''", `fastPath: "": must be auto or off`},
		{"fastPath: Auto", `fastPath: "Auto": must be auto or off`},
		{"fastPath: [auto]", `fastPath: a list: must be auto or off`},
		{"fastpath: auto", "fastpath: unknown key; did you mean fastPath?"},
		{"vpcCIDRs: [10.0.0.0/16, 10.0.0.1/8]", `vpcCIDRs[1]: "10.0.0.1/8": must be a range like 10.0.0.0/16, without host bits`},
		{"vpcCIDRs: [[a]]", "vpcCIDRs[0]: a list: must be a range like 10.0.0.0/16, without host bits"},
		{"{vpcCIDRs: [], snat: false, pool: x, cloud: {endpoint: [a]}}",
			"pool: \"x\": must be a section: its keys on lines of their own, indented\ncloud.endpoint: a list: must be " + endpoint},
		{"vpcCIDRs: 10.0.0.0/16", `vpcCIDRs: "10.0.0.0/16": must be a list in brackets, each of it a range like 10.0.0.0/16, without host bits`},
		{"vpcCIDRs: []", `vpcCIDRs: "[]": must be the VPC's ranges when snat is true, so that pods keep their addresses inside it`},
		{"snat: maybe", `snat: "maybe": must be true or false`},
		{"snat: 1", `snat: "1": must be true or false`},
		{"coolDown: 2h", `coolDown: "2h": must be a duration like "30s", from "0s" to "1h"`},
		{"markMask: '0xffff'", `markMask: "0xffff": must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff`},
		{"markMask: '0x1ff'", `markMask: "0x1ff": must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff`},
		{"markMask: [0xff]", `markMask: a list: must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff`},
		{"markMask: green", `markMask: "green": must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff`},
		{"markMask: '0xff00'", `markMask: "0xff00": must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff`},
		{"families: ipv4", `families: "ipv4": must be a list in brackets, each of it ipv4 or ipv6`},
		{"vpcCIDR: [10.0.0.0/16]", "vpcCIDR: unknown key; did you mean vpcCIDRs?"},
		{"colDown: 5s", "colDown: unknown key; did you mean coolDown?"},
		{"families: [ipv4, ipv5]", `families[1]: "ipv5": must be ipv4 or ipv6`},
		{"families: [ipv4, ipv4]", `families[1]: "ipv4": must be ipv4 or ipv6`},
		{"gatedNamespaces: [db, db]", `gatedNamespaces[1]: "db": must be the name of a namespace, named once`},
		{"gatedNamespaces: [Db]", `gatedNamespaces[0]: "Db": must be the name of a namespace, named once`},
		{"cloud: {provider: gcp}", `cloud.provider: "gcp": must be sim, aws, baidu or operator`},
		{"cloud: {provider: operator}\nkubernetes: {enabled: false}", `kubernetes.enabled: "false": must be true or auto with provider operator, which the agent meets at the API server`},
		{"cloud: {provider: operator}\npool: {batch: 300}", `pool.batch: "300": must be at most 256 with provider operator`},
		{"cloud: {provider: operator}\npool: {mode: burstable, burstableMehrfachENI: 9}", `pool.burstableMehrfachENI: "9": must be at most 8 with provider operator`},
		{"cloud: {provider: operator}\npool: {mode: besteffort, maxAllocate: 5000, minAllocate: 4097}", `pool.maxAllocate: "5000": must be at most 4096 with provider operator` + "\n" +
			`pool.minAllocate: "4097": must be at most 4096 with provider operator`},
		{"cloud: {provider: aws, endpoint: unix:///run/x}", `cloud.endpoint: "unix:///run/x": must be ` + keys.WantURL},
		{"cloud: {provider: aws, endpoint: http://ec2.example.org}", `cloud.endpoint: "http://ec2.example.org": must be ` + keys.WantURL},
		{"cloud: {provider: aws, endpoint: https://key@ec2.example.org}", `cloud.endpoint: "https://key@ec2.example.org": must be ` + keys.WantURL},
		{"cloud: {endpoint: https://ec2.example.org}", `cloud.endpoint: "https://ec2.example.org": must be ` + endpoint},
		{"cloud: {metadata: http://10.0.0.1}", `cloud.metadata: "http://10.0.0.1": must be ` + keys.WantURL},
		{"cloud: {metadata: https://host/path}", `cloud.metadata: "https://host/path": must be ` + keys.WantURL},
		{"cloud: {region: eu west}", `cloud.region: "eu west": must be at most 64 letters, digits, dashes and underscores`},
		{"cloud: {instance: i/1}", `cloud.instance: "i/1": must be at most 64 letters, digits, dashes and underscores`},
		{"cloud: {provider: baidu, endpoint: , kind: vm}", `cloud.kind: "vm": must be bcc, bbc or ebc`},
		{"cloud: {provider: baidu, endpoint: , zone: a b}", `cloud.zone: "a b": must be at most 64 letters, digits, dashes and underscores`},
		{"cloud: {provider: baidu, endpoint: , maxENIs: 152}", `cloud.maxENIs: "152": must be a whole number from 0 to 151`},
		{"cloud: {provider: baidu, endpoint: , maxIPsPerENI: -1}", `cloud.maxIPsPerENI: "-1": must be a whole number from 0 to 1024`},
		{"cloud: {provider: aws, endpoint: , vpc: vpc-1, maxENIs: 2}", `cloud.vpc: "vpc-1": must be removed with provider aws: only baidu has this key` + "\n" +
			`cloud.maxENIs: "2": must be removed with provider aws: only baidu has this key`},
		{"cloud: {cluster: a b}", `cloud.cluster: "a b": must be at most 32 letters, digits, dots, dashes and underscores`},
		{"cloud: {subnets: [subnet-1, '', subnet-1]}", `cloud.subnets[1]: "": must be at most 64 letters, digits, dashes and underscores, once` + "\n" +
			`cloud.subnets[2]: "subnet-1": must be at most 64 letters, digits, dashes and underscores, once`},
		{"cloud: {securityGroups: sg-1}", `cloud.securityGroups: "sg-1": must be a list in brackets, each of it at most 64 letters, digits, dashes and underscores, once`},
		{"cloud: {tags: {enipool/node: x, good: y, 'aws:x': z}}", `cloud.tags[aws:x]: "z": must be ` + tags + "\n" + `cloud.tags[enipool/node]: "x": must be ` + tags},
		{"cloud: {provider: aws, endpoint: , tags: {node.k8s.amazonaws.com/no_manage: 'true'}}", `cloud.tags[node.k8s.amazonaws.com/no_manage]: "true": must be removed: ` +
			`enipool, too, leaves ENIs with this tag alone, and could use none that it makes`},
		{"cloud: {subnetTags: [a]}", `cloud.subnetTags: a list: must be ` + tags},
		{"cloud: {provider: baidu, endpoint: , prefixes: true}", `cloud.prefixes: "true": must be false with provider baidu, whose ENIs take no prefixes`},
		{"cloud: {endpoint: http://10.0.0.1:80}", `cloud.endpoint: "http://10.0.0.1:80": must be ` + endpoint},
		{"cloud: {endpoint: https://127.0.0.1:80}", `cloud.endpoint: "https://127.0.0.1:80": must be ` + endpoint},
		{"cloud: {endpoint: http://127.0.0.1}", `cloud.endpoint: "http://127.0.0.1": must be ` + endpoint},
		{"cloud: {endpoint: http://root:x@127.0.0.1:80}", `cloud.endpoint: "http://root:x@127.0.0.1:80": must be ` + endpoint},
		{"cloud: {endpoint: unix://run/x}", `cloud.endpoint: "unix://run/x": must be ` + endpoint},
		{"cloud: {endpoint: ''}", `cloud.endpoint: "": must be ` + endpoint},
		{"cloud: {endpoint: }", `cloud.endpoint: "": must be ` + endpoint},
		{"cloud: {callsPerSecond: 0}", `cloud.callsPerSecond: "0": must be a whole number from 1 to 1000`},
		{"cloud: {callsBurst: 2.5}", `cloud.callsBurst: "2.5": must be a whole number from 1 to 1000`},
		{"cloud: {concurrent: 65}", `cloud.concurrent: "65": must be a whole number from 1 to 64`},
		{"cloud: {timeout: 30}", `cloud.timeout: "30": must be a duration like "30s", from "1s" to "5m"`},
		{"kubernetes: yes", `kubernetes: "yes": must be a section: its keys on lines of their own, indented`},
		{"kubernetes: {enabled: maybe}", `kubernetes.enabled: "maybe": must be auto, true or false`},
		{"kubernetes: {kubeconfig: kube.conf}", `kubernetes.kubeconfig: "kube.conf": must be an absolute path of a file`},
		{"kubernetes: {dra: auto}", `kubernetes.dra: "auto": must be true or false`},
		{"kubernetes: {kubeletFolder: kubelet}", `kubernetes.kubeletFolder: "kubelet": must be an absolute path of a file`},
		{"kubernetes: {taint: 1}", `kubernetes.taint: "1": must be true or false`},
		{"kubernetes: {faultGrace: 0s}", `kubernetes.faultGrace: "0s": must be a duration like "30s", from "1s" to "1h"`},
		{"kubernetes: {faultQuiet: 60}", `kubernetes.faultQuiet: "60": must be a duration like "30s", from "1s" to "1h"`},
		{"taint: true", "taint: unknown key; did you mean kubernetes.taint?"},
		{"pool: {mode: BestEffort}", `pool.mode: "BestEffort": must be batch, burstable or besteffort`},
		{"pool: {strategy: fast}", `pool.strategy: "fast": must be equation, reactive or kpa`},
		{"pool: {batch: 0}", `pool.batch: "0": must be a whole number from 1 to 4096`},
		{"pool: {batch: 16.0}", `pool.batch: "16.0": must be a whole number from 1 to 4096`},
		{"pool: {batch: 99999999999999999999}", `pool.batch: "99999999999999999999": must be a whole number from 1 to 4096`},
		{"pool: {batch: [16]}", `pool.batch: a list: must be a whole number from 1 to 4096`},
		{"pool: {batch: {a: b}}", `pool.batch: a section: must be a whole number from 1 to 4096`},
		{"pool: {maxAllocate: 10}", `pool.batch: "16": must be at most pool.maxAllocate, 10`},
		{"pool: {mode: burstable, batch: 11, maxAllocate: 10}", `pool.batch: "11": must be at most pool.maxAllocate, 10`},
		{"pool: {minPool: 17, maxAllocate: 16}", `pool.minPool: "17": must be at most pool.maxAllocate, 16`},
		{"pool: {minAllocate: 17, maxAllocate: 16}", `pool.minAllocate: "17": must be at most pool.maxAllocate, 16`},
		{"pool: {maxAllocateENI: -1}", `pool.maxAllocateENI: "-1": must be a whole number from 0 to 151`},
		{"pool: {maxIPsPerENI: 1}", `pool.maxIPsPerENI: "1": must be 0, or a whole number from 2 to 1024`},
		{"pool: {preAllocateENI: 152}", `pool.preAllocateENI: "152": must be a whole number from 0 to 151`},
		{"pool: {topologyPlaces: 1025}", `pool.topologyPlaces: "1025": must be a whole number from 0 to 1024`},
		{"pool: {maxAllocateENI: 2, preAllocateENI: 3}", `pool.preAllocateENI: "3": must be at most pool.maxAllocateENI, 2`},
		{"pool: {minFree: 50}", `pool.minFree: "50": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: 1}", `pool.minFree: "1": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: 0.505}", `pool.minFree: "0.505": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: 50.5%}", `pool.minFree: "50.5%": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: -10%}", `pool.minFree: "-10%": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: 1001%}", `pool.minFree: "1001%": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: '%'}", `pool.minFree: "%": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: '.'}", `pool.minFree: ".": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: .inf}", `pool.minFree: "+Inf": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {minFree: .nan}", `pool.minFree: "NaN": must be ` + percent + `"0%" to "1000%"`},
		{"pool: {maxFree: 149%}", `pool.maxFree: "149%": must be at least pool.minFree and a whole batch, 150%: with less the pool would grow and shrink in turns`},
		{"pool: {minFree: 0.6, maxFree: 1.5}", `pool.maxFree: "150%": must be at least pool.minFree and a whole batch, 160%: with less the pool would grow and shrink in turns`},
		{"pool: {countPrimaries: 'yes'}", `pool.countPrimaries: "yes": must be true or false`},
		{"pool: {primaryForm: paper}", `pool.primaryForm: "paper": must be safe or document`},
		{"pool: {stable: 4s}", `pool.stable: "4s": must be a duration in whole seconds like "30s", from "5s" to "10m"`},
		{"pool: {stable: 6500ms}", `pool.stable: "6500ms": must be a duration in whole seconds like "30s", from "5s" to "10m"`},
		{"pool: {stable: 5s}", `pool.burstWindow: "6s": must be at most pool.stable, 5s`},
		{"pool: {delay: 120}", `pool.delay: "120": must be a duration in whole seconds like "30s", from "0s" to "1h"`},
		{"pool: {delay: 2 minutes}", `pool.delay: "2 minutes": must be a duration in whole seconds like "30s", from "0s" to "1h"`},
		{"pool: {burstWindow: 61s}", `pool.burstWindow: "1m1s": must be at most pool.stable, 1m`},
		{"pool: {burst: 100%}", `pool.burst: "100%": must be ` + percent + `"101%" to "10000%"`},
		{"pool: {shrink: 2}", `pool.shrink: "2": must be ` + percent + `"101%" to "10000%"`},
		{"pool: {releaseInterval: 0s}", `pool.releaseInterval: "0s": must be a duration in whole seconds like "30s", from "1s" to "1h"`},
		{"pool: {exhaustedSpare: -1}", `pool.exhaustedSpare: "-1": must be a whole number from 0 to 4096`},
		{"pool: {firstENI: 2}", `pool.firstENI: "2": must be a whole number from 0 to 1`},
		{"pool: {burstableMultiple: -1}", `pool.burstableMultiple: "-1": must be a whole number from 0 to 150`},
		{"pool: {mode: burstable, burstableMultiple: 0}",
			`pool.burstableMultiple: "0": must be at least 1 in mode burstable: without burstable ENIs the mode is batch or besteffort`},
		{"pool: {mode: burstable, burstableMehrfachENI: 0}",
			`pool.burstableMehrfachENI: "0": must be at least 1 in mode burstable: without burstable ENIs the mode is batch or besteffort`},
		{"pool: {burstableMultiple: 1, burstableMehrfachENI: 1}",
			`pool.burstableMehrfachENI: "1": must be removed: it is another name of pool.burstableMultiple, which is there too`},
		{"maxPods: ten", `maxPods: "ten": must be a whole number from 0 to 10000`},
		{"kubeletConfig: config.yaml", `kubeletConfig: "config.yaml": must be an absolute path of a file`},
		{"resync: 1", `resync: "1": must be a duration like "30s", from "100ms" to "1h"`},
		{"settle: -1s", `settle: "-1s": must be a duration like "30s", from "0s" to "10m"`},
		{"orphanAge: 25h", `orphanAge: "25h": must be a duration like "30s", from "0s" to "24h"`},
		{"leakAge: 39s", `leakAge: "39s": must be at least settle plus cloud.timeout, 40s, so that no ENI is deleted that is still being made`},
		{"listen: :9809", `listen: ":9809": must be ` + listenWant},
		{"listen: example.org:9809", `listen: "example.org:9809": must be ` + listenWant},
		{"listen: 127.0.0.1", `listen: "127.0.0.1": must be ` + listenWant},
		{"listen: 127.0.0.1:99999", `listen: "127.0.0.1:99999": must be ` + listenWant},
		{"profile: on", `profile: "on": must be true or false`},
		{"logLevel: INFO", `logLevel: "INFO": must be debug, info, warn or error`},
		{"logFormat: xml", `logFormat: "xml": must be text or json`},
	} {
		_, err := Parse(with(t, tt.text))
		if err == nil {
			t.Errorf("%s: no error", tt.text)
			continue
		}
		if diff := cmp.Diff(tt.want, withoutLines(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
		if k := (*config.KeyError)(nil); !errors.As(err, &k) {
			t.Errorf("%s: is no KeyError", tt.text)
		}
	}
}

// withoutLines is for files that are written by tests, in an order of their own.
func withoutLines(err error) string {
	return regexp.MustCompile(` \(line [0-9]+\)`).ReplaceAllString(err.Error(), "")
}

func TestErrorsTellTheLine(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{least + "pool:\n  minFree: 50%\n  bacth: 16\n", "pool.bacth: unknown key; did you mean pool.batch? (line 6)"},
		{least + "pool: {minFree: 50%,\n  bacth: 16}\n", "pool.bacth: unknown key; did you mean pool.batch? (line 5)"},
		{least + "# why\n\"colour\": red\n", "colour: unknown key (line 5)"},
		{least + "families:\n- ipv4\n- ipv5\n", `families[1]: "ipv5": must be ipv4 or ipv6 (line 4)`},
		{least + "pool: &p\n  batch: x\n", `pool.batch: "x": must be a whole number from 1 to 4096 (line 5)`},
		{"vpcCIDRs: [10.0.0.0/16]\n", `cloud.endpoint: "": must be ` + keys.WantEndpoint}, // it stands in no line
	} {
		if _, err := Parse([]byte(tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("%q: %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestAllErrorsAreReportedInOneOrder(t *testing.T) {
	const text = `
zzz: 1
aaa: 1
cloud: x
pool: {batch: x, minFree: 10, maxFree: 110%, mode: y, maxAboveWatermark: 3}
vpcCIDRs: [x, 10.0.0.0/8, y]
`
	want := `cloud: "x": must be a section: its keys on lines of their own, indented (line 4)
vpcCIDRs[0]: "x": must be a range like 10.0.0.0/16, without host bits (line 6)
vpcCIDRs[2]: "y": must be a range like 10.0.0.0/16, without host bits (line 6)
pool.batch: "x": must be a whole number from 1 to 4096 (line 5)
pool.minFree: "10": must be whole percent like "50%", or the same as a fraction like 0.5, from "0%" to "1000%" (line 5)
pool.mode: "y": must be batch, burstable or besteffort (line 5)
aaa: unknown key (line 3)
zzz: unknown key (line 2)`
	const sections = "snat: false\ncloud: x\npool: x\n"
	for range 20 {
		_, errSections := Parse([]byte(sections))
		if errSections == nil || !strings.HasPrefix(errSections.Error(), "cloud: ") {
			t.Fatal(errSections)
		}
		_, err := Parse([]byte(text))
		if err == nil {
			t.Fatal("no error")
		}
		// What hangs on a key in error is not judged.
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

func TestAFileThatIsNoConfigurationSaysWhere(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "vpcCIDRs: "},
		{"# nothing\n", "vpcCIDRs: "},
		{"- a", "read configuration: line 1: sequence was used where mapping is expected"},
		{"x", "read configuration: line 1: string was used where mapping is expected"},
		{"pool:\n\tbatch: 3\n", "read configuration: line 2: found a tab, that cannot start any token\n"},
		{"node: a\nnode: b\n", `read configuration: line 2: mapping key "node" already defined at line 1`},
		{"pool: {batch: 1, batch: 2}\n", `read configuration: line 1: mapping key "batch" already defined at line 1`},
		{least + "---\nnode: b\n", "read configuration: a second document begins in it: everything must stand in the first"},
	} {
		if _, err := Parse([]byte(tt.text)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

// A line of `pool show`, of the log or of an event has no room for the excerpt.
func TestTheBriefTextHasNoExcerptOfTheFile(t *testing.T) {
	_, err := Parse([]byte(least + "node: a\nnode: b\n"))
	if err == nil || !strings.Contains(err.Error(), "\n> ") {
		t.Fatalf("no excerpt: %v", err)
	}
	want := `agent.yaml: read configuration: line 5: mapping key "node" already defined at line 4`
	if got := keys.Brief(fmt.Errorf("agent.yaml: %w", err)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := Parse([]byte("colour: red\n")); keys.Brief(err) != err.Error() {
		t.Errorf("%q, want %q", keys.Brief(err), err)
	}
}

// FuzzParse: whatever the file has, it gives a configuration that is within its
// bounds, or errors that are the same each time.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile(sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(least))
	f.Add([]byte("pool: {batch: 1.5, minFree: [3], mode: x}\ncloud: 3\nlisten: :1\n"))
	f.Add([]byte("a: &a [1]\nb: *a\n<<: {node: 3}\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			if _, again := Parse(text); again == nil || again.Error() != err.Error() {
				t.Fatalf("first %v\nthen %v", err, again)
			}
			return
		}
		if err := c.Pool.Validate(); err != nil {
			t.Error(err)
		}
		if len(c.Settings.Families) == 0 || c.Settings.SNAT && len(c.Settings.VPC) == 0 || c.Cloud.Endpoint == "" && c.Cloud.Provider == Sim ||
			c.Cloud.CallsPerSec < 1 || c.Cache == c.State || c.Resync <= 0 || c.LeakAge < c.Settle+c.Cloud.Timeout {
			t.Errorf("accepted: %+v", c)
		}
	})
}

// Who looks for a value finds it as the error has it.
func TestANumberIsToldAsItIsTyped(t *testing.T) {
	const file = "vpcCIDRs: [10.0.0.0/16]\ncloud: {endpoint: unix:///run/x}\n"
	for text, want := range map[string]string{
		"markMask: 0xFFFF":        `markMask: "0xFFFF": `,
		"markMask: 511 # bits":    `markMask: "511": `,
		"markMask: 0x00000FFF":    `markMask: "0x00000FFF": `,
		"pool: {batch: 0x2000}":   `pool.batch: "0x2000": `,
		"pool:\n  batch: 9_000":   `pool.batch: "9_000": `,
		"pool:\n  minFree: 0.655": `pool.minFree: "0.655": `,
	} {
		if _, err := Parse([]byte(file + text + "\n")); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
