package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/clouds"
	"github.com/enipool/enipool/pkg/cni"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/lastgood"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/kubeletplugin"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/pkg/status/web"
	"github.com/enipool/enipool/plugins/enipool-agent/cli"
	"github.com/enipool/enipool/plugins/enipool-agent/cluster"
	"github.com/enipool/enipool/plugins/enipool-agent/configfile"
	"github.com/enipool/enipool/plugins/enipool-agent/nodefiles"
	"github.com/enipool/enipool/plugins/enipool-agent/wake"
	"golang.org/x/sync/errgroup"
)

// runAgent is one run of the agent, from the file to the end of ctx.
func runAgent(ctx context.Context, line configfile.Flags, stdout, stderr io.Writer) error {
	start, err := configfile.BeginOrLastGood(line, stderr)
	if err != nil {
		if !line.Once && !line.DryRun { // else somebody has the answer
			_ = configfile.LeaveWord(line.Config, err, time.Now()) // it only explains, and who is not root may not
		}
		return err
	}
	conf, reloads, client := start.Conf, start.Reload, start.Client
	locks := nodefiles.NewLocks(conf)
	defer locks.ReleaseAll()
	switch {
	case line.DryRun:
	case line.Once:
		if err := locks.TakeAll(); err != nil {
			return &cli.NodeError{Err: err}
		}
	default:
		switch waited, err := locks.WaitForAll(ctx, reloads.Log); {
		case err != nil:
			return &cli.NodeError{Err: err}
		case ctx.Err() != nil:
			return nil
		case waited:
			locks.ReleaseAll()
			return runAgent(ctx, line, stdout, stderr) // the file may say something else by now
		}
	}
	metrics := web.New(release, cloud.Outcomes()...)
	fast := reloads.NewFastPath(conf)
	if !line.DryRun { // it changes ENIs
		var stop func()
		client, stop = clouds.Keeping(conf, client, reloads.Log)
		defer stop()
	}
	clock := agent.NewRealClock(nodecache.SinceBoot, agent.Signals{})
	parts := newParts(conf, client, metrics, reloads, fast, clock)
	parts.As = fmt.Sprintf("%s with %x", release, sha256.Sum256(start.Text))
	switch {
	case line.DryRun:
		lines, err := agent.New(conf, parts).Plan(ctx)
		if err != nil {
			return &cli.NodeError{Err: err}
		}
		for _, line := range lines {
			fmt.Fprintln(stdout, line)
		}
		return nil
	case line.Once:
		if err := agent.New(conf, parts).Once(ctx); err != nil {
			return &cli.NodeError{Err: err}
		}
		return nil
	}
	joined, plugin, err := cluster.Join(conf, reloads.Log)
	if err != nil {
		return err
	}
	if joined != nil {
		parts.Pods, parts.PodIPs, parts.Ending, parts.Report, parts.Warn = joined.Pods, joined.PodIPs, joined.Ending, joined.Report, joined.Warn
		parts.TopologyPods = joined.TopologyPods
		parts.Object, parts.Kept = joined.Object(), agent.Disk{Path: lastgood.Seen(conf.State)}
		if parts.Boot, err = nodecache.BootID(); err != nil {
			return &cli.NodeError{Err: err}
		}
		reloads.TellCluster(joined)
	}
	ears := wake.WatchKernel(&parts, reloads.Log)
	parts.PendingADDs = nodefiles.CountWaits(nodecache.Cache{Path: conf.Cache}, metrics, reloads.Log, parts.PendingADDs)
	publisher := nodefiles.NewPublisher(conf.Cache, reloads.Log)
	if joined != nil {
		publisher.TellCluster(nodefiles.Cluster{Offers: joined.Offers, Report: joined.ReportNetwork})
	}
	parts.Publish = publisher.PublishAfter(parts.Publish)
	if joined != nil && joined.Devices() != nil {
		parts.Publish = cluster.TellENIs(joined.Devices(), nodecache.Cache{Path: conf.Cache}, parts.Publish)
	}
	keeper := nodefiles.NewKeeper(nodecache.Cache{Path: conf.Cache}, locks, reloads.Log)
	return process{agent.New(conf, parts), clock, metrics, reloads, joined, plugin, ears, fast, keeper}.runAll(ctx, start.Source)
}

// process is an agent with what works beside it.
type process struct {
	agent   *agent.Agent
	clock   *agent.RealClock
	metrics *web.Metrics
	reload  *configfile.Reload
	cluster *kube.Node // nil: there is none
	plugin  *kubeletplugin.Plugin
	ears    wake.Ears
	fast    *node.FastPath
	keeper  *nodefiles.Keeper
}

// runAll runs the loop, its pages and the watch of the cluster side by side. If one
// fails, all end.
func (p process) runAll(ctx context.Context, from configfile.Source) error {
	conf, log := p.reload.Conf, p.reload.Log
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.keeper.WatchCacheFolder() // before the loop's first look at the cache, which then misses no change
	changes := p.reload.WatchFile(ctx, from)
	log.Info("started", "release", release, "node", conf.Node, "mode", conf.Pool.Mode.String(), "cache", conf.Cache, "listen", conf.Listen)
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		return web.Serve(ctx, conf.Listen, p.metrics.Handler(nodefiles.ReadPool(nodecache.Cache{Path: conf.Cache}), conf.Profile), log)
	})
	all.Go(func() error { return p.keeper.Run(ctx) })
	wakes := wake.Merge(ctx, wake.Merge(ctx, p.keeper.Changed(), p.fast.Changed), p.reload.Changed())
	all.Go(func() error { p.fast.Run(ctx); return nil })
	if p.cluster != nil {
		wakes = wake.Merge(ctx, wake.Merge(ctx, wakes, p.cluster.Changed()), p.cluster.Object().Changed())
		all.Go(func() error { return p.cluster.Run(ctx) })
		all.Go(func() error { p.plugin.Run(ctx); return nil })
	}
	all.Go(func() error { return p.ears.Listen(ctx, log) })
	p.clock.Signals = agent.Signals{Wake: wakes, Occupied: p.ears.Others.Changed(), Disturbed: p.ears.Watch.Faults(), Reload: changes}
	err := p.agent.Run(ctx)
	stop()
	return errors.Join(err, all.Wait())
}

func newParts(conf agentconf.Config, client cloud.Cloud, metrics *web.Metrics, reloads *configfile.Reload, fast *node.FastPath, clock agent.Clock) agent.Parts {
	log, cache := reloads.Log, nodecache.Cache{Path: conf.Cache}
	page := &status.Page{File: status.Beside(conf.Cache)}
	return agent.Parts{
		Cache: cache, Unusable: nodecache.Unusable, Writable: cache.CheckWritable, Cloud: client, Memory: agent.File{Path: conf.State}, Events: metrics, Log: log,
		Kernel:      node.Node{Cache: cache, Now: nodecache.SinceBoot, Fast: fast},
		Stale:       &cni.Plugin{Cache: cache, Now: nodecache.SinceBoot, Log: log},
		PendingADDs: cache.PendingADDs,
		Publish:     func(s status.Status, why string) error { return cmp.Or(page.Write(s), cache.SetWhy(why)) },
		Beat: func() {
			if err := page.Touch(time.Now()); err != nil {
				log.Debug("no sign of life can be given", "error", err)
			}
		},
		MaxPods: reloads.MaxPods, FastPath: fast.Status, Refused: reloads.Refused,
		Clock: clock, Rand: mathrand.New(mathrand.NewPCG(randomSeed(), randomSeed())),
	}
}

func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}
