package main

import (
	"log/slog"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/status"
)

// refusal remembers a changed configuration that could not be taken over: the agent
// works on with the one before, but its next start would fail. Its methods may be
// called from several goroutines.
type refusal struct {
	log     *slog.Logger
	now     func() time.Time
	changed chan struct{} // wakes the loop, which publishes it

	mu   sync.Mutex
	last *status.Refused // nil: the file is in force
}

func newRefusal(log *slog.Logger) *refusal {
	return &refusal{log: log, now: time.Now, changed: make(chan struct{}, 1)}
}

// refuse says why the file is not taken over.
func (r *refusal) refuse(err error) {
	r.log.Error("configuration is not taken over", "error", err)
	next := &status.Refused{Error: err.Error(), Since: r.now()}
	r.mu.Lock()
	if r.last != nil {
		next.Since = r.last.Since // it has not been right in between
	}
	r.mu.Unlock()
	r.set(next)
}

// settle notes that the file can be taken over.
func (r *refusal) settle() { r.set(nil) }

func (r *refusal) set(next *status.Refused) {
	r.mu.Lock()
	r.last = next
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Status returns what is refused, nil if nothing is.
func (r *refusal) Status() *status.Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}
