package agentconf

import (
	"bytes"
	"encoding/json"
	commandline "flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = commandline.Bool("update", false, "write what is made from the table of keys")

// examples are values that are none of the defaults: each key has one here.
var examples = map[string]any{
	"node": "n1", "cache": "/run/x/node.cache", "state": "/run/x/agent.json", "maxPods": 20, "kubeletConfig": "/etc/k.yaml", "fastPath": "auto",
	"resync": "30s", "settle": "20s", "orphanAge": "2m", "leakAge": "20m", "listen": "127.0.0.1:1", "profile": true, "logLevel": "warn", "logFormat": "json",
	"routing": "rule", "firewall": "nftables", "vpcCIDRs": []any{"10.1.0.0/16", "2001:db8::/56"}, "snat": false, "coolDown": "1m30s", "markMask": "0xff000000",
	"families": []any{"ipv6"}, "gatedNamespaces": []any{"db"}, "cloud.provider": "baidu", "cloud.endpoint": "https://example.org", "cloud.metadata": "http://127.0.0.1:1", "cloud.region": "bj",
	"cloud.instance": "i-1", "cloud.kind": "bbc", "cloud.vpc": "vpc-1", "cloud.zone": "zoneA", "cloud.maxENIs": 3, "cloud.maxIPsPerENI": 9, "cloud.cluster": "c.1",
	"cloud.subnets": []any{"sbn-1"}, "cloud.subnetTags": map[string]any{"pods": "1"}, "cloud.securityGroups": []any{"g-1"}, "cloud.tags": map[string]any{"team": "net"},
	"cloud.prefixes": true, "cloud.describe": "90s", "cloud.callsPerSecond": 7, "cloud.callsBurst": 8, "cloud.concurrent": 2, "cloud.timeout": "20s",
	"kubernetes.enabled": false, "kubernetes.kubeconfig": "/etc/k.conf", "kubernetes.taint": false, "kubernetes.faultGrace": "1m", "kubernetes.faultQuiet": "2m", "kubernetes.dra": true, "kubernetes.kubeletFolder": "/data/kubelet",
	"pool.strategy": "kpa", "pool.batch": 8, "pool.minFree": "25%", "pool.maxFree": 2.5, "pool.countPrimaries": true, "pool.primaryForm": "document", "pool.minPool": 3,
	"pool.stable": "30s", "pool.delay": "1h", "pool.burstWindow": "3s", "pool.burst": "300%", "pool.shrink": "150%", "pool.releaseInterval": "1m", "pool.exhaustedSpare": 2,
	"pool.exhaustedDelay": "20s", "pool.utilization": 0.5, "pool.grow": "200%", "pool.activation": 2, "pool.kpaForm": "knative", "pool.mode": "besteffort",
	"pool.firstENI": 1, "pool.maxAllocate": 30, "pool.maxAllocateENI": 3, "pool.maxIPsPerENI": 20, "pool.preAllocateENI": 1, "pool.topologyPlaces": 4, "pool.burstableMultiple": 2,
	multipleAlias: 3, "pool.partial": true, "pool.returnENIs": true, "pool.minAllocate": 5, "pool.preAllocate": 6, "pool.maxAboveWatermark": 7,
}

func TestEachKeySaysAllThatTheTableNeeds(t *testing.T) {
	c := Default()
	seen := map[string]bool{}
	for _, k := range allKeys(&c) {
		switch {
		case seen[k.Name]:
			t.Errorf("%s is there twice", k.Name)
		case k.Needs != keys.AtOnce && k.Needs != keys.AtRestart:
			t.Errorf("%s does not say whether a change needs a restart", k.Name)
		case k.Since != release1 && k.Since != unreleased:
			t.Errorf("%s: there is no release %q", k.Name, k.Since)
		case !regexp.MustCompile(`^\S.*\.$`).MatchString(k.Doc):
			t.Errorf("%s: %q is no sentence", k.Name, k.Doc)
		case len(k.Places) == 0 || k.Rule == nil || k.Want == "":
			t.Errorf("%s does not say where its value lies, or what it may be", k.Name)
		case k.Rule["maximum"] != nil && k.Unit == "" && k.Rule["maximum"] != 0:
			t.Errorf("%s has no unit", k.Name)
		case examples[k.Name] == nil:
			t.Errorf("%s has no example in this test", k.Name)
		}
		seen[k.Name] = true
	}
	if len(seen) != len(examples) {
		t.Errorf("%d keys, %d examples", len(seen), len(examples))
	}
}

// leaves calls visit with each field of the configuration that has no fields of its own.
func leaves(name string, v reflect.Value, visit func(name string, v reflect.Value)) {
	if v.Kind() != reflect.Struct {
		visit(name, v)
		return
	}
	for i := range v.NumField() {
		leaves(strings.TrimPrefix(name+"."+v.Type().Field(i).Name, "."), v.Field(i), visit)
	}
}

func TestEachPartOfTheConfigurationHasAKey(t *testing.T) {
	// These are no key's: the file names a mode; what is said of the file; what the cloud's blocks
	// are; what an earlier release left; what an operator alone has a key for.
	without := []string{"ModeSet", "Warnings", "Cloud.CrossSubnet", "Settings.V4Block", "Settings.V6Block", "Settings.PodsInMain"}
	was := Default()
	table := allKeys(&was)
	changed := was
	now := allKeys(&changed)
	leaves("", reflect.ValueOf(&changed).Elem(), func(name string, v reflect.Value) {
		changed = was
		switch v.Kind() {
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.String:
			v.SetString("another")
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Uint8, reflect.Uint32:
			v.SetUint(v.Uint() + 1)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 7, 7))
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"a": "b"}))
		default:
			t.Fatalf("%s: how is a %s changed?", name, v.Kind())
		}
		has := slices.ContainsFunc(table, func(k keys.Key) bool {
			return !k.SameAs(now[slices.IndexFunc(now, func(n keys.Key) bool { return n.Name == k.Name })])
		})
		if has == slices.Contains(without, name) {
			t.Errorf("%s: has a key: %t", name, has)
		}
	})
}

func TestAReloadKeepsWhatNeedsARestartAndTakesTheRest(t *testing.T) {
	for i, k := range allKeys(new(Config)) {
		was, next := Default(), Default()
		if faults := allKeys(&next)[i].Set(examples[k.Name]); len(faults) > 0 {
			t.Errorf("%s: the example is refused", k.Name)
		}
		got, changed := was.Reload(next)
		kept := allKeys(&got)[i].SameAs(allKeys(&was)[i])
		if restart := k.Needs == keys.AtRestart; kept != restart || restart != slices.Equal(changed, []string{k.Name}) || !restart && len(changed) > 0 {
			t.Errorf("%s: needs a restart: %t; kept: %t; told: %q", k.Name, restart, kept, changed)
		}
	}
}

// What the table takes are values that the pool's own checks take.
func TestTheTableIsNoWiderThanTheChecksOfPoolAndScale(t *testing.T) {
	for i, k := range allKeys(new(Config)) {
		for _, bound := range []any{k.Rule["minimum"], k.Rule["maximum"]} {
			n, isInt := bound.(int)
			c := Default()
			if k.Name == "pool.maxAboveWatermark" {
				c.Pool.Mode = pool.BestEffort
			}
			if isInt && len(allKeys(&c)[i].Set(n)) == 0 {
				if err := c.Pool.Validate(); err != nil {
					t.Errorf("%s: %d: %v", k.Name, n, err)
				}
			}
			if share, isShare := bound.(float64); isShare {
				c := Default()
				c.Pool.Scale.MaxFree = mostPercent
				if len(allKeys(&c)[i].Set(share)) > 0 && k.Name != "pool.minFree" { // whose least is 0, "0.0"
					t.Errorf("%s: %f is refused", k.Name, share)
				}
				if err := c.Pool.Validate(); err != nil && k.Name != "pool.maxFree" { // which needs minFree beside it
					t.Errorf("%s: %f: %v", k.Name, share, err)
				}
			}
		}
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("agent.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("agent.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bySchema returns what the schema has against a file.
func bySchema(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestTheSchemaTakesWhatTheAgentTakes(t *testing.T) {
	s := schema(t)
	files, err := filepath.Glob("../../../conf/kubernetes/overlays/*/agent.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	previous, err := filepath.Glob("testdata/" + release1 + "/*.yaml")
	if err != nil || len(previous) < 4 {
		t.Fatal(previous, err)
	}
	for _, name := range slices.Concat([]string{sample}, files, previous) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := bySchema(t, s, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, tt := range eachKey {
		if err := bySchema(t, s, with(t, tt.text)); err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
	for name, v := range examples {
		if err := bySchema(t, s, oneKey(t, name, v)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// oneKey is a file with one key.
func oneKey(t *testing.T, name string, v any) []byte {
	t.Helper()
	file := map[string]any{name: v}
	if section, last, found := strings.Cut(name, "."); found {
		file = map[string]any{section: map[string]any{last: v}}
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTheSchemaRefusesWhatTheAgentRefuses(t *testing.T) {
	s := schema(t)
	for _, text := range []string{"colour: red", "pool: {bacth: 16}", "pool: 16", "pool: {batch: 16.5}", "pool: {mode: Batch}", "snat: maybe", "coolDown: 30", "coolDown: soon",
		"pool: {minFree: 50}", "pool: {minFree: half}", "cache: node.cache", "families: [ipv5]", "families: ipv4", "vpcCIDRs: [x]", "cloud: {region: a b}", "cloud: {subnets: [a, a]}",
		"cloud: {tags: {'aws:x': y}}", "cloud: {tags: {x: [y]}}", "cloud: {subnetTags: [a]}", "listen: 127.0.0.1", "markMask: green", "pool: {maxIPsPerENI: 1}",
		"cloud: {timeout: 0}", "fastPath: true", "cloud: {metadata: x}"} {
		if bySchema(t, s, []byte(text)) == nil {
			t.Errorf("%s: the schema takes it", text)
		}
		if _, err := Parse(with(t, text)); err == nil {
			t.Errorf("%s: the agent takes it", text)
		}
	}
	for i, k := range allKeys(new(Config)) {
		lo, isInt := k.Rule["minimum"].(int)
		hi, _ := k.Rule["maximum"].(int)
		if !isInt || hi == 0 {
			continue
		}
		for n, want := range map[int]bool{lo - 1: false, lo: true, hi: true, hi + 1: false} {
			c := Default()
			if got := len(allKeys(&c)[i].Set(n)) == 0; got != want {
				t.Errorf("%s: %d: the agent takes it: %t", k.Name, n, got)
			}
			if got := bySchema(t, s, oneKey(t, k.Name, n)) == nil; got != want {
				t.Errorf("%s: %d: the schema takes it: %t", k.Name, n, got)
			}
		}
	}
}

// A schema's default is what the key is in a file without it.
func TestTheSchemaTellsTheDefaults(t *testing.T) {
	var doc struct {
		Properties map[string]struct {
			Default    any
			Properties map[string]struct{ Default any }
		}
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	told := map[string]any{}
	for name, p := range doc.Properties {
		told[name] = p.Default
		for sub, p := range p.Properties {
			told[name+"."+sub] = p.Default
		}
	}
	for i, k := range allKeys(new(Config)) {
		v, c, want := told[k.Name], Default(), Default()
		if n, isNumber := v.(float64); isNumber {
			v = int(n)
		}
		if list, isList := v.([]any); v == nil || isList && len(list) == 0 {
			continue
		}
		if faults := allKeys(&c)[i].Set(v); len(faults) > 0 || !allKeys(&c)[i].SameAs(allKeys(&want)[i]) {
			t.Errorf("%s: default %v is not what the agent has", k.Name, v)
		}
	}
	if told["pool.batch"] != 16.0 || told["pool.minFree"] != "50%" || told["snat"] != true || told["firewall"] != "auto" || told["pool.mode"] != nil {
		t.Errorf("%v", told)
	}
}

// What the previous release's file shows is what that release knew.
func TestKeysThatThePreviousReleaseDidNotKnowAreUnreleased(t *testing.T) {
	text, err := os.ReadFile("testdata/" + release1 + "/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown := shownKeys(t, text)
	for _, k := range allKeys(new(Config)) {
		if k.Name != multipleAlias && shown[k.Name] != (k.Since == release1) {
			t.Errorf("%s is known since %s", k.Name, k.Since)
		}
	}
}

// TestFilesFollowTheTable compares what is made from the table with it; `make keys` writes it.
func TestFilesFollowTheTable(t *testing.T) {
	const schemaFile = "../../../conf/agent.schema.json"
	head := regexp.MustCompile(`(?m)^# Changes to the file apply immediately(.*\n#.*)*\n`)
	text := readSample(t)
	if !head.Match(text) {
		t.Fatalf("%s does not say which changes apply immediately", sample)
	}
	next := head.ReplaceAllLiteral(text, []byte(Head()))
	if *update {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sample, next, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, Schema()) || !bytes.Equal(next, text) && !*update {
		t.Error("conf/agent.schema.json or the head of conf/agent.yaml is not what the table of keys says: `make keys` writes them")
	}
}
