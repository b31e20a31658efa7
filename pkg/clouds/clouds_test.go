package clouds

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/config/agentconf"
)

// by tells a cloud by the engine over a driver that believes what these pages say.
func by(pages string) func(cloud.Cloud) bool {
	return func(c cloud.Cloud) bool {
		n, ok := c.(*engine.Node)
		return ok && slices.ContainsFunc(n.Beliefs(), func(b cloud.Belief) bool { return strings.Contains(b.Source, pages) })
	}
}

func TestTheFileNamesTheCloud(t *testing.T) {
	conf := agentconf.Default()
	for provider, is := range map[string]func(cloud.Cloud) bool{
		agentconf.Sim: func(c cloud.Cloud) bool { _, ok := c.(sweeper); return !ok },
		agentconf.AWS: by(".aws.amazon.com/"),
		agentconf.BCE: by("baidu"),
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
		k := Keeping(conf, b, slog.New(slog.DiscardHandler)).(*kept)
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
	c, err := Open(agentconf.Config{Cloud: agentconf.Cloud{Provider: agentconf.Sim, Endpoint: "unix:///run/enipool/vpc.sock"}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got, wrapped := Keeping(agentconf.Default(), c, slog.New(slog.DiscardHandler)).(*kept); wrapped {
		t.Errorf("it became a %T", got)
	}
}

func TestBaidusSecurityGroupsAreOfOneKind(t *testing.T) {
	conf := agentconf.Default()
	conf.Cloud.Provider, conf.Cloud.Endpoint, conf.Cloud.SecurityGroups = agentconf.BCE, "", []string{"g-1", "esg-1"}
	if c, err := Open(conf, slog.New(slog.DiscardHandler)); err == nil || c != nil || !strings.Contains(err.Error(), "cloud.securityGroups") {
		t.Errorf("with groups of both kinds: %v, %v", c, err)
	}
}

// Where there is no metadata service, what it would have said is in the file.
func TestBaiduWorksByKeysAlone(t *testing.T) {
	t.Setenv("BCE_ACCESS_KEY_ID", "a-key")
	t.Setenv("BCE_SECRET_ACCESS_KEY", "its-secret")
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/vpcPort/i-1" {
			_, _ = w.Write([]byte(`{"eniId": "eni-1"}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer api.Close()
	conf, err := agentconf.Parse([]byte("vpcCIDRs: [10.0.0.0/16]\ncloud: {provider: bce, endpoint: '" + api.URL + "', metadata: 'http://127.0.0.1:1', " +
		"instance: i-1, kind: bbc, vpc: vpc-1, zone: zoneA, maxIPsPerENI: 12}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(conf, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Limits(t.Context()); err != nil || got.ENIs != 1 || got.V4 != 12 {
		t.Errorf("Limits = %+v, %v", got, err)
	}
	for _, key := range []string{"instance", "kind", "vpc", "zone"} {
		without, err := conf.With(map[string]string{"cloud." + key: ""})
		if err != nil {
			t.Fatal(err)
		}
		if c, err = Open(without, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Limits(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "or name cloud."+key) {
			t.Errorf("without %s: %v", key, err)
		}
	}
}
