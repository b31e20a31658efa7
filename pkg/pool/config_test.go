package pool

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/google/go-cmp/cmp"
)

func TestAModeReadsBackAsItPrints(t *testing.T) {
	for m, name := range map[Mode]string{Batch: "batch", Burstable: "burstable", BestEffort: "besteffort"} {
		if m.String() != name {
			t.Errorf("mode %d prints as %q, want %q", uint8(m), m, name)
		}
		if got, err := ParseMode(name); err != nil || got != m {
			t.Errorf("ParseMode(%q) = %v, %v", name, got, err)
		}
	}
	if got := Mode(7).String(); got != "mode(7)" {
		t.Errorf("a mode without a name prints as %q", got)
	}
	for _, name := range []string{"", "Batch", "best-effort", "mode(7)"} {
		_, err := ParseMode(name)
		if want := `unknown pool mode "` + name + `": must be batch, burstable or besteffort`; err == nil || err.Error() != want {
			t.Errorf("ParseMode(%q): %v", name, err)
		}
	}
}

func TestAnActionPrintsAsItsName(t *testing.T) {
	var got []string
	for a := Restore; a <= Delete; a++ {
		got = append(got, a.String())
	}
	if diff := cmp.Diff([]string{"restore", "assign", "create", "release", "delete"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestValidateNamesEveryKeyThatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"batch as it is by default", func(*Config) {}, ""},
		{"burstable", func(c *Config) { c.Mode, c.Multiple, c.Partial, c.ReturnENIs = Burstable, 1, true, true }, ""},
		{"best effort", func(c *Config) { c.Mode, c.MaxAboveWatermark, c.PreAllocate, c.MinAllocate = BestEffort, 24, 2, 10 }, ""},
		{"settings of other modes do no harm", func(c *Config) { c.Multiple, c.Partial, c.MinAllocate, c.PreAllocate = 1, true, 10, 2 }, ""},
		{"a pool of all that it may be", func(c *Config) { c.MaxAllocate = 16 }, ""},
		{"unknown mode", func(c *Config) { c.Mode = 3 }, "mode: 3: must be batch, burstable or besteffort"},
		{"a node's own limits", func(c *Config) { c.MaxAllocateENI, c.MaxIPsPerENI, c.PreAllocateENI = 2, 2, 2 }, ""},
		{"more ENIs beforehand than ever", func(c *Config) { c.MaxAllocateENI, c.PreAllocateENI = 2, 3 }, "preAllocateENI: 3: must be at most maxAllocateENI, 2"},
		{"a primary address alone", func(c *Config) { c.MaxIPsPerENI = 1 }, "maxIPsPerENI: 1: must be at least 2, as the primary address is for no pod"},
		{"first ENI", func(c *Config) { c.FirstENI = 2 }, "firstENI: 2: must be 0 to 1"},
		{"no burstable pool", func(c *Config) { c.Mode = Burstable },
			"burstableMultiple (burstableMehrfachENI): 0: is no burstable pool: set mode to batch or besteffort, or keep at least 1 ENI free"},
		{"below none", func(c *Config) { c.Mode, c.Multiple = Burstable, -1 }, "burstableMultiple (burstableMehrfachENI): -1: must be 1 to 150"},
		{"batch above most", func(c *Config) { c.MaxAllocate, c.Scale.MinPool = 8, 10 },
			"batch: 16: must be at most maxAllocate, 8\nminPool: 10: must be at most maxAllocate, 8"},
		{"min above most", func(c *Config) { c.Mode, c.MaxAllocate, c.MinAllocate = BestEffort, 8, 10 },
			"minAllocate: 10: must be at most maxAllocate, 8"},
		{"a mode change nobody asked for", func(c *Config) { c.Mode, c.Multiple, c.MaxAboveWatermark = Burstable, 1, 24 },
			"maxAboveWatermark: 24: belongs to mode besteffort and this is mode burstable: to keep the node as it is set mode to besteffort, to change its mode remove maxAboveWatermark"},
		{"the sizing", func(c *Config) { c.Scale.MaxFree = 100 },
			"maxFree: 100: must be at least minFree + 100 = 150 percent, or the pool grows and shrinks for ever (Mf >= mf+1)"},
		{"everything at once", func(c *Config) {
			c.FirstENI, c.MaxAllocate, c.Multiple, c.MinAllocate, c.PreAllocate, c.MaxAboveWatermark = -1, -1, -1, -1, -1, -1
		}, "firstENI: -1: must be 0 to 1\nmaxAllocate: -1: must be 0 to 65536\nminAllocate: -1: must be 0 to 65536\n" +
			"preAllocate: -1: must be 0 to 65536\nmaxAboveWatermark: -1: must be 0 to 65536\n" +
			"burstableMultiple (burstableMehrfachENI): -1: must be 0 to 150"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{Scale: scale.Default()}
			tt.change(&c)
			got := ""
			if err := c.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMostIsWhatTheScarcestAllows(t *testing.T) {
	limits := eni.Limits{ENIs: 8, V4: 30, V6: 10}
	for _, tt := range []struct {
		c        Config
		families []eni.Family
		maxPods  int
		want     int
	}{
		{Config{}, v4, 0, 232},
		{Config{}, both, 0, 72},
		{Config{FirstENI: 1}, v4, 0, 203},
		{Config{MaxAllocate: 128}, v4, 0, 128},
		{Config{MaxAllocate: 128}, v4, 110, 110},
		{Config{MaxAllocate: 300}, v4, 250, 232},
		{Config{}, nil, 0, 0},
	} {
		if got := tt.c.Most(limits, tt.families, tt.maxPods); got != tt.want {
			t.Errorf("%+v %v maxPods %d: most %d, want %d", tt.c, tt.families, tt.maxPods, got, tt.want)
		}
	}
	limits.NoPrimary = true
	for first := range 2 {
		if got := (Config{FirstENI: first}).Most(limits, v4, 0); got != 203 {
			t.Errorf("with firstENI %d a primary ENI that gets none leaves %d, want 203", first, got)
		}
	}
	if got := (Config{FirstENI: 1}).Most(eni.Limits{}, v4, 0); got != 0 {
		t.Errorf("an instance whose limits are not known holds %d, want 0", got)
	}
}

func TestEachModeSizesInItsOwnUnit(t *testing.T) {
	base := scale.Default()
	base.Strategy, base.CountPrimaries, base.MinPool, base.KPA = scale.Reactive, true, 5, scale.KPAConfig{}
	limits := eni.Limits{ENIs: 8, V4: 30, V6: 40}
	derived := func(batch, minFree, least int) scale.Config {
		s := base
		s.Strategy, s.CountPrimaries = scale.Equation, false
		s.Batch, s.MinFree, s.MaxFree, s.MinPool = batch, minFree, minFree+100, least
		return s
	}
	for _, tt := range []struct {
		c    Config
		want scale.Config
	}{
		{Config{Mode: Batch}, base},
		{Config{Mode: Burstable, Multiple: 2}, derived(29, 200, 0)},
		{Config{Mode: BestEffort, PreAllocate: 8, MinAllocate: 10}, derived(1, 800, 10)},
		{Config{Mode: BestEffort}, derived(1, 100, 0)},
	} {
		tt.c.Scale = base
		if diff := cmp.Diff(tt.want, tt.c.Sizing(limits, both)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.c.Mode, diff)
		}
	}
	// Before the limits are known there is still a valid size.
	c := Config{Mode: Burstable, Multiple: 1, Scale: scale.Default()}
	if err := c.Sizing(eni.Limits{}, v4).Validate(); err != nil {
		t.Error(err)
	}
}
