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
}

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
		k.beside = func(do func(context.Context)) { do(t.Context()) }
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
