package operatorconf

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/quota"
)

const (
	sample     = "../../../conf/operator.yaml"
	schemaFile = "../../../conf/operator.schema.json"
)

var update = flag.Bool("update", false, "write conf/operator.schema.json")

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTheSampleHasTheDefaults(t *testing.T) {
	got, err := Parse(readFile(t, sample))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Cloud.Endpoint, want.Budget = "unix:///run/enipool/account.sock", map[string]quota.Limit{}
	want.Cloud.SubnetTags = map[string]string{"kubernetes.io/role/cni": "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := got.Lease().Validate(got.Cloud.Timeout); err != nil {
		t.Error(err)
	}
}

func TestTheSampleShowsEveryKeyAndNoOther(t *testing.T) {
	var file map[string]any
	if err := yaml.Unmarshal(readFile(t, sample), &file); err != nil {
		t.Fatal(err)
	}
	var shown, known []string
	for name, v := range file {
		if section, is := v.(map[string]any); is && slices.Contains(sections, name) {
			for sub := range section {
				shown = append(shown, name+"."+sub)
			}
			continue
		}
		shown = append(shown, name)
	}
	for _, k := range allKeys(new(Config)) {
		known = append(known, k.Name)
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") || k.Rule == nil || len(k.Places) == 0 {
			t.Errorf("%s does not say all that the table needs", k.Name)
		}
	}
	slices.Sort(shown)
	slices.Sort(known)
	if diff := cmp.Diff(known, shown); diff != "" {
		t.Errorf("(-table +sample):\n%s", diff)
	}
}

const least = "cloud: {endpoint: 'unix:///a', subnetTags: {a: b}, "

// Each text with what it makes of the defaults, or what the error says.
var texts = []struct {
	text, wrong string
	set         func(*Config)
}{
	{text: least + "describe: 1m}", set: func(c *Config) { c.Cloud.Describe = time.Minute }},
	{text: least + "timeout: 12s}", set: func(c *Config) { c.Cloud.Timeout = 12 * time.Second }},
	{text: least + "timeout: 13s}", wrong: `cloud.timeout: "13s": must be a duration like "30s", from "1s" to "12s"`},
	{text: least + "subnets: [subnet-1]}", set: func(c *Config) { c.Cloud.Subnets = []string{"subnet-1"} }},
	{text: "cloud: {endpoint: 'unix:///a'}", wrong: "cloud.subnets: a list: must be the subnets that new ENIs may lie in"},
	{text: least + "}\nfamilies: [ipv6, ipv4]", set: func(c *Config) { c.Families = []eni.Family{eni.IPv4, eni.IPv6} }},
	{text: least + "}\nobserve: true\nshare: 50%", set: func(c *Config) { c.Observe, c.Share = true, 50 }},
	{text: least + "}\nshare: 0.5", set: func(c *Config) { c.Share = 50 }},
	{text: least + "}\nshare: 80", wrong: `share: "80": must be whole percent`},
	{text: least + "}\nbudget: {AttachNetworkInterface: {burst: 300, perSecond: 0.5}}", set: func(c *Config) {
		c.Budget = map[string]quota.Limit{"AttachNetworkInterface": {Burst: 300, PerSecond: 0.5}}
	}},
	{text: least + "}\nbudget: {AttachNetworkInterface: {burst: 300}}", wrong: "budget[AttachNetworkInterface]: a section: must be actions with their limits"},
	{text: least + "}\nbudget: {AttachNetworkInterface: {burst: 0, perSecond: 1}}", wrong: "budget[AttachNetworkInterface].burst: \"0\": must be a whole number from 1 to 100000, in actions with their limits"},
	{text: least + "}\nbudget: {AttachNetworkInterface: {burst: 7, perSecond: none}}", wrong: "budget[AttachNetworkInterface].perSecond: \"none\": must be a number above 0 and at most 100000, in actions with their limits"},
	{text: least + "}\nbudget: {AttachNetworkInterface: 5}", wrong: "budget[AttachNetworkInterface]"},
	{text: least + "}\nsettle: 1m\nfence: 1m", wrong: `fence: "1m": must be at least cloud.timeout plus settle, 1m5s`},
	{text: least + "}\nfence: 10m\nleakAge: 1h", set: func(c *Config) { c.Fence, c.LeakAge = 10*time.Minute, time.Hour }},
	{text: least + "}\ntopologies: true", set: func(c *Config) { c.Topologies = true }},
	{text: least + "}\ntopologies: true\nobserve: true", wrong: `topologies: "true": must be false as long as observe is true`},
	{text: least + "}\nnamespace: enipool\nkubeconfig: /k", set: func(c *Config) { c.Namespace, c.Kubeconfig = "enipool", "/k" }},
	{text: least + "}\nlisten: 0.0.0.0:9810\nprofile: true\nlogFormat: json", set: func(c *Config) { c.Listen, c.Profile, c.LogFormat = "0.0.0.0:9810", true, "json" }},
	{text: "cloud: {provider: aws, cluster: prod, subnetTags: {a: b}, region: eu-west-3, prefixes: true}", set: func(c *Config) {
		c.Cloud.Provider, c.Cloud.Cluster, c.Cloud.Region, c.Cloud.Prefixes, c.Cloud.Endpoint = agentconf.AWS, "prod", "eu-west-3", true, ""
	}},
	{text: "cloud: {provider: aws, cluster: change-me, subnetTags: {a: b}}", wrong: "cloud.cluster: \"change-me\": must be the name that cloud.cluster of the agents has, one that no other cluster of the account has"},
	{text: "cloud: {provider: aws}", wrong: "cloud.cluster: \"\": must be the cluster's name"},
	{text: "cloud: {provider: baidu, cluster: prod, prefixes: true}", wrong: "cloud.prefixes: \"true\": must be false with provider baidu"},
	{text: "cloud: {provider: aws, cluster: prod, endpoint: 'http://example.com'}", wrong: "cloud.endpoint: \"http://example.com\": must be https://"},
	{text: "observe: true", wrong: "cloud.endpoint: \"\": must be unix://"},
	{text: "cloud: {cluster: prod, subnetTags: {a: b}}", wrong: "that cloud.provider sim, the default, names; aws and baidu need none"},
	{text: least + "}\nconcurent: 3", wrong: "concurent: unknown key"},
	{text: least + "}\nsettel: 3s", wrong: "settel: unknown key; did you mean settle?"},
}

func TestTextsAreReadOrRefused(t *testing.T) {
	for _, tt := range texts {
		got, err := Parse([]byte(tt.text))
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s:\n%v\nwant %s", tt.text, err, tt.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		want := Default()
		want.Cloud.Endpoint, want.Cloud.SubnetTags = "unix:///a", map[string]string{"a": "b"}
		tt.set(&want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}

// What the program takes an editor takes too.
func TestTheSchemaFollowsTheTable(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have := readFile(t, schemaFile)
	if !bytes.Equal(have, Schema()) {
		t.Error("conf/operator.schema.json is not what the table of keys says: `make keys` writes it")
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(have))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("operator.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("operator.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range texts {
		if tt.wrong != "" {
			continue
		}
		var file any
		if err := yaml.Unmarshal([]byte(tt.text), &file); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
}

// A key that is in no place of the configuration would be read and forgotten.
func TestEachKeyHasAValueThatReloadSees(t *testing.T) {
	a, b := Default(), Default()
	b.Budget, b.Share = map[string]quota.Limit{"x": {Burst: 1, PerSecond: 1}}, 10
	if changed := keys.Reload(allKeys(&a), allKeys(&b)); !maps.Equal(map[string]bool{"share": true, "budget": true}, set(changed)) {
		t.Errorf("changed: %v", changed)
	}
}

func set(list []string) map[string]bool {
	m := map[string]bool{}
	for _, s := range list {
		m[s] = true
	}
	return m
}
