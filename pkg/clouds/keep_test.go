package clouds

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
)

// broom counts sweeps and upkeeps.
type broom struct {
	cloud.Cloud
	sweeps, keeps int
	err           error
	listed        int
	unfinished    bool
}

func (b *broom) Recall(n cloud.Notes) { b.listed = n.Listed }

func (b *broom) Swept() (int, bool) { return b.listed, b.unfinished }

func (b *broom) Interfaces(context.Context) ([]cloud.Interface, error) {
	return []cloud.Interface{{ID: "eni-1"}}, b.err
}

func (b *broom) Quarantined() []cloud.Quarantined { return nil }

func (b *broom) LimitsNow() eni.Limits { return eni.Limits{} }

func (b *broom) Sweep(context.Context, time.Duration) ([]string, error) {
	b.sweeps++
	return []string{"eni-9"}, errors.New("some error")
}

func (b *broom) Upkeep(context.Context) ([]string, error) {
	b.keeps++
	return []string{"eni-1"}, errors.New("some error")
}

func TestANodeSweepsItsClusterAndKeepsItsENIsNowAndThen(t *testing.T) {
	conf := agentconf.Default()
	for _, cluster := range []string{"", "c"} {
		conf.Cloud.Cluster = cluster
		b := &broom{}
		keeping, _ := Keeping(conf, b, slog.New(slog.DiscardHandler))
		k := keeping.(*kept)
		k.runBeside = func(do func(context.Context)) { do(t.Context()) }
		now := k.now()
		k.now = func() time.Time { return now }
		describe := func(sweeps, keeps int) {
			t.Helper()
			if cluster == "" {
				sweeps = 0
			}
			list, err := k.Interfaces(t.Context())
			if !errors.Is(err, b.err) || len(list) != 1 || b.sweeps != sweeps || b.keeps != keeps {
				t.Errorf("cluster %q: %v, %v after %d sweeps and %d upkeeps, want %d and %d", cluster, list, err, b.sweeps, b.keeps, sweeps, keeps)
			}
		}
		now = now.Add(-sweepEvery)
		describe(0, 1)
		describe(0, 1)
		now = now.Add(2 * keepEvery)
		describe(0, 2)
		now = now.Add(4 * sweepEvery)
		describe(1, 3)
		describe(1, 3)
		now = now.Add(sweepEvery / 3)
		describe(1, 4)
		now = now.Add(2 * sweepEvery)
		b.err = errors.New("no answer")
		describe(1, 4)
		b.err = nil
		describe(2, 5)
	}
}

func TestACloudThatCanNeitherIsLeftAsItIs(t *testing.T) {
	plain := struct{ cloud.Cloud }{&broom{}}
	got, stop := Keeping(agentconf.Default(), plain, slog.New(slog.DiscardHandler))
	stop()
	if _, wrapped := got.(*kept); wrapped {
		t.Errorf("it became a %T", got)
	}
}

// stuck is a cloud whose upkeep and sweep end with their context only.
type stuck struct {
	broom
	began, ended atomic.Int32
}

func (s *stuck) Upkeep(ctx context.Context) ([]string, error) {
	s.began.Add(1)
	<-ctx.Done()
	s.ended.Add(1)
	return nil, ctx.Err()
}

func (s *stuck) Sweep(ctx context.Context, _ time.Duration) ([]string, error) { return s.Upkeep(ctx) }

func TestASlowUpkeepOrSweepTakesNoTimeOfALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := agentconf.Default()
		conf.Cloud.Cluster = "c"
		s := &stuck{}
		k, stop := Keeping(conf, s, slog.New(slog.DiscardHandler))
		time.Sleep(2 * sweepEvery) // both are due
		ctx, cancel := context.WithTimeout(t.Context(), conf.Cloud.Timeout)
		began := time.Now()
		if list, err := k.Interfaces(ctx); err != nil || len(list) != 1 || time.Since(began) > 0 {
			t.Errorf("the look took %s: %v, %v", time.Since(began), list, err)
		}
		cancel()
		if synctest.Wait(); s.began.Load() != 2 || s.ended.Load() != 0 {
			t.Errorf("the end of the look has ended %d of %d", s.ended.Load(), s.began.Load())
		}
		time.Sleep(keepEvery / 2)
		if s.ended.Load() != 2 {
			t.Errorf("%d of 2 have ended by their own time", s.ended.Load())
		}
		time.Sleep(2 * keepEvery)
		_, err := k.Interfaces(t.Context())
		if stop(); err != nil || s.began.Load() != 3 || s.ended.Load() != 3 {
			t.Errorf("%v: after the stop %d of %d have ended", err, s.ended.Load(), s.began.Load())
		}
	})
}

// The sweeps of all nodes together leave the API to those who make ENIs, and what was found is
// deleted soon.
func TestSweepsOfALargeClusterAreSeldom(t *testing.T) {
	for _, enis := range []int{0, 10, 500, 5000, 20000, 100000} {
		after := sweepAfter(enis, false)
		requests := float64(enis) * float64(1+enis/listPage) / after.Seconds() // a second, with as many nodes as ENIs
		t.Logf("%d ENIs: each node sweeps once in %s", enis, after)
		if requests > 0.06 || after < sweepEvery {
			t.Errorf("%d ENIs: %.2f requests a second, once in %s", enis, requests, after)
		}
		if soon := sweepAfter(enis, true); soon > time.Hour {
			t.Errorf("%d ENIs: what was found is deleted after %s", enis, soon)
		}
	}
}

func TestAgentsThatRestartTogetherDoNotSweepTogether(t *testing.T) {
	conf := agentconf.Default()
	conf.Cloud.Cluster = "c"
	soon := 0
	for range 1000 {
		b := &broom{}
		keeping, _ := Keeping(conf, b, slog.New(slog.DiscardHandler))
		k := keeping.(*kept)
		k.runBeside = func(do func(context.Context)) { do(t.Context()) }
		now := k.now()
		k.now = func() time.Time { return now }
		keeping.Recall(cloud.Notes{Listed: 20000})
		now = now.Add(24 * time.Hour)
		_, err := k.Interfaces(t.Context())
		if soon += b.sweeps; err != nil {
			t.Fatal(err)
		}
	}
	if soon > 30 {
		t.Errorf("%d of 1,000 nodes have swept within a day", soon)
	}
}

func TestASweepComesByWhatTheLastOneSaw(t *testing.T) {
	conf := agentconf.Default()
	conf.Cloud.Cluster = "c"
	b := &broom{listed: 20000}
	keeping, _ := Keeping(conf, b, slog.New(slog.DiscardHandler))
	k := keeping.(*kept)
	k.runBeside = func(do func(context.Context)) { do(t.Context()) }
	now := k.now()
	k.now = func() time.Time { return now }
	for _, step := range []struct {
		later      time.Duration
		unfinished bool // what this look's sweep says, if it comes to one
		sweeps     int
	}{
		{2 * sweepEvery, true, 1}, {confirmAfter / 3, false, 1}, {2 * confirmAfter, false, 2}, {24 * time.Hour, false, 2}, {30 * 24 * time.Hour, false, 2},
		{150 * 24 * time.Hour, false, 3},
	} {
		now, b.unfinished = now.Add(step.later), step.unfinished
		if _, err := k.Interfaces(t.Context()); err != nil || b.sweeps != step.sweeps {
			t.Errorf("%s later: %d sweeps, %v, want %d", step.later, b.sweeps, err, step.sweeps)
		}
	}
}
