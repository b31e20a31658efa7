package clouds

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/aws"
	"github.com/enipool/enipool/pkg/cloud/bce"
	"github.com/enipool/enipool/pkg/config/agentconf"
)

func TestTheFileNamesTheCloud(t *testing.T) {
	conf := agentconf.Default()
	for provider, is := range map[string]func(cloud.Cloud) bool{
		agentconf.Sim: func(c cloud.Cloud) bool { _, ok := c.(sweeper); return !ok },
		agentconf.AWS: func(c cloud.Cloud) bool { _, ok := c.(*aws.Client); return ok },
		agentconf.BCE: func(c cloud.Cloud) bool { _, ok := c.(*bce.Client); return ok },
	} {
		conf.Cloud.Provider = provider
		if provider != agentconf.Sim {
			conf.Cloud.Endpoint = ""
		} else {
			conf.Cloud.Endpoint = "unix:///run/enipool/vpc.sock"
		}
		c, err := Open(conf, slog.New(slog.DiscardHandler))
		if err != nil || !is(c) {
			t.Errorf("%s opens %T, %v", provider, c, err)
		}
	}
}

// broom counts sweeps.
type broom struct {
	cloud.Cloud
	sweeps int
	err    error
}

func (b *broom) Interfaces(context.Context) ([]cloud.Interface, error) {
	return []cloud.Interface{{ID: "eni-1"}}, b.err
}

func (b *broom) Quarantined() []cloud.Quarantined { return nil }

func (b *broom) Sweep(_ context.Context, age time.Duration) ([]string, error) {
	b.sweeps++
	return []string{"eni-9"}, errors.New("some error")
}

func TestANodeOfAClusterSweepsNowAndThen(t *testing.T) {
	conf := agentconf.Default()
	b := &broom{}
	if c := Sweeping(conf, b, slog.New(slog.DiscardHandler)); c != cloud.Cloud(b) {
		t.Error("without a cluster there is something to sweep")
	}
	conf.Cloud.Cluster = "c"
	s := Sweeping(conf, b, slog.New(slog.DiscardHandler)).(*swept)
	now := s.now()
	s.now = func() time.Time { return now }
	describe := func(want int) {
		t.Helper()
		list, err := s.Interfaces(t.Context())
		if !errors.Is(err, b.err) || len(list) != 1 || b.sweeps != want {
			t.Errorf("%v, %v after %d sweeps, want %d", list, err, b.sweeps, want)
		}
	}
	now = now.Add(-sweepEvery)
	describe(0)
	now = now.Add(4 * sweepEvery)
	describe(1)
	describe(1)
	now = now.Add(sweepEvery / 3)
	describe(1)
	now = now.Add(2 * sweepEvery)
	b.err = errors.New("no answer")
	describe(1)
	b.err = nil
	describe(2)
}
