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

// sweeper is a cloud that can delete ENIs whose node is gone.
type sweeper interface {
	cloud.Cloud
	cloud.Quarantiner
	Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, err error)
}

// sweepEvery is how long a node waits before it sweeps again, on average: a cluster
// has many nodes, and any of them will do.
const sweepEvery = 2 * time.Hour

// swept is a cloud whose describes sweep now and then.
type swept struct {
	sweeper
	age time.Duration
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	next time.Time
}

// Sweeping returns the cloud with a sweep now and then beside its describes: of ENIs
// that nodes of the cluster left behind which are gone. It is the cloud itself where no
// cluster is named, or where the cloud can't sweep.
func Sweeping(conf agentconf.Config, c cloud.Cloud, log *slog.Logger) cloud.Cloud {
	can, ok := c.(sweeper)
	if conf.Cloud.Cluster == "" || !ok {
		return c
	}
	s := &swept{sweeper: can, age: conf.LeakAge, log: log, now: time.Now}
	s.next = s.now().Add(jitter(sweepEvery))
	return s
}

// jitter is up to twice as long, so that nodes that start together don't sweep so.
func jitter(mean time.Duration) time.Duration { return rand.N(2 * mean) }

// Interfaces implements cloud.Cloud. What a sweep does is nobody's answer.
func (s *swept) Interfaces(ctx context.Context) ([]cloud.Interface, error) {
	list, err := s.sweeper.Interfaces(ctx)
	if err != nil || !s.due() {
		return list, err
	}
	deleted, failed := s.Sweep(ctx, s.age)
	if len(deleted) > 0 {
		s.log.Info("deleted ENIs of nodes that are gone", "enis", strings.Join(deleted, " "))
	}
	if failed != nil {
		s.log.Warn("ENIs of nodes that are gone can't be looked for", "error", failed)
	}
	return list, nil
}

// due tells whether a sweep is due, and settles when the next one is.
func (s *swept) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Before(s.next) {
		return false
	}
	s.next = now.Add(sweepEvery/2 + jitter(sweepEvery/2))
	return true
}
