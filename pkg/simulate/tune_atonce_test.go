package simulate

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// playAtOnce plays settings of 24 pods that came at once, by the equation; what takes batches of 16 or more takes twice as long.
func playAtOnce(p pool.Config) Result {
	owned, wait := p.Sizing(eni.Limits{ENIs: 8, V4: 30}, []eni.Family{eni.IPv4}).Settled(24, 0, 200), time.Minute
	if p.Mode == pool.Batch && p.Scale.Batch >= 16 {
		wait *= 2
	}
	r := result(0, 4, wait)
	r.Waits.Failed, r.Served, r.Series = 24, &Served{All: true}, []Bin{{Idle: 99}, {Idle: owned - 24}}
	return r
}

func TestPodsThatComeAtOnceMayWaitAsLongAsTheCloudLets(t *testing.T) {
	tune := func(w Weighing) Advice {
		w.AtOnce = true
		a, err := Tune(agentconf.Default(), w, made(playAtOnce))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	// Four are free by single addresses and by batches of four, which call less often when more pods come.
	a := tune(Weighing{Later: 10, Ready: 3})
	if p := a.Best.Config.Pool; !a.Met || p.Mode != pool.Batch || p.Scale.Batch != 4 || a.Kept == a.Tried {
		t.Errorf("%s of %d", a.Best.Name, a.Kept)
	}
	for _, c := range []string{a.Best.Name, a.RunnerUp.Name} {
		if !strings.Contains(c, "delay=2m") {
			t.Errorf("%s: the load tells nothing of delays", c)
		}
	}
	text := strings.Join(a.Reasons, "\n")
	for _, want := range []string{"allowed: 1m6s, 10% more than by the fastest setting tried; with at least 3 idle addresses at the end", "4.0 idle addresses at the end", "too few: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if a := tune(Weighing{MaxWait: 2 * time.Minute, Ready: 0}); !a.Met || a.Best.Result.Series[1].Idle != 2 {
		t.Errorf("with two minutes and nothing to keep: %+v", a.Best)
	}
	if a := tune(Weighing{MaxWait: 59 * time.Second}); a.Met || a.Kept != 0 {
		t.Errorf("with less than a minute: %+v", a)
	}
}

// Whoever does not get an address until the end has not been served.
func TestASettingThatServesNotAllIsNotTaken(t *testing.T) {
	a, err := Tune(agentconf.Default(), Weighing{AtOnce: true, Later: 10}, made(func(p pool.Config) Result {
		r := playAtOnce(p)
		r.Served.All = p.Mode == pool.Burstable
		return r
	}))
	if err != nil || !a.Met || a.Best.Config.Pool.Mode != pool.Burstable {
		t.Errorf("%+v, %v", a.Best, err)
	}
}

// What pods of topologies take of a node is kept once, whether the agent's file says so or the fleet.
func TestPlacesOfTopologiesAreKeptOnce(t *testing.T) {
	w, f := ec2World(eni.Limits{ENIs: 4, V4: 14}), Fleet{Nodes: 3, Pods: 30, Cold: true, Share: 80, Topologies: Hosted{Pods: 6, Places: 14}}
	s := Setting{Name: "s", Config: agentconf.Default()}
	want, err := Operate(t.Context(), w, f, s, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.Config.Pool.TopologyPlaces = 14
	got, err := Operate(t.Context(), w, f, s, time.Hour)
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%+v, want %+v, %v", got, want, err)
	}
}
