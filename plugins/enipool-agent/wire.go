package main

import (
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
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/pkg/status/web"
	"golang.org/x/sync/errgroup"
)

// runAgent is one run of the agent, from the file to the end of ctx.
func runAgent(ctx context.Context, line flags, stdout, stderr io.Writer) error {
	start, err := beginOrLastGood(line, stderr)
	if err != nil {
		return err
	}
	conf, reloads, client := start.conf, start.reload, start.client
	locks := newNodeLocks(conf)
	defer locks.releaseAll()
	switch {
	case line.dryRun:
	case line.once:
		if err := locks.takeAll(); err != nil {
			return &nodeError{err}
		}
	default:
		switch waited, err := locks.waitForAll(ctx, reloads.log); {
		case err != nil:
			return &nodeError{err}
		case ctx.Err() != nil:
			return nil
		case waited:
			locks.releaseAll()
			return runAgent(ctx, line, stdout, stderr) // the file may say something else by now
		}
	}
	metrics := web.New(release)
	fast := newFastPath(conf, reloads)
	if !line.dryRun { // it changes ENIs
		var stop func()
		client, stop = clouds.Keeping(conf, client, reloads.log)
		defer stop()
	}
	clock := agent.NewRealClock(nodecache.SinceBoot, agent.Signals{})
	parts := newParts(conf, client, metrics, reloads, fast, clock)
	parts.As = fmt.Sprintf("%s with %x", release, sha256.Sum256(start.text))
	switch {
	case line.dryRun:
		lines, err := agent.New(conf, parts).Plan(ctx)
		if err != nil {
			return &nodeError{err}
		}
		for _, line := range lines {
			fmt.Fprintln(stdout, line)
		}
		return nil
	case line.once:
		if err := agent.New(conf, parts).Once(ctx); err != nil {
			return &nodeError{err}
		}
		return nil
	}
	cluster, err := joinCluster(conf, reloads.log)
	if err != nil {
		return err
	}
	if cluster != nil {
		parts.Pods, parts.Ending, parts.Report, parts.Warn, reloads.limit.cluster = cluster.Pods, cluster.Ending, cluster.Report, cluster.Warn, cluster.MaxPods
		reloads.refused.tellTo(cluster.Tell)
	}
	ears := watchKernel(&parts, reloads.log)
	parts.Wants = countWaits(nodecache.Cache{Path: conf.Cache}, metrics, reloads.log, parts.Wants)
	parts.Publish = (&publisher{cache: conf.Cache, log: reloads.log}).publishAfter(parts.Publish)
	keeper := newFolderKeeper(nodecache.Cache{Path: conf.Cache}, locks, reloads.log)
	return process{agent.New(conf, parts), clock, metrics, reloads, cluster, ears, fast, keeper}.runAll(ctx, start.source)
}

// process is an agent with what works beside it.
type process struct {
	agent   *agent.Agent
	clock   *agent.RealClock
	metrics *web.Metrics
	reload  *reload
	cluster *kube.Node // nil: there is none
	ears    ears
	fast    *node.FastPath
	keeper  *folderKeeper
}

// runAll runs the loop, its pages and the watch of the cluster side by side. If one
// fails, all end.
func (p process) runAll(ctx context.Context, from source) error {
	conf, log := p.reload.conf, p.reload.log
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.keeper.watchCacheFolder() // before the loop's first look at the cache, which then misses no change
	if p.reload.refused.Status() == nil {
		p.reload.keepSource(from)
	}
	files := watchConfig(ctx, from.file, log, p.reload.refused)
	log.Info("started", "release", release, "node", conf.Node, "mode", conf.Pool.Mode.String(), "cache", conf.Cache, "listen", conf.Listen)
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return web.Serve(ctx, conf.Listen, p.metrics.Handler(conf.Profile), log) })
	all.Go(func() error { return p.keeper.run(ctx) })
	wake := mergeWakes(ctx, mergeWakes(ctx, p.keeper.wake, p.fast.Changed), p.reload.refused.changed)
	all.Go(func() error { p.fast.Run(ctx); return nil })
	if p.cluster != nil {
		wake = mergeWakes(ctx, wake, p.cluster.Changed())
		all.Go(func() error { return p.cluster.Run(ctx) })
	}
	all.Go(func() error { return p.ears.listenKernel(ctx, log) })
	p.clock.Signals = agent.Signals{Wake: wake, Occupied: p.ears.others.Changed(), Disturbed: p.ears.watch.Faults(), Reload: p.reload.acceptedConfigs(ctx, files)}
	err := p.agent.Run(ctx)
	stop()
	return errors.Join(err, all.Wait())
}

func newParts(conf agentconf.Config, client cloud.Cloud, metrics *web.Metrics, reloads *reload, fast *node.FastPath, clock agent.Clock) agent.Parts {
	log, cache := reloads.log, nodecache.Cache{Path: conf.Cache}
	page := &status.Page{File: status.Beside(conf.Cache)}
	return agent.Parts{
		Book: cache, Unusable: nodecache.Unusable, Writable: cache.CheckWritable, Cloud: client, Memory: agent.File{Path: conf.State}, Events: metrics, Log: log,
		Kernel:  node.Node{Cache: cache, Now: nodecache.SinceBoot, Fast: fast},
		Orphans: &cni.Plugin{Cache: cache, Now: nodecache.SinceBoot, Log: log},
		Wants:   cache.Waiters,
		Publish: func(s status.Status, why string) error { return errors.Join(page.Write(s), cache.SetWhy(why)) },
		Beat: func() {
			if err := page.Touch(time.Now()); err != nil {
				log.Debug("no sign of life can be given", "error", err)
			}
		},
		MaxPods: reloads.limit.current, FastPath: fast.Status, Refused: reloads.refused.Status,
		Clock: clock, Rand: mathrand.New(mathrand.NewPCG(randomSeed(), randomSeed())),
	}
}

func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}
