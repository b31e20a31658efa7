package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/kubelet"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
)

// reload is what of a configuration is not the loop's, and what becomes of it when
// another one comes.
type reload struct {
	conf  agentconf.Config // that the agent was started with
	log   *slog.Logger
	level *slog.LevelVar
	limit *maxPods
	fast  *node.FastPath

	refused *refusal
}

func newReload(conf agentconf.Config, w io.Writer) *reload {
	r := &reload{conf: conf, level: &slog.LevelVar{}}
	r.level.Set(conf.LogLevel)
	o := &slog.HandlerOptions{Level: r.level}
	r.log = slog.New(slog.NewTextHandler(w, o))
	if conf.LogFormat == "json" {
		r.log = slog.New(slog.NewJSONHandler(w, o))
	}
	r.refused = newRefusal(r.log)
	r.limit = &maxPods{conf: conf.MaxPods, log: r.log}
	return r
}

// taken passes configurations on once the node has had its say.
func (r *reload) taken(ctx context.Context, files <-chan agentconf.Config) <-chan agentconf.Config {
	out := make(chan agentconf.Config)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case conf := <-files:
				err := node.Settle(&conf.Settings, conf.AnyFirewall)
				if err == nil {
					err = r.refuseOutsideVPC(ctx, conf.Settings)
				}
				if err != nil {
					r.refused.refuse(err)
					continue
				}
				r.level.Set(conf.LogLevel)
				r.limit.set(conf.MaxPods)
				r.fast.Switch(conf.FastPath != agentconf.Off)
				if keys := r.fixed(conf); len(keys) > 0 {
					r.log.Warn("some keys change only when the agent is started again", "keys", strings.Join(keys, " "))
				}
				select {
				case out <- conf:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// refuseOutsideVPC refuses ranges of the VPC that do not hold the node's ENIs. Which those are
// the node cache tells; without one the loop tells it when it knows.
func (r *reload) refuseOutsideVPC(ctx context.Context, s ipam.Settings) (wrong error) {
	_ = nodecache.Cache{Path: r.conf.Cache}.View(ctx, func(book *ipam.State) error {
		if text := ipam.OutsideVPC(s, book.ENIs); text != "" {
			wrong = errors.New(text)
		}
		return nil
	})
	return wrong
}

// fixed names the keys that are not as at the start and can't change before the
// next one.
func (r *reload) fixed(conf agentconf.Config) []string {
	was := r.conf
	var keys []string
	for _, k := range []struct {
		name string
		same bool
	}{
		{"node", conf.Node == was.Node},
		{"cache", conf.Cache == was.Cache},
		{"state", conf.State == was.State},
		{"cloud.provider", conf.Cloud.Provider == was.Cloud.Provider},
		{"cloud.endpoint", conf.Cloud.Endpoint == was.Cloud.Endpoint},
		{"cloud.metadata", conf.Cloud.Metadata == was.Cloud.Metadata},
		{"cloud.region", conf.Cloud.Region == was.Cloud.Region},
		{"cloud.instance", conf.Cloud.Instance == was.Cloud.Instance},
		{"cloud.kind", conf.Cloud.Kind == was.Cloud.Kind},
		{"cloud.vpc", conf.Cloud.VPC == was.Cloud.VPC},
		{"cloud.zone", conf.Cloud.Zone == was.Cloud.Zone},
		{"cloud.maxENIs", conf.Cloud.MaxENIs == was.Cloud.MaxENIs},
		{"cloud.maxIPsPerENI", conf.Cloud.MaxIPsPerENI == was.Cloud.MaxIPsPerENI},
		{"cloud.cluster", conf.Cloud.Cluster == was.Cloud.Cluster},
		{"cloud.subnets", slices.Equal(conf.Cloud.Subnets, was.Cloud.Subnets)},
		{"cloud.subnetTags", maps.Equal(conf.Cloud.SubnetTags, was.Cloud.SubnetTags)},
		{"cloud.securityGroups", slices.Equal(conf.Cloud.SecurityGroups, was.Cloud.SecurityGroups)},
		{"cloud.tags", maps.Equal(conf.Cloud.Tags, was.Cloud.Tags)},
		{"cloud.prefixes", conf.Cloud.Prefixes == was.Cloud.Prefixes},
		{"kubernetes.enabled", conf.Kubernetes.Enabled == was.Kubernetes.Enabled},
		{"kubernetes.kubeconfig", conf.Kubernetes.Kubeconfig == was.Kubernetes.Kubeconfig},
		{"listen", conf.Listen == was.Listen},
		{"profile", conf.Profile == was.Profile},
		{"logFormat", conf.LogFormat == was.LogFormat},
	} {
		if !k.same {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// maxPodsAge is how long an answer about the kubelet is good for.
const maxPodsAge = time.Minute

// maxPods is how many pods the node may run. Its methods may be called from several
// goroutines.
type maxPods struct {
	log     *slog.Logger
	cluster func() (n int, known bool) // what the Node object says; nil: there is none

	mu        sync.Mutex
	conf      agentconf.MaxPods
	asked     time.Time
	n         int
	source    string
	complaint string
}

// set takes over what a new configuration says of it.
func (m *maxPods) set(conf agentconf.MaxPods) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conf, m.asked = conf, time.Time{}
}

// get returns what the file says, else what the Node object does, which the kubelet
// made. Else it looks the kubelet's number up, not more often than once a minute.
func (m *maxPods) get() (n int, source string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conf.Fixed == 0 && m.cluster != nil {
		if n, known := m.cluster(); known && n > 0 {
			return n, "allocatable of the Node"
		}
	}
	if !m.asked.IsZero() && time.Since(m.asked) < maxPodsAge {
		return m.n, m.source
	}
	m.asked = time.Now()
	var err error
	if m.n, m.source, err = kubelet.MaxPods(m.conf.Fixed, m.conf.KubeletConfig, "/"); err != nil && err.Error() != m.complaint {
		m.complaint = err.Error()
		m.log.Warn("kubelet's limit of pods can't be read", "error", err, "using", m.n)
	}
	return m.n, m.source
}
