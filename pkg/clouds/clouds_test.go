package clouds

import (
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
	"github.com/enipool/enipool/pkg/eni"
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
		agentconf.Sim:   func(c cloud.Cloud) bool { n, ok := c.(*engine.Node); return ok && n.Beliefs() == nil },
		agentconf.AWS:   by(".aws.amazon.com/"),
		agentconf.Baidu: by("baidu"),
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

// What a subnet has left of IPv4 counts for pods unless they have IPv6 alone.
func TestTheEngineKnowsWhichFamiliesPodsHave(t *testing.T) {
	for _, tt := range []struct {
		families     []eni.Family
		ipv6, noIPv4 bool
	}{{nil, false, false}, {[]eni.Family{eni.IPv4}, false, false}, {[]eni.Family{eni.IPv4, eni.IPv6}, true, false}, {[]eni.Family{eni.IPv6}, true, true}} {
		conf := agentconf.Default()
		conf.Settings.Families = tt.families
		if o := nodeOptions(conf, nil); o.IPv6 != tt.ipv6 || o.NoIPv4 != tt.noIPv4 {
			t.Errorf("%v: IPv6 %t, no IPv4 %t", tt.families, o.IPv6, o.NoIPv4)
		}
	}
}

// A describe that lags more than usual is a key of the file; the cloud knows what is usual.
func TestALongerSettleIsTheEngines(t *testing.T) {
	conf := agentconf.Default()
	if got := nodeOptions(conf, nil).Times.Settle; got != 0 {
		t.Errorf("by default the driver's time is overruled by %s", got)
	}
	conf.Settle = 45 * time.Second
	if got := nodeOptions(conf, nil).Times.Settle; got != conf.Settle {
		t.Errorf("settle: 45s is %s for the engine", got)
	}
	conf.Settle = time.Second // for the agent alone: it must not take the time that a cloud needs
	if got := nodeOptions(conf, nil).Times.Settle; got != 0 {
		t.Errorf("settle: 1s is %s for the engine", got)
	}
}

func TestBaidusSecurityGroupsAreOfOneKind(t *testing.T) {
	conf := agentconf.Default()
	conf.Cloud.Provider, conf.Cloud.Endpoint, conf.Cloud.SecurityGroups = agentconf.Baidu, "", []string{"g-1", "esg-1"}
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
	conf, err := agentconf.Parse([]byte("vpcCIDRs: [10.0.0.0/16]\ncloud: {provider: baidu, endpoint: '" + api.URL + "', metadata: 'http://127.0.0.1:1', " +
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
		if _, err := c.Limits(t.Context()); err == nil || !strings.Contains(err.Error(), "cloud."+key) || !strings.HasSuffix(err.Error(), " in agent.yaml") {
			t.Errorf("without %s: %v", key, err)
		}
	}
}
