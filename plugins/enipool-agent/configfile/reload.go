package configfile

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/kubelet"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// Reload is what of a configuration is not the loop's, and what becomes of it when
// another one comes.
type Reload struct {
	Conf agentconf.Config // that the agent was started with
	Log  *slog.Logger

	level   *slog.LevelVar
	limit   *maxPods
	fast    *node.FastPath
	cluster *silencer // nil: there is no cluster

	refused *refusal
	kept    keeping
}

func newReload(conf agentconf.Config, w io.Writer) *Reload {
	reloads := &Reload{Conf: conf, level: &slog.LevelVar{}}
	reloads.level.Set(conf.LogLevel)
	o := &slog.HandlerOptions{Level: reloads.level}
	reloads.Log = slog.New(slog.NewTextHandler(w, o))
	if conf.LogFormat == "json" {
		o.ReplaceAttr = withUnit
		reloads.Log = slog.New(slog.NewJSONHandler(w, o))
	}
	reloads.refused = newRefusal(reloads.Log)
	reloads.limit = &maxPods{conf: conf.MaxPods, log: reloads.Log}
	return reloads
}

// withUnit has durations as they are in a log of text: JSON has a bare number of nanoseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// warnOfKeys tells what of a configuration the next release refuses.
func (r *Reload) warnOfKeys(conf agentconf.Config) {
	for _, text := range conf.Warnings {
		r.Log.Warn("the next release refuses this configuration", "key", text)
	}
}

// acceptedConfigs passes configurations on once the node has had its say, and keeps them for a start at
// which the file is wrong.
func (r *Reload) acceptedConfigs(ctx context.Context, files <-chan Source) <-chan agentconf.Config {
	out := make(chan agentconf.Config)
	go func() {
		again := time.NewTicker(keepAgain)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				r.keepStill()
			case found := <-files:
				if err := r.checkForNode(ctx, &found.Conf); err != nil {
					r.refused.refuseFile(err)
					continue
				}
				r.applyConfig(found.Conf)
				r.keepSource(found)
				r.refused.noteAccepted()
				select {
				case out <- found.Conf:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// checkForNode makes the configuration the node's, and tells why neither this agent nor the next one
// could work with it.
func (r *Reload) checkForNode(ctx context.Context, conf *agentconf.Config) error {
	if _, err := fitToNode(conf, true, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	return r.refuseOutsideVPC(ctx, conf.Settings)
}

// applyConfig takes over what is not the loop's.
func (r *Reload) applyConfig(conf agentconf.Config) {
	r.level.Set(conf.LogLevel)
	r.warnOfKeys(conf)
	r.limit.setConf(conf.MaxPods)
	r.fast.Switch(conf.FastPath != agentconf.Off)
	r.cluster.follow(conf.Kubernetes.Enabled == agentconf.Off, r.Log)
	if _, keys := r.Conf.Reload(conf); len(keys) > 0 {
		r.Log.Warn("some keys change only when the agent is started again", "keys", strings.Join(keys, " "))
	}
}

// refuseOutsideVPC refuses ranges of the VPC that do not hold the node's ENIs. Which those are
// the node cache tells; without one the loop tells it when it knows.
func (r *Reload) refuseOutsideVPC(ctx context.Context, s ipam.Settings) (wrong error) {
	_ = nodecache.Cache{Path: r.Conf.Cache}.View(ctx, func(cached *ipam.State) error {
		if text := ipam.OutsideVPC(s, cached.ENIs); text != "" {
			wrong = errors.New(text)
		}
		return nil
	})
	return wrong
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
	lastError string
}

// setConf takes over what a new configuration says of it.
func (m *maxPods) setConf(conf agentconf.MaxPods) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conf, m.asked = conf, time.Time{}
}

// current returns what the file says, else what the Node object does, which the kubelet
// made. Else it looks the kubelet's number up, not more often than once a minute.
func (m *maxPods) current() (n int, source string) {
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
	if m.n, m.source, err = kubelet.MaxPods(m.conf.Fixed, m.conf.KubeletConfig, "/"); err != nil && err.Error() != m.lastError {
		m.lastError = err.Error()
		m.log.Warn("kubelet's limit of pods can't be read", "error", err, "using", m.n)
	}
	return m.n, m.source
}

// NewFastPath makes what keeps the fast path, and has new configurations switch it.
func (r *Reload) NewFastPath(conf agentconf.Config) *node.FastPath {
	r.fast = &node.FastPath{Cache: nodecache.Cache{Path: conf.Cache}, Log: r.Log, Changed: make(chan struct{}, 1)}
	r.fast.Switch(conf.FastPath != agentconf.Off)
	return r.fast
}

// WatchFile keeps what is in force, if that is from the file, and passes on the configurations
// after it until ctx ends.
func (r *Reload) WatchFile(ctx context.Context, from Source) <-chan agentconf.Config {
	if r.refused.Status() == nil {
		r.keepSource(from)
	}
	return r.acceptedConfigs(ctx, watchConfig(ctx, from.file, r.Log, r.refused))
}

// TellCluster has the cluster told of what is refused, and asked how many pods the node may run.
func (r *Reload) TellCluster(c *kube.Node) {
	r.limit.cluster, r.cluster = c.MaxPods, &silencer{node: c.Name(), withhold: c.Withhold}
	r.refused.tellTo(c.Tell)
}

// MaxPods returns how many pods the node may run, and who says so.
func (r *Reload) MaxPods() (n int, source string) { return r.limit.current() }

// Refused returns what is refused, nil if nothing is.
func (r *Reload) Refused() *status.Refused { return r.refused.Status() }

// Changed wakes the loop, which publishes what is refused.
func (r *Reload) Changed() <-chan struct{} { return r.refused.changed }
