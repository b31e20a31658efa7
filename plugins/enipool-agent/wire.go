package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/cni"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/kubelet"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/pkg/status/web"
	"github.com/gofrs/flock"
)

// runAgent is one run of the agent, from the file to the end of ctx.
func runAgent(ctx context.Context, f flags, stdout, stderr io.Writer) error {
	conf, err := readConfig(f.config)
	if err != nil {
		return err
	}
	log := newLog(conf, stderr)
	if err := node.Settle(&conf.Settings, conf.AnyFirewall); err != nil {
		return &nodeError{err}
	}
	client, err := openCloud(conf)
	if err != nil {
		return err
	}
	if !f.dryRun {
		alone, err := lock(conf)
		if err != nil {
			return &nodeError{err}
		}
		defer func() { _ = alone.Unlock() }()
	}
	metrics := web.New(release)
	a := agent.New(conf, parts(conf, client, metrics, log))
	switch {
	case f.dryRun:
		lines, err := a.Plan(ctx)
		if err != nil {
			return &nodeError{err}
		}
		for _, line := range lines {
			fmt.Fprintln(stdout, line)
		}
		return nil
	case f.once:
		if err := a.Once(ctx); err != nil {
			return &nodeError{err}
		}
		return nil
	}
	return serve(ctx, a, conf, f.config, metrics, log)
}

// serve runs the loop and its pages side by side. If one fails, both end.
func serve(ctx context.Context, a *agent.Agent, conf agentconf.Config, path string, metrics *web.Metrics, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watch, err := nodecache.Cache{Path: conf.Cache}.WatchAll()
	if err != nil {
		return &nodeError{err}
	}
	defer watch.Close()
	files, err := watchConfig(ctx, path, log)
	if err != nil {
		return fmt.Errorf("watch the configuration: %w", err)
	}
	log.Info("started", "release", release, "node", conf.Node, "mode", conf.Pool.Mode.String(), "cache", conf.Cache, "listen", conf.Listen)
	pages := make(chan error, 1)
	go func() {
		err := web.Serve(ctx, conf.Listen, metrics.Handler(conf.Profile), log)
		if err != nil {
			stop()
		}
		pages <- err
	}()
	err = a.Run(ctx, watch.C, settled(ctx, files, log))
	stop()
	return errors.Join(err, <-pages)
}

// settled passes configurations on once the node has had its say.
func settled(ctx context.Context, files <-chan agentconf.Config, log *slog.Logger) <-chan agentconf.Config {
	out := make(chan agentconf.Config)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case conf := <-files:
				if err := node.Settle(&conf.Settings, conf.AnyFirewall); err != nil {
					log.Error("configuration is not taken over", "error", err)
					continue
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

func parts(conf agentconf.Config, client cloud.Cloud, metrics *web.Metrics, log *slog.Logger) agent.Parts {
	cache := nodecache.Cache{Path: conf.Cache}
	page := status.Beside(conf.Cache)
	return agent.Parts{
		Book: cache, Unusable: nodecache.Unusable, Cloud: client, Memory: agent.File{Path: conf.State}, Events: metrics, Log: log,
		Kernel:  node.Node{Cache: cache, Now: nodecache.SinceBoot},
		Orphans: &cni.Plugin{Cache: cache, Now: nodecache.SinceBoot, Log: log},
		Wants:   cache.Waiters,
		Publish: func(s status.Status, why string) error { return errors.Join(page.Write(s), cache.SetWhy(why)) },
		MaxPods: maxPods(conf.MaxPods, log),
		Now:     nodecache.SinceBoot,
		Rand:    mathrand.New(mathrand.NewPCG(seed(), seed())),
	}
}

func seed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}

// maxPodsAge is how long an answer about the kubelet is good for.
const maxPodsAge = time.Minute

// maxPods looks the kubelet's number up, not more often than once a minute.
func maxPods(conf agentconf.MaxPods, log *slog.Logger) func() (int, string) {
	var asked time.Time
	var n int
	var source, complaint string
	return func() (int, string) {
		if !asked.IsZero() && time.Since(asked) < maxPodsAge {
			return n, source
		}
		asked = time.Now()
		var err error
		if n, source, err = kubelet.MaxPods(conf.Fixed, conf.KubeletConfig, "/"); err != nil && err.Error() != complaint {
			complaint = err.Error()
			log.Warn("kubelet's limit of pods can't be read", "error", err, "using", n)
		}
		return n, source
	}
}

func openCloud(conf agentconf.Config) (cloud.Cloud, error) {
	return sim.Dial(conf.Cloud.Endpoint, conf.Node)
}

func newLog(conf agentconf.Config, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: conf.LogLevel}
	if conf.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// lock keeps a second agent off the node: two would work against each other.
func lock(conf agentconf.Config) (*flock.Flock, error) {
	for _, path := range []string{conf.State, conf.Cache} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
	}
	l := flock.New(conf.State+".lock", flock.SetPermissions(0o600))
	held, err := l.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", l.Path(), err)
	case !held:
		return nil, fmt.Errorf("another agent keeps this node: it holds %s; stop it first", l.Path())
	}
	return l, nil
}
