package node

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/time/rate"
)

const (
	// pluginTime is longer than the plugin takes between two changes for a pod, or
	// between kernel and node state.
	pluginTime = 500 * time.Millisecond

	// burst is how many repairs may follow each other at once, and pause how long after
	// that each has to wait: somebody who undoes what the agent does, again and again,
	// must not keep it busy.
	burst = 10
	pause = time.Second

	// gatherTime is how long more changes are awaited before the first repair.
	gatherTime = 20 * time.Millisecond
)

// Run hears changes until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	if w == nil {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	var heard error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer stop()
		if heard = w.listener.Run(ctx); heard != nil {
			heard = fmt.Errorf("listen for changes of the kernel: %w", heard)
		}
	}()
	w.send(ctx)
	stop()
	<-done
	return heard
}

// send passes faults on, as many as the limit allows, until ctx ends.
func (w *Watch) send(ctx context.Context) {
	limit := rate.NewLimiter(rate.Every(pause), burst)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.stir:
		case <-timer.C:
		}
		if sleep(ctx, gatherTime) != nil {
			return
		}
		again, faulty := w.judgeDue(ctx)
		if again > 0 {
			timer.Reset(again)
		}
		if !faulty {
			continue
		}
		if limit.Wait(ctx) != nil {
			return
		}
		// The wait may have been long, and a periodic comparison faster.
		w.passOn()
	}
}

// passOn sends the fault if there is one still.
func (w *Watch) passOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.faulty() {
		return
	}
	select {
	case w.faults <- struct{}{}:
	default:
	}
	w.sent = true
}

// faulty tells whether there is a fault that no comparison was asked for yet.
func (w *Watch) faulty() bool { return w.cause != "" && !w.comparing && !w.sent }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// judgeDue turns suspects whose pods are still there into faults. It tells whether there is a
// fault, and after how long the next suspect is due, 0 for none.
func (w *Watch) judgeDue(ctx context.Context) (again time.Duration, faulty bool) {
	due, again := w.dueSuspects(w.now())
	if len(due) > 0 {
		since, err := w.needed(ctx)
		w.mu.Lock()
		for s, why := range due {
			// A pod that came later sets up what it needs. A cache that can't be read is no
			// proof that the pod is gone.
			if from, there := since[s.name]; err != nil || there && from <= why.at {
				w.cause = cmp.Or(w.cause, why.cause)
			}
		}
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return again, w.faulty()
}

// dueSuspects takes those whose time has come, and returns when that of the next comes.
func (w *Watch) dueSuspects(now time.Duration) (due map[subject]suspicion, again time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	due = map[subject]suspicion{}
	for s, why := range w.suspects {
		left := why.at + pluginTime - now
		switch {
		case left <= 0:
			due[s] = why
			delete(w.suspects, s)
		case again == 0 || left < again:
			again = left
		}
	}
	return due, again
}

// needed returns the addresses and links of the pods of the node state, and since when each is
// the pod's, a time since boot.
func (w *Watch) needed(ctx context.Context) (map[string]time.Duration, error) {
	names := map[string]time.Duration{}
	err := w.viewState(ctx, func(s *ipam.State) error {
		for _, a := range s.Used() {
			names[a.Addr.String()] = a.Since
			names[netconf.HostDevice(a.Owner.Key)] = a.Since
		}
		return nil
	})
	return names, err
}
