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

// kept is a cloud whose describes are followed, now and then, by what keeps an account in
// order: that is nobody's answer.
type kept struct {
	inside
	age time.Duration // of ENIs that a sweep deletes, 0 for none
	log *slog.Logger
	now func() time.Time
	// beside does it with a time of its own: what is slow or fails holds up no describe.
	beside func(do func(context.Context))

	mu                  sync.Mutex
	nextSweep, nextKeep time.Time
}

// inside is a cloud that tells what it leaves out, and what its limits are now.
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

// upkeeper is a cloud that can bring ENIs in step with the configuration.
type upkeeper interface {
	Upkeep(ctx context.Context) (changed []string, err error)
}

// How long a node waits before it does it again, on average. A cluster has many nodes,
// and any of them will do for a sweep.
const (
	sweepEvery = 2 * time.Hour
	keepEvery  = 10 * time.Minute
)

// Where a sweep lists all ENIs of a VPC, each node of a large cluster does so seldom: together
// they make at most one request for a page in pageEvery, of an API that may allow one a second.
const (
	listPage  = 1000 // ENIs
	pageEvery = 20 * time.Second
	// confirmAfter is when the node looks again that has found ENIs of nodes that are gone: what one
	// sweep has found is deleted by the next of the same node.
	confirmAfter = 30 * time.Minute
)

// sweepAfter is how long after a sweep the next one of the node comes, on average. There are no more
// nodes than ENIs that it was told of, or they have none.
func sweepAfter(listed int, unfinished bool) time.Duration {
	if unfinished {
		return confirmAfter
	}
	return max(sweepEvery, time.Duration(listed)*time.Duration(1+listed/listPage)*pageEvery)
}

// keepFor is how long one of them may take: less than lies between two.
const keepFor = 2 * time.Minute

// Keeping returns the cloud with two things beside its describes: ENIs follow the
// configuration's security groups, and, where a cluster is named, those are deleted that
// its nodes left behind which are gone. It is the cloud itself where that can neither.
// stop ends what of it is under way; a later upkeep or sweep does the rest.
func Keeping(conf agentconf.Config, c cloud.Cloud, log *slog.Logger) (keeping cloud.Cloud, stop func()) {
	in, ok := c.(inside)
	_, sweeps := c.(sweeper)
	_, keeps := c.(upkeeper)
	if sweeps = sweeps && conf.Cloud.Cluster != ""; !ok || !sweeps && !keeps {
		return c, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var going sync.WaitGroup
	k := &kept{inside: in, age: conf.LeakAge, log: log, now: time.Now, beside: func(do func(context.Context)) {
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

// jitter is up to twice as long, so that nodes that start together don't do it together.
func jitter(mean time.Duration) time.Duration { return rand.N(2 * mean) }

// Recall implements cloud.Cloud. The first sweep is as seldom as later ones: a cluster's agents are
// restarted together.
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
	if can, ok := k.inside.(upkeeper); ok && k.due(&k.nextKeep, keepEvery) {
		k.beside(func(ctx context.Context) {
			changed, failed := can.Upkeep(ctx)
			k.tell(changed, failed, "brought ENIs in step: their security groups, and that they go with the instance", "ENIs can't be brought in step: their security groups, and that they go with the instance")
		})
	}
	if can, ok := k.inside.(sweeper); ok && k.age > 0 && k.due(&k.nextSweep, sweepEvery) {
		k.beside(func(ctx context.Context) {
			deleted, failed := can.Sweep(ctx, k.age)
			k.sweepLater(sweepAfter(can.Swept()))
			k.tell(deleted, failed, "deleted ENIs of nodes that are gone", "ENIs of nodes that are gone can't be looked for")
		})
	}
	return list, nil
}

func (k *kept) tell(enis []string, failed error, done, not string) {
	if len(enis) > 0 {
		k.log.Info(done, "enis", strings.Join(enis, " "))
	}
	if failed != nil {
		k.log.Warn(not, "error", failed)
	}
}

// due tells whether it is time, and settles when it is the next time.
func (k *kept) due(next *time.Time, every time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if now.Before(*next) {
		return false
	}
	*next = now.Add(every/2 + jitter(every/2))
	return true
}

// sweepLater settles when the next sweep is, on average after that time.
func (k *kept) sweepLater(after time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nextSweep = k.now().Add(after/2 + jitter(after/2))
}
