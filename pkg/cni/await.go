package cni

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

const (
	// retryTime is how long an ADD that got no address goes on counting as demand:
	// within it the kubelet tries again.
	retryTime = 15 * time.Second
	// lookTime is how often an ADD looks that can't watch, or that leaves a free address
	// to another one which may have been killed since.
	lookTime = 250 * time.Millisecond
	// reclaimTime is how often the ADD whose turn it is looks for sandboxes that have died
	// and for addresses that others hold no more.
	reclaimTime = 5 * time.Second
)

// search is one ADD's search for an address.
type search struct {
	*Plugin
	host     *host.Host
	request  Request
	device   string
	watch    func() wakes
	lease    ipam.Lease
	settings ipam.Settings

	reclaimed time.Time // when dead sandboxes were last looked for, by this ADD or those ahead
	silent    bool      // the agent can't be told what is wanted
}

// takeLease assigns addresses to the request, which may have to wait for them.
func (p *Plugin) takeLease(ctx context.Context, kernel *host.Host, request Request, device string) (ipam.Lease, ipam.Settings, error) {
	s := &search{Plugin: p, host: kernel, request: request, device: device, watch: p.watchCache}
	err := s.findAddress(ctx)
	return s.lease, s.settings, err
}

// tryAssign takes addresses if some are free that nobody ahead will take. Only with all
// addresses before it does its error tell the right numbers.
func (s *search) tryAssign(ctx context.Context, ahead []string, all bool) error {
	pick := func(state *ipam.State) (err error) {
		s.settings = state.Settings
		// What the links of those ahead are to the pool shows only here: an ENI may have
		// come since they took their places.
		needs := make([]string, len(ahead))
		for i, device := range ahead {
			needs[i] = boundTo(state, device)
		}
		s.lease, err = state.AssignPodBehind(needs, s.request.Owner, boundTo(state, s.device), s.Now())
		return err
	}
	cache := s.Cache
	if !all {
		cache = cache.For(s.request.Owner.Key)
	}
	return cache.Update(ctx, pick)
}

// findAddress takes addresses: at once where nobody waits and some are free. Otherwise the
// first in the queue frees what provably dead sandboxes hold, and each waits its turn.
func (s *search) findAddress(ctx context.Context) error {
	ahead := s.needsAhead()
	err := s.tryAssign(ctx, ahead, false)
	if errors.Is(err, ipam.ErrDuplicate) {
		if err = s.replaceDead(ctx, s.host, s.request.Owner.Key, err); err == nil {
			err = s.tryAssign(ctx, ahead, false)
		}
	}
	var none *ipam.Exhausted
	if !errors.As(err, &none) {
		return err
	}
	if away := s.Cache.AgentAway(); away != "" {
		s.Log.Warn("pool is exhausted", "key", s.request.Owner.Key.String(), "cause", away)
	} else {
		s.Log.Warn("pool is exhausted", "key", s.request.Owner.Key.String())
	}
	wait := s.request.Conf.WaitForAddress
	s.reclaimed = time.Now() // by the first of those ahead
	if len(ahead) == 0 || wait == 0 {
		s.reclaim(ctx)
	}
	// With everybody's addresses, whose numbers tell why.
	if err = s.tryAssign(ctx, ahead, true); !errors.As(err, &none) {
		return err
	}
	if wait > 0 {
		if err = s.awaitAddress(ctx, none); errors.As(err, &none) {
			err = fmt.Errorf("waited %s: %w", wait, err)
		}
	}
	if errors.As(err, &none) {
		if wait == 0 {
			s.recordWait(0, err)
		}
		s.announceFailed()
		if why := s.Cache.Why(); why != "" && s.Cache.AgentAway() == "" {
			err = fmt.Errorf("%w; the agent: %s", err, why)
		}
	}
	return err
}

// needsAhead returns what the ADDs need that wait already. On a node where nobody waits it
// costs one system call.
func (s *search) needsAhead() []string {
	if !s.Cache.Queued() {
		return nil
	}
	needs, err := s.Cache.Waiting()
	s.warnUnordered(err)
	return needs
}

func (s *search) reclaim(ctx context.Context) {
	if _, err := s.sweepDead(ctx, s.host, anyOwner); err != nil {
		s.Log.Warn("reclaim failed", "error", err)
	}
	s.regainHeld(ctx)
	s.reclaimed = time.Now()
}

func (s *search) regainHeld(ctx context.Context) {
	if err := s.takeBackHeld(ctx, s.host); err != nil {
		s.Log.Warn("can't look whether others hold addresses still", "error", err)
	}
}

// awaitAddress waits in the queue until there is an address for this ADD, or the time to wait
// has passed. Only who is the first of those with its need looks at the cache, each time
// that changes or a cool-down ends; who has taken addresses leaves, and the next looks.
// The agent is told meanwhile. none is what the ADD found before.
func (s *search) awaitAddress(ctx context.Context, none *ipam.Exhausted) (err error) {
	wait := s.request.Conf.WaitForAddress
	began, deadline := time.Now(), time.NewTimer(wait)
	defer deadline.Stop()
	place, err := s.Cache.Enqueue(s.device, nodecache.SinceBoot()+wait)
	s.warnUnordered(err)
	waiting := s.announcePending()
	defer waiting.Done() // which wakes the agent: it finds the record
	defer func() { s.recordWait(time.Since(began), err) }()
	defer place.Leave() // before all else, so that the next one looks
	var wake wakes
	defer func() {
		if wake.close != nil {
			wake.close()
		}
	}()
	for {
		turn, ahead := s.checkTurn(place)
		if turn == nil {
			if wake.close == nil { // before the look, so that no change is missed
				wake = s.watch()
			}
			if err = s.tryAssignAsFirst(ctx, ahead); !errors.As(err, &none) {
				return err
			}
		}
		select {
		case <-turn:
		case <-wake.changed:
		case <-wake.look:
		case <-s.nextLook(none, turn == nil, len(ahead) > 0):
		case <-deadline.C:
			s.regainHeld(ctx) // so that the error names nobody who is gone
			ahead, err := place.Before()
			s.warnUnordered(err)
			return s.tryAssign(ctx, ahead, true)
		case <-ctx.Done():
			return errors.Join(none, context.Cause(ctx))
		}
	}
}

// checkTurn returns what wakes when an ADD with the same need leaves that is ahead; with
// nobody of that kind ahead, nil and the needs of the others ahead.
func (s *search) checkTurn(place *nodecache.Place) (wait <-chan struct{}, ahead []string) {
	wait, err := place.Turn()
	if wait == nil && err == nil {
		ahead, err = place.Before()
	}
	s.warnUnordered(err)
	return wait, ahead
}

// tryAssignAsFirst is tryAssign for the one whose turn it is. It frees what sandboxes hold that
// have died since anybody looked: those behind rely on it.
func (s *search) tryAssignAsFirst(ctx context.Context, ahead []string) error {
	err := s.tryAssign(ctx, ahead, false)
	var none *ipam.Exhausted
	if errors.As(err, &none) && time.Since(s.reclaimed) >= reclaimTime {
		s.reclaim(ctx)
		err = s.tryAssign(ctx, ahead, false)
	}
	return err
}

// nextLook returns what wakes when it is time to look again though nothing has changed:
// a cool-down has ended, a sandbox may have died, or who was to take an address may have.
func (s *search) nextLook(none *ipam.Exhausted, first, yielding bool) <-chan time.Time {
	if !first {
		return nil
	}
	next := time.Until(s.reclaimed.Add(reclaimTime))
	if none.Cooling > 0 {
		next = min(next, none.NextFree+time.Millisecond)
	}
	if yielding {
		next = min(next, lookTime)
	}
	return time.After(next)
}

// wakes is what tells the first in the queue to look.
type wakes struct {
	changed <-chan struct{}
	look    <-chan time.Time
	close   func()
}

// watchCache returns what wakes when the cache changes. On a node that is out of inotify
// instances, which a burst of pods can bring about, look says when to look without it.
func (p *Plugin) watchCache() wakes {
	watch, err := p.Cache.Watch()
	if err != nil {
		p.Log.Warn("can't watch the pool, looking from time to time", "error", err)
		tick := time.NewTicker(lookTime)
		return wakes{look: tick.C, close: tick.Stop}
	}
	return wakes{changed: watch.C, close: func() { _ = watch.Close() }}
}

// announcePending tells the agent that an address is wanted. An ADD does not fail because that
// can't be done: a full disk is no reason for it.
func (s *search) announcePending() *nodecache.Waiting {
	waiting, err := s.Cache.Announce(s.request.Owner, s.Now()+s.request.Conf.WaitForAddress)
	s.noteAnnounced(err)
	return waiting
}

// announceFailed tells the agent that the owner got no address and that its runtime
// is about to try again.
func (s *search) announceFailed() {
	if !s.silent {
		s.noteAnnounced(s.Cache.AnnounceFailed(s.request.Owner, s.Now()+retryTime))
	}
}

func (s *search) noteAnnounced(err error) {
	if err != nil {
		s.silent = true
		s.Log.Warn("can't tell the agent that an address is wanted", "error", err)
	}
}

// recordWait tells people how the wait of an ADD ended that found no address: by the log,
// and by the agent's metrics.
func (s *search) recordWait(took time.Duration, err error) {
	var none *ipam.Exhausted
	w := nodecache.Wait{Took: took, Outcome: nodecache.Served}
	switch {
	case errors.As(err, &none):
		w.Outcome = nodecache.Exhausted
	case err != nil:
		w.Outcome = nodecache.Failed
	}
	s.Log.Info("waited for an address", "key", s.request.Owner.Key.String(), "waited", took.Round(time.Millisecond), "outcome", string(w.Outcome))
	if err := s.Cache.RecordWait(w); err != nil {
		s.Log.Warn("can't tell the agent how long an ADD waited", "error", err)
	}
}

// warnUnordered says that others may be served first. An ADD does not fail for that.
func (p *Plugin) warnUnordered(err error) {
	if err != nil {
		p.Log.Warn("can't wait in order of arrival", "error", err)
	}
}
