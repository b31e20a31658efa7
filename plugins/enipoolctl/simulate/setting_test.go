package simulate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestASettingIsTheBaseWithWhatIsTyped(t *testing.T) {
	base, err := (&playFlags{}).baseConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want func(*agentconf.Config)
	}{
		{"batch", func(*agentconf.Config) {}},
		{"reactive", func(c *agentconf.Config) { c.Pool.Scale.Strategy = scale.Reactive }},
		{"kpa", func(c *agentconf.Config) { c.Pool.Scale.Strategy = scale.KPA }},
		{"kpa:B=8,utilization=80%,grow=200%,activation=2,kpaForm=knative", func(c *agentconf.Config) {
			c.Pool.Scale.Strategy, c.Pool.Scale.Batch = scale.KPA, 8
			c.Pool.Scale.KPA = scale.KPAConfig{Form: scale.KPAKnative, Utilization: 80, GrowPercent: 200, Activation: 2}
		}},
		{"burstable", func(c *agentconf.Config) { c.Pool.Mode = pool.Burstable }},
		{"besteffort", func(c *agentconf.Config) { c.Pool.Mode = pool.BestEffort }},
		{"batch:B=8,mf=0.25", func(c *agentconf.Config) { c.Pool.Scale.Batch, c.Pool.Scale.MinFree, c.Pool.Scale.MaxFree = 8, 25, 125 }},
		{"batch:batch=8,minFree=25%", func(c *agentconf.Config) { c.Pool.Scale.Batch, c.Pool.Scale.MinFree, c.Pool.Scale.MaxFree = 8, 25, 125 }},
		{"batch:pool.batch=8", func(c *agentconf.Config) { c.Pool.Scale.Batch = 8 }},
		{"batch:mf=1.0,Mf=300%", func(c *agentconf.Config) { c.Pool.Scale.MinFree, c.Pool.Scale.MaxFree = 100, 300 }},
		{"reactive:Mf=2.0", func(c *agentconf.Config) { c.Pool.Scale.Strategy, c.Pool.Scale.MaxFree = scale.Reactive, 200 }},
		{"burstable:multiple=3,returnENIs=true", func(c *agentconf.Config) { c.Pool.Mode, c.Pool.Multiple, c.Pool.ReturnENIs = pool.Burstable, 3, true }},
		{"burstable:burstableMehrfachENI=3", func(c *agentconf.Config) { c.Pool.Mode, c.Pool.Multiple = pool.Burstable, 3 }},
		{"besteffort:preAllocate=8,maxAboveWatermark=4", func(c *agentconf.Config) {
			c.Pool.Mode, c.Pool.PreAllocate, c.Pool.MaxAboveWatermark = pool.BestEffort, 8, 4
		}},
		{"batch:delay=10m,coolDown=1m,resync=5m,cloud.callsPerSecond=1", func(c *agentconf.Config) {
			c.Pool.Scale.Delay, c.Settings.CoolDown, c.Resync, c.Cloud.CallsPerSec = 10*time.Minute, time.Minute, 5*time.Minute, 1
		}},
	} {
		got, err := comparedSettings(base, []string{tt.text})
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		want := base
		want.ModeSet = true
		tt.want(&want)
		if diff := cmp.Diff(want, got[0].Config, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}

// A node that was set up with a watermark is compared with other modes all the same.
func TestTheBasesWatermarkStaysOnlyWithBestEffort(t *testing.T) {
	base, err := agentconf.Parse([]byte("{snat: false, cloud: {endpoint: 'unix:///x'}, pool: {maxAboveWatermark: 24, strategy: reactive, batch: 4}}"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := comparedSettings(base, []string{"batch", "burstable", "besteffort", "besteffort:maxAboveWatermark=3,name=few", "reactive"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		p := s.Config.Pool
		got = append(got, fmt.Sprintf("%s: %s %s %d batch %d", s.Name, p.Mode, p.Scale.Strategy, p.MaxAboveWatermark, p.Scale.Batch))
	}
	want := []string{"batch: batch equation 0 batch 4", "burstable: burstable reactive 0 batch 4", "besteffort: besteffort reactive 24 batch 4",
		"few: besteffort reactive 3 batch 4", "reactive: batch reactive 0 batch 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsAreNamedSoThatTheyCanBeTold(t *testing.T) {
	base, err := (&playFlags{}).baseConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ texts, want []string }{
		{nil, []string{"batch"}},
		{[]string{"batch:B=8", "burstable"}, []string{"batch:B=8", "burstable"}},
		{[]string{"batch:B=8", "burstable", "batch"}, []string{"batch:B=8", "burstable", "batch"}},
		{[]string{"batch:B=8,name=a", "burstable:name=b"}, []string{"a", "b"}},
		{[]string{"batch:B=8,name=a", "batch:name=a", "batch"}, []string{"batch:B=8,name=a", "batch:name=a", "batch"}},
		{[]string{"batch:name=reactive", "batch"}, []string{"reactive", "batch"}},
	} {
		list, err := comparedSettings(base, tt.texts)
		if err != nil {
			t.Errorf("%q: %v", tt.texts, err)
			continue
		}
		var got []string
		for _, s := range list {
			got = append(got, s.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.texts, diff)
		}
	}
	for _, texts := range [][]string{{"batch", "batch"}, {"batch:B=8", "batch:B=8"}, {"burstable", "batch:name=a", "batch:name=a"}} {
		if list, err := comparedSettings(base, texts); err == nil {
			t.Errorf("%q: %v", texts, list)
		}
	}
	base.Pool.Scale.Strategy = scale.Reactive
	if list, err := comparedSettings(base, nil); err != nil || list[0].Name != "reactive" {
		t.Errorf("the base is called %v, %v", list, err)
	}
}

// What a mode does not look at can't be compared: the numbers would be the same.
func TestAKeyIsForTheModesThatLookAtIt(t *testing.T) {
	base, err := (&playFlags{}).baseConfig()
	if err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"batch": "8", "minFree": "25%", "maxFree": "500%", "minPool": "9", "countPrimaries": "true", "primaryForm": "document",
		"minAllocate": "7", "preAllocate": "7", "burstableMultiple": "3", "burstableMehrfachENI": "3", "delay": "1m", "stable": "2m",
		"burst": "300%", "shrink": "300%", "burstWindow": "9s", "releaseInterval": "9s", "exhaustedSpare": "9", "exhaustedDelay": "9s",
		"utilization": "40%", "grow": "200%", "activation": "3", "kpaForm": "knative"}
	limits := eni.Limits{ENIs: 4, V4: 11}
	for _, k := range settingKeys() {
		value, sizing := other[strings.TrimPrefix(k.Name, "pool.")]
		for _, m := range settingModes {
			mode := m.name
			_, err := comparedSettings(base, []string{mode + ":" + k.names[0] + "=" + value})
			if refused := err != nil && strings.Contains(err.Error(), "has no effect"); refused == k.worksIn(mode) {
				t.Errorf("%s in mode %s: %v", k.Name, mode, err)
			}
			if !sizing || k.Name == "pool.primaryForm" {
				continue
			}
			before, err1 := base.With(m.values)
			after, err2 := before.With(map[string]string{k.Name: value})
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			changes := before.Pool.Sizing(limits, []eni.Family{eni.IPv4}) != after.Pool.Sizing(limits, []eni.Family{eni.IPv4})
			if changes != k.worksIn(mode) {
				t.Errorf("%s changes the sizing of mode %s: %t", k.Name, mode, changes)
			}
		}
	}
}

func TestCompletionGoesFromKeyToKey(t *testing.T) {
	for typed, want := range map[string]string{
		"":                   "batch",
		"batch:":             "batch:B=\ta whole number from 1 to 4096",
		"batch:B=8,m":        "batch:B=8,minPool=\ta whole number from 0 to 65536",
		"burstable:":         "burstable:multiple=\ta whole number from 0 to 150",
		"besteffort:name=x,": "besteffort:name=x,coolDown=\ta duration like \"30s\", from \"0s\" to \"1h\"",
	} {
		if list := completeCompare(typed); !strings.Contains("\n"+strings.Join(list, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%q offers no %q, only %q", typed, want, list)
		}
	}
	for _, typed := range []string{"fast:", "burstable:", "batch:B=8,", "batch:name=x,batch=8,m"} {
		if list := strings.Join(completeCompare(typed), " "); strings.Contains(list, ":B=\t") || strings.Contains(list, ",B=\t") {
			t.Errorf("%q offers %q", typed, list)
		}
	}
}

func TestTheHelpNamesEveryKeyKindAndCall(t *testing.T) {
	words := strings.FieldsFunc(simulateLong+" "+strings.Join(usualLatencies(), " "), func(r rune) bool { return strings.ContainsRune(" \n,()=", r) })
	known := map[string]bool{}
	for _, w := range words {
		known[strings.TrimRight(w, ".;:")] = true
	}
	for _, k := range settingKeys() {
		for _, name := range k.names {
			if !known[name] {
				t.Errorf("help does not name key %s", name)
			}
		}
	}
	for _, name := range append(append(simulate.Kinds(), timedNames()...), settingModeNames()...) {
		if !known[name] {
			t.Errorf("help does not name %s", name)
		}
	}
}
