package agentconf

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// Bases of files, each with a pool of its own.
var bases = []string{
	"{}",
	"{minFree: 25%}",
	"{minFree: 25%, maxFree: 300%}",
	"{mode: batch, batch: 8}",
	"{mode: burstable, burstableMultiple: 2}",
	"{maxAboveWatermark: 24}",
	"{burstableMehrfachENI: 0}",
	"{burstableMehrfachENI: 2}",
	"{mode: besteffort, maxAboveWatermark: 24}",
}

func TestWithIsAsIfTheFileHadTheKeys(t *testing.T) {
	for _, base := range bases {
		for _, values := range []map[string]string{
			nil,
			{"pool.batch": "32"},
			{"pool.batch": "x", "pool.minPool": "-1"},
			{"pool.bacth": "32"},
			{"pool.minFree": "0.5"},
			{"pool.minFree": "50%", "pool.maxFree": "2.5"},
			{"pool.maxFree": "120%"},
			{"pool.mode": "batch"},
			{"pool.mode": "batch", "pool.maxAboveWatermark": "0"},
			{"pool.mode": "besteffort", "pool.preAllocate": "8"},
			{"pool.mode": "burstable", "pool.burstableMultiple": "0"},
			{"pool.maxAboveWatermark": "0"},
			{"pool.burstableMehrfachENI": "0"},
			{"pool.burstableMehrfachENI": "1"},
			{"pool.maxAboveWatermark": "3"},
			{"pool.burstableMultiple": "1", "pool.burstableMehrfachENI": "1"},
			{"pool.maxAllocate": "4"},
			{"coolDown": "1m", "cloud.callsPerSecond": "50", "node": "x", "logLevel": "warn", "listen": ""},
			{"settle": "10m"},
			{"cloud.provider": "aws"},
			{"cloud.provider": "aws", "cloud.endpoint": "https://ec2.example.org", "cloud.prefixes": "true"},
			{"firewall": "iptables", "routing": "rule"},
			{"state": "/run/enipool/node.cache"},
		} {
			_, alias := values[multipleAlias]
			_, usual := values["pool.burstableMultiple"]
			if strings.Contains(base, "burstableMehrfachENI") && usual || strings.Contains(base, "burstableMultiple") && alias {
				continue // in a file it would stand twice; With does not know what the file called it
			}
			t.Run(base, func(t *testing.T) {
				c, err := Parse(with(t, "pool: "+base))
				if err != nil {
					t.Fatal(err)
				}
				got, gotErr := c.With(values)
				want, wantErr := Parse(withValues(t, base, values))
				if diff := cmp.Diff(message(wantErr), message(gotErr)); diff != "" {
					t.Errorf("%v: error (-want +got):\n%s", values, diff)
				}
				if diff := cmp.Diff(want, got, compare); diff != "" {
					t.Errorf("%v (-want +got):\n%s", values, diff)
				}
			})
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return withoutLines(err)
}

// withValues returns the text of a file that has the pool and the keys.
func withValues(t *testing.T, base string, values map[string]string) []byte {
	t.Helper()
	pool, cloud := map[string]any{}, map[string]any{}
	if err := yaml.Unmarshal([]byte(base), &pool); err != nil {
		t.Fatal(err)
	}
	top := map[string]any{"pool": pool, "cloud": cloud}
	for name, text := range values {
		switch section, key, _ := strings.Cut(name, "."); section {
		case "pool":
			pool[key] = text
		case "cloud":
			cloud[key] = text
		default:
			top[name] = text
		}
	}
	text, err := yaml.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	return with(t, string(text))
}

// A node that an older release let have the strategy comes up after an upgrade, and is told.
func TestAStrategyThatNoRealNodeMayHaveIsReplacedWithAWarning(t *testing.T) {
	for text, want := range map[string]scale.Strategy{
		"{cloud: {provider: aws, endpoint: ''}, pool: {strategy: reactive}}":   scale.Equation,
		"{cloud: {provider: baidu, endpoint: ''}, pool: {strategy: reactive}}": scale.Equation,
		"{cloud: {provider: aws, endpoint: ''}, pool: {strategy: kpa}}":        scale.KPA,
		"{pool: {strategy: reactive}}":                                         scale.Reactive,
	} {
		c, err := Parse(with(t, text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		said := strings.Join(c.Warnings, "")
		replaced := want == scale.Equation
		if c.Pool.Scale.Strategy != want || strings.Contains(said, "name equation or kpa") != replaced || replaced == (said == "") {
			t.Errorf("%s: %s, %q; want %s", text, c.Pool.Scale.Strategy, said, want)
		}
	}
}

// The previous release knew Baidu's cloud as bce: its files go on working, and the new name
// is told. Nothing needs a restart where somebody then writes it.
func TestTheFormerNameOfAProviderIsTakenWithAWarning(t *testing.T) {
	read := func(provider string) Config {
		c, err := Parse(with(t, "cloud: {provider: "+provider+", endpoint: '', kind: bbc}"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	former, now := read("bce"), read("baidu")
	if said := strings.Join(former.Warnings, ""); !strings.Contains(said, `cloud.provider: "bce"`) || !strings.Contains(said, "baidu") || now.Warnings != nil {
		t.Errorf("bce: %q; baidu: %q", said, now.Warnings)
	}
	if _, changed := former.Reload(now); former.Cloud.Provider != Baidu || changed != nil {
		t.Errorf("bce is provider %q; to write baidu needs a restart for %v", former.Cloud.Provider, changed)
	}
}

// What is there to compare with may be compared with on any cloud.
func TestWithTakesWhatNoNodeMayHave(t *testing.T) {
	c, err := Parse(with(t, "cloud: {provider: aws, endpoint: ''}"))
	if err != nil {
		t.Fatal(err)
	}
	if c, err = c.With(map[string]string{"pool.strategy": "reactive"}); err != nil || c.Pool.Scale.Strategy != scale.Reactive {
		t.Errorf("%s, %v", c.Pool.Scale.Strategy, err)
	}
}

// What follows from a key follows from its newest value.
func TestWithMayBeCalledAgain(t *testing.T) {
	c, err := Parse(with(t, "pool: {maxAboveWatermark: 24}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		values map[string]string
		mode   string
		most   int
	}{
		{map[string]string{"pool.minFree": "25%"}, "besteffort", 125},
		{map[string]string{"pool.maxAboveWatermark": "0"}, "batch", 125},
		{map[string]string{"pool.maxFree": "200%"}, "batch", 200},
		{map[string]string{"pool.minFree": "50%"}, "batch", 200},
		{map[string]string{"pool.mode": "burstable"}, "burstable", 200},
		{map[string]string{"pool.batch": "8"}, "burstable", 200},
	} {
		if c, err = c.With(step.values); err != nil {
			t.Fatal(err)
		}
		if c.Pool.Mode.String() != step.mode || c.Pool.Scale.MaxFree != step.most {
			t.Errorf("after %v: mode %s, maxFree %d%%", step.values, c.Pool.Mode, c.Pool.Scale.MaxFree)
		}
	}
}

func TestWithLeavesTheOtherAlone(t *testing.T) {
	c := defaults()
	got, err := c.With(map[string]string{"pool.batch": "4", "pool.mode": "burstable", "pool.minFree": "10%", "firewall": "nftables"})
	if err != nil {
		t.Fatal(err)
	}
	got.Settings.VPC[0], got.Settings.Families[0] = netip.Prefix{}, 9
	if diff := cmp.Diff(defaults(), c, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListsAreSetInTheFile(t *testing.T) {
	_, err := defaults().With(map[string]string{"families": "ipv6", "vpcCIDRs": "10.0.0.0/8"})
	want := "vpcCIDRs: \"10.0.0.0/8\": must be set in the file: it is a list\nfamilies: \"ipv6\": must be set in the file: it is a list"
	if message(err) != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if k := (*config.KeyError)(nil); !errors.As(err, &k) {
		t.Error("is no KeyError")
	}
}

func TestKeysAreThoseOfTheTableWithoutLists(t *testing.T) {
	known := map[string]string{}
	for _, k := range Keys() {
		known[k.Name] = k.Want
	}
	if want := "a whole number from 1 to 4096"; known["pool.batch"] != want {
		t.Errorf("pool.batch: %q, want %q", known["pool.batch"], want)
	}
	var missing []string
	for _, k := range allKeys(new(Config)) {
		if _, found := known[k.Name]; !found {
			missing = append(missing, k.Name)
		}
	}
	if diff := cmp.Diff([]string{"vpcCIDRs", "families", "gatedNamespaces", "cloud.subnets", "cloud.subnetTags", "cloud.securityGroups", "cloud.tags"}, missing); diff != "" {
		t.Errorf("not settable (-want +got):\n%s", diff)
	}
	if slices.Contains(slices.Collect(maps.Values(known)), "") {
		t.Error("a key does not say what it wants")
	}
}
