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
func runAgent(ctx context.Context, f flags, stdout, stderr io.Writer) error {
	b, err := begin(f, stderr)
	if err != nil {
		return err
	}
	conf, r, client := b.conf, b.reload, b.client
	locks := newNodeLocks(conf)
	defer locks.release()
	switch {
	case f.dryRun:
	case f.once:
		if err := locks.take(); err != nil {
			return &nodeError{err}
		}
	default:
		switch waited, err := locks.wait(ctx, r.log); {
		case err != nil:
			return &nodeError{err}
		case ctx.Err() != nil:
			return nil
		case waited:
			locks.release()
			return runAgent(ctx, f, stdout, stderr) // the file may say something else by now
		}
	}
	metrics := web.New(release)
	fast := newFastPath(conf, r)
	if !f.dryRun { // it changes ENIs
		var stop func()
		client, stop = clouds.Keeping(conf, client, r.log)
		defer stop()
	}
	clock := agent.NewRealClock(nodecache.SinceBoot, agent.Signals{})
	p := parts(conf, client, metrics, r, fast, clock)
	p.As = fmt.Sprintf("%s with %x", release, sha256.Sum256(b.text))
	switch {
	case f.dryRun:
		lines, err := agent.New(conf, p).Plan(ctx)
		if err != nil {
			return &nodeError{err}
		}
		for _, line := range lines {
			fmt.Fprintln(stdout, line)
		}
		return nil
	case f.once:
		if err := agent.New(conf, p).Once(ctx); err != nil {
			return &nodeError{err}
		}
		return nil
	}
	cluster, err := joinCluster(conf, r.log)
	if err != nil {
		return err
	}
	if cluster != nil {
		p.Pods, p.Ending, p.Report, p.Warn, r.limit.cluster = cluster.Pods, cluster.Ending, cluster.Report, cluster.Warn, cluster.MaxPods
		r.refused.tellTo(cluster.Tell)
	}
	ears := watchKernel(&p, r.log)
	p.Wants = countWaits(nodecache.Cache{Path: conf.Cache}, metrics, r.log, p.Wants)
	p.Publish = (&publisher{cache: conf.Cache, log: r.log}).after(p.Publish)
	keeper := newFolderKeeper(nodecache.Cache{Path: conf.Cache}, locks, r.log)
	return process{agent.New(conf, p), clock, metrics, r, cluster, ears, fast, keeper}.serve(ctx, b.source)
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

// serve runs the loop, its pages and the watch of the cluster side by side. If one
// fails, all end.
func (p process) serve(ctx context.Context, from source) error {
	conf, log := p.reload.conf, p.reload.log
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.keeper.rewatch() // before the loop's first look at the cache, which then misses no change
	if p.reload.refused.Status() == nil {
		p.reload.keep(from)
	}
	files := watchConfig(ctx, from.file, log, p.reload.refused)
	log.Info("started", "release", release, "node", conf.Node, "mode", conf.Pool.Mode.String(), "cache", conf.Cache, "listen", conf.Listen)
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return web.Serve(ctx, conf.Listen, p.metrics.Handler(conf.Profile), log) })
	all.Go(func() error { return p.keeper.run(ctx) })
	wake := both(ctx, both(ctx, p.keeper.wake, p.fast.Changed), p.reload.refused.changed)
	all.Go(func() error { p.fast.Run(ctx); return nil })
	if p.cluster != nil {
		wake = both(ctx, wake, p.cluster.Changed())
		all.Go(func() error { return p.cluster.Run(ctx) })
	}
	all.Go(func() error { return p.ears.listen(ctx, log) })
	p.clock.Signals = agent.Signals{Wake: wake, Occupied: p.ears.others.Changed(), Disturbed: p.ears.watch.Faults(), Reload: p.reload.taken(ctx, files)}
	err := p.agent.Run(ctx)
	stop()
	return errors.Join(err, all.Wait())
}

func parts(conf agentconf.Config, client cloud.Cloud, metrics *web.Metrics, r *reload, fast *node.FastPath, clock agent.Clock) agent.Parts {
	log, cache := r.log, nodecache.Cache{Path: conf.Cache}
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
		MaxPods: r.limit.get, FastPath: fast.Status, Refused: r.refused.Status,
		Clock: clock, Rand: mathrand.New(mathrand.NewPCG(seed(), seed())),
	}
}

func seed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}
