package simulate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/google/go-cmp/cmp"
)

// made plays settings by a formula in place of a load.
func made(of func(pool.Config) Result) func([]Setting) ([]Result, error) {
	return func(list []Setting) ([]Result, error) {
		var results []Result
		for _, s := range list {
			r := of(s.Config.Pool)
			r.Name = s.Name
			results = append(results, r)
		}
		return results, nil
	}
}

func result(idle float64, changes int, wait time.Duration) Result {
	return Result{Waits: Waits{P99: Seconds(wait), Max: Seconds(2 * wait)}, Idle: Idle{Mean: idle, AddressHours: 100 * idle}, Calls: Calls{Assign: changes}}
}

func mustTune(t *testing.T, maxWait time.Duration, of func(pool.Config) Result) Advice {
	t.Helper()
	a, err := Tune(agentconf.Default(), Weighing{MaxWait: maxWait, Change: time.Hour}, made(of))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// more free addresses are less waiting and more idle ones.
func simple(p pool.Config) Result {
	free := 100
	if p.Mode == pool.Batch {
		free = p.Scale.Batch * p.Scale.MinFree / 100
	}
	return result(float64(free), 1000/free, time.Duration(20-free)*time.Second)
}

func TestTheFewestIdleAddressesWithinTheLimitAreRecommended(t *testing.T) {
	a := mustTune(t, 10*time.Second, simple)
	if p := a.Best.Config.Pool; !a.Met || p.Mode != pool.Batch || p.Scale.Batch*p.Scale.MinFree != 1600 {
		t.Errorf("%+v", a.Best)
	}
	if a.Base.Config.Pool != agentconf.Default().Pool || a.Tried < 30 || a.Kept == 0 || a.Kept == a.Tried {
		t.Errorf("base %s, %d tried, %d kept", a.Base.Name, a.Tried, a.Kept)
	}
	if sameSize(a.RunnerUp.Config.Pool, a.Best.Config.Pool) {
		t.Errorf("%s and %s are the same size", a.Best.Name, a.RunnerUp.Name)
	}
	if text := strings.Join(a.Reasons, "\n"); !strings.Contains(text, a.Base.Name) || !strings.Contains(text, "too few: ") {
		t.Error(text)
	}
}

// An address-hour and an hour of what a change is worth weigh the same, and people see what the ends are.
func TestIdleAddressesAndCallsAreWeighed(t *testing.T) {
	of := func(p pool.Config) Result {
		switch {
		case p.Mode == pool.BestEffort:
			return result(10, 500, 0) // 1000 address-hours
		case p.Mode == pool.Batch && p.Scale.Batch == 4:
			return result(13, 50, 0)
		}
		return result(30, 1, 0)
	}
	for worth, want := range map[time.Duration]func(pool.Config) bool{
		0:                func(p pool.Config) bool { return p.Mode == pool.BestEffort },
		time.Hour:        func(p pool.Config) bool { return p.Mode == pool.Batch && p.Scale.Batch == 4 },
		48 * time.Hour:   func(p pool.Config) bool { return p.Mode != pool.BestEffort && p.Scale.Batch != 4 },
		20 * time.Minute: func(p pool.Config) bool { return p.Mode == pool.BestEffort },
	} {
		a, err := Tune(agentconf.Default(), Weighing{MaxWait: time.Second, Change: worth}, made(of))
		if err != nil || !want(a.Best.Config.Pool) {
			t.Errorf("a change is worth %s: best is %s: %v, %v", worth, a.Best.Name, a.Reasons, err)
		}
		text := strings.Join(a.Reasons, "\n")
		if worth == time.Hour && (!strings.Contains(text, "the fewest idle addresses: besteffort") || !strings.Contains(text, "the fewest changes: ")) {
			t.Error(text)
		}
	}
}

func TestDelaysAreTriedForTheBest(t *testing.T) {
	a := mustTune(t, time.Second, func(p pool.Config) Result {
		r := result(50, 100, 0)
		if p.Mode == pool.Burstable && p.ReturnENIs && p.Multiple == 1 {
			r = result(20-p.Scale.Delay.Minutes(), 100, 0)
		}
		return r
	})
	if p := a.Best.Config.Pool; p.Mode != pool.Burstable || p.Scale.Delay != 15*time.Minute {
		t.Errorf("best is %s", a.Best.Name)
	}
}

func TestWhereNothingKeepsTheLimitTheNearestIsNamed(t *testing.T) {
	a := mustTune(t, time.Second, func(p pool.Config) Result {
		r := result(5, 5, 10*time.Second)
		if p.Mode == pool.Batch && p.Scale.Batch == 32 {
			r.Waits.P99 = Seconds(9 * time.Second)
		} else {
			r.Waits.Failed = 3
		}
		return r
	})
	if a.Met || a.Kept != 0 || a.Best.Config.Pool.Scale.Batch != 32 || !strings.Contains(strings.Join(a.Reasons, "\n"), "none of the") {
		t.Errorf("%+v", a)
	}
}

func TestASearchEndsWithTheErrorOfItsPlayer(t *testing.T) {
	broken := errors.New("broken")
	_, err := Tune(agentconf.Default(), Weighing{}, func([]Setting) ([]Result, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

// What is tried is valid, differs, and its name says which it is.
func TestWhatIsTriedIsValidAndNamed(t *testing.T) {
	list := sizes(agentconf.Default())
	var of []Candidate
	for _, v := range list[:3] {
		of = append(of, Candidate{Setting: Setting{Config: v.config()}})
	}
	list = append(list, delays(agentconf.Default(), of)...)
	var names []string
	for _, v := range list {
		if err := v.pool.Validate(); err != nil {
			t.Errorf("%s: %v", v.name(), err)
		}
		names = append(names, v.name())
	}
	if names[0] != "batch:B=16,mf=50%,delay=2m" || !slices.Contains(names, "besteffort:preAllocate=8,minAllocate=8,maxAboveWatermark=0,delay=2m") ||
		!slices.Contains(names, "burstable:multiple=2,returnENIs=true,delay=2m") || !slices.Contains(names, "batch:B=16,mf=50%,delay=30s") {
		t.Errorf("%v", names)
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(names))); len(sorted) != len(names) {
		t.Errorf("names are not unique: %s", cmp.Diff(names, sorted))
	}
}

// A base that differs from what is tried by its smallest pool alone is another setting: without it
// the search may find that the smallest pool costs more than it saves.
func TestASmallestPoolOfTheBaseHidesNoSetting(t *testing.T) {
	base := agentconf.Default()
	base.Pool.Scale.MinPool, base.Pool.Scale.MaxFree = 40, 300
	list := sizes(base)
	if want := "batch:B=16,mf=50%,Mf=300%,minPool=40,delay=2m"; list[0].name() != want {
		t.Errorf("the base is %s, want %s", list[0].name(), want)
	}
	without := func(v variant) bool { return v.name() == "batch:B=16,mf=50%,delay=2m" && v.pool.Scale.MinPool == 0 }
	if !slices.ContainsFunc(list[1:], without) {
		t.Error("the same setting without its smallest pool is not tried")
	}
}
