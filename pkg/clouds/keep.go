package clouds

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/config/agentconf"
)

// kept is a cloud that now and then, after a describe, starts an upkeep or a sweep. Their results
// are only logged.
type kept struct {
	inside
	age time.Duration // of ENIs that a sweep deletes, 0 for none
	log *slog.Logger
	now func() time.Time
	// runBeside runs it in a goroutine with a deadline of its own, so that it delays no describe.
	runBeside func(do func(context.Context))

	mu                  sync.Mutex
	nextSweep, nextKeep time.Time
}

// inside is what kept needs of the cloud that it wraps, so that it has these methods too.
type inside interface {
	cloud.Cloud
	cloud.Quarantiner
	cloud.Sizer
}

// sweeper is a cloud that can delete ENIs whose node is gone.
type sweeper interface {
	Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, err error)
	Swept() (listed int, unfinished bool)
}

// upkeeper is a cloud that can correct ENIs that differ from the configuration.
type upkeeper interface {
	Upkeep(ctx context.Context) (changed []string, err error)
}

// How long a node waits before it does one again, on average. A sweep is for the whole cluster, and
// any of its nodes can do it, so each does it rarely.
const (
	sweepEvery = 2 * time.Hour
	keepEvery  = 10 * time.Minute
)

// If a sweep has to list all ENIs of a VPC, each node of a large cluster sweeps even less often:
// together the nodes request at most one page per pageEvery, on average, from an API that may allow
// one list per second.
const (
	listPage  = 1000 // ENIs
	pageEvery = 20 * time.Second
	// confirmAfter is when a node that has found ENIs of nodes that are gone sweeps again: a sweep
	// only deletes what an earlier one of the same node has found.
	confirmAfter = 30 * time.Minute
)

// sweepAfter is how long after a sweep the next one of the node comes, on average. The number of
// listed ENIs stands for that of the nodes, which is not known.
func sweepAfter(listed int, unfinished bool) time.Duration {
	if unfinished {
		return confirmAfter
	}
	return max(sweepEvery, time.Duration(listed)*time.Duration(1+listed/listPage)*pageEvery)
}

// keepFor is how long an upkeep or a sweep may take: less than lies between two.
const keepFor = 2 * time.Minute

// Keeping returns the cloud with two additions: ENIs get the security groups of the configuration,
// and, if the configuration names a cluster, ENIs that its former nodes have left behind are deleted.
// It returns the cloud itself if that can do neither. stop ends those that are running; a later one
// does the rest.
func Keeping(conf agentconf.Config, c cloud.Cloud, log *slog.Logger) (keeping cloud.Cloud, stop func()) {
	in, ok := c.(inside)
	_, sweeps := c.(sweeper)
	_, keeps := c.(upkeeper)
	if sweeps = sweeps && conf.Cloud.Cluster != ""; !ok || !sweeps && !keeps {
		return c, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var going sync.WaitGroup
	k := &kept{inside: in, age: conf.LeakAge, log: log, now: time.Now, runBeside: func(do func(context.Context)) {
		going.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, keepFor)
			defer cancel()
			do(ctx)
		})
	}}
	k.nextSweep = k.now().Add(jitter(sweepEvery))
	if !sweeps {
		k.age = 0
	}
	return k, func() { cancel(); going.Wait() }
}

// jitter returns a random duration of up to twice the mean, so that nodes that start together don't
// do it together.
func jitter(mean time.Duration) time.Duration { return rand.N(2 * mean) }

// Recall implements cloud.Cloud. The notes tell how long to wait before the first sweep: the agents
// of a cluster are often restarted together, and should not all list the VPC then.
func (k *kept) Recall(n cloud.Notes) {
	k.inside.Recall(n)
	if can, ok := k.inside.(sweeper); ok && k.age > 0 {
		listed, _ := can.Swept()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.nextSweep = k.now().Add(jitter(sweepAfter(listed, false)))
	}
}

// Interfaces implements cloud.Cloud.
func (k *kept) Interfaces(ctx context.Context) ([]cloud.Interface, error) {
	list, err := k.inside.Interfaces(ctx)
	if err != nil {
		return list, err
	}
	if can, ok := k.inside.(upkeeper); ok && k.isDue(&k.nextKeep, keepEvery) {
		k.runBeside(func(ctx context.Context) {
			changed, failed := can.Upkeep(ctx)
			k.logResult(changed, failed, "brought ENIs in step: their security groups, and that they go with the instance", "ENIs can't be brought in step: their security groups, and that they go with the instance")
		})
	}
	if can, ok := k.inside.(sweeper); ok && k.age > 0 && k.isDue(&k.nextSweep, sweepEvery) {
		k.runBeside(func(ctx context.Context) {
			deleted, failed := can.Sweep(ctx, k.age)
			k.sweepLater(sweepAfter(can.Swept()))
			k.logResult(deleted, failed, "deleted ENIs of nodes that are gone", "ENIs of nodes that are gone can't be looked for")
		})
	}
	return list, nil
}

// logResult logs what an upkeep or a sweep has done, and why it failed.
func (k *kept) logResult(enis []string, failed error, done, not string) {
	if len(enis) > 0 {
		k.log.Info(done, "enis", strings.Join(enis, " "))
	}
	if failed != nil {
		k.log.Warn(not, "error", failed)
	}
}

// isDue tells whether it is time, and if so sets the next time.
func (k *kept) isDue(next *time.Time, every time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if now.Before(*next) {
		return false
	}
	*next = now.Add(every/2 + jitter(every/2))
	return true
}

// sweepLater sets the time of the next sweep, on average this long from now.
func (k *kept) sweepLater(after time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nextSweep = k.now().Add(after/2 + jitter(after/2))
}
