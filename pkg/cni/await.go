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
	// pollTime is how often an ADD reads the cache that can't watch it, or that leaves a free
	// address to an ADD before it, which may have been killed since.
	pollTime = 250 * time.Millisecond
	// reclaimTime is how often the ADD whose turn it is frees stale allocations and the
	// addresses that others no longer hold.
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

	reclaimed time.Time // when stale allocations were last freed, by this ADD or those ahead
	silent    bool      // announcing failed: the agent does not know of this ADD
}

// takeLease assigns addresses to the request, which may have to wait for them.
func (p *Plugin) takeLease(ctx context.Context, kernel *host.Host, request Request, device string) (ipam.Lease, ipam.Settings, error) {
	s := &search{Plugin: p, host: kernel, request: request, device: device, watch: p.watchCache}
	err := s.findAddress(ctx)
	return s.lease, s.settings, err
}

// tryAssign takes addresses if some are free that nobody ahead will take; ahead are the
// devices that those are bound to. Unless all is set, the node state is read without the
// addresses that others use, which is faster, but then the numbers in its error are wrong.
func (s *search) tryAssign(ctx context.Context, ahead []string, all bool) error {
	pick := func(state *ipam.State) (err error) {
		s.settings = state.Settings
		// Which of those devices are ENIs only this node state says: an ENI may have come
		// since those ahead took their places.
		needs := make([]string, len(ahead))
		for i, device := range ahead {
			needs[i] = boundTo(state, device)
		}
		device := boundTo(state, s.device)
		if s.request.Conf.OfNoTopology {
			s.lease, err = state.AssignSetAside(s.request.Owner, device, s.Now())
		} else {
			s.lease, err = state.AssignReserved(s.request.Owner, s.request.Conf.Topology, device, s.Now())
		}
		if err == nil && len(s.lease.Addresses) == 0 {
			s.lease, err = state.AssignPodBehind(needs, s.request.Owner, device, s.Now())
		}
		return err
	}
	cache := s.Cache
	if !all {
		cache = cache.For(s.request.Owner.Key)
	}
	return cache.Update(ctx, pick)
}

// findAddress takes addresses: at once where nobody waits and some are free. Otherwise the
// first in the queue frees stale allocations, and each waits for its turn.
func (s *search) findAddress(ctx context.Context) error {
	ahead := s.needsAhead()
	err := s.tryAssign(ctx, ahead, false)
	if errors.Is(err, ipam.ErrDuplicate) {
		if err = s.freeIfGone(ctx, s.host, s.request.Owner.Key, err); err == nil {
			err = s.tryAssign(ctx, ahead, false)
		}
	}
	if isAwaited(err) {
		return s.awaitReserved(ctx, err)
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
	s.reclaimed = time.Now() // the first of those ahead did it when it came
	if len(ahead) == 0 || wait == 0 {
		s.reclaim(ctx)
	}
	// This time with all addresses: its error is told to people.
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
		err = tellRest(err, none)
		if why := s.Cache.Why(); why != "" && s.Cache.AgentAway() == "" {
			err = fmt.Errorf("%w; the agent: %s", err, why)
		}
	}
	return err
}

// tellRest says first when this ADD's next try can have an address; whether that is enough for all that wait the agent says.
func tellRest(err error, none *ipam.Exhausted) error {
	if len(none.Tallies) != 1 || none.Tallies[0].Free > 0 || none.Tallies[0].Cooling <= none.Ahead {
		return err
	}
	return fmt.Errorf("an address is free in %s: %w", none.Tallies[0].NextFree.Round(100*time.Millisecond), err)
}

// needsAhead returns the devices that the ADDs in the queue are bound to, "" for one that is
// bound to none. On a node where nobody waits it costs one system call.
func (s *search) needsAhead() []string {
	if !s.Cache.Queued() {
		return nil
	}
	needs, err := s.Cache.Waiting()
	s.warnUnordered(err)
	return needs
}

func (s *search) reclaim(ctx context.Context) {
	if _, err := s.sweepStale(ctx, s.host, anyOwner); err != nil {
		s.Log.Warn("reclaim failed", "error", err)
	}
	s.regainHeld(ctx)
	s.reclaimed = time.Now()
}

func (s *search) regainHeld(ctx context.Context) {
	if err := s.freeNoLongerHeld(ctx, s.host); err != nil {
		s.Log.Warn("can't look whether others hold addresses still", "error", err)
	}
}

// awaitAddress waits in the queue until there is an address for this ADD, or the time to wait
// has passed. Of the ADDs that are bound to the same device only the first reads the cache,
// each time that changes or a cooldown ends: a hundred that did would wait for each other's
// locks. It leaves the queue with its addresses, and the next one reads. The agent is told
// meanwhile. none is what the ADD found before.
func (s *search) awaitAddress(ctx context.Context, none *ipam.Exhausted) (err error) {
	wait := s.request.Conf.WaitForAddress
	began, deadline := time.Now(), time.NewTimer(wait)
	defer deadline.Stop()
	place, err := s.Cache.Enqueue(s.device, nodecache.SinceBoot()+wait)
	s.warnUnordered(err)
	waiting := s.announcePending()
	defer waiting.Done() // after recordWait: this wakes the agent, which reads the wait then
	defer func() { s.recordWait(time.Since(began), err) }()
	defer place.Leave() // first of the three, so that the next in the queue goes on
	var wake wakes
	defer func() {
		if wake.close != nil {
			wake.close()
		}
	}()
	for {
		turn, ahead := s.checkTurn(place)
		if turn == nil {
			if wake.close == nil { // before the cache is read, so that no change is missed
				wake = s.watch()
			}
			if err = s.tryAssignAsFirst(ctx, ahead); !errors.As(err, &none) {
				return err
			}
		}
		select {
		case <-turn:
		case <-wake.changed:
		case <-wake.poll:
		case <-s.nextTry(none, turn == nil, len(ahead) > 0):
		case <-deadline.C:
			s.regainHeld(ctx) // so that the error does not blame what others no longer hold
			ahead, err := place.Before()
			s.warnUnordered(err)
			return s.tryAssign(ctx, ahead, true)
		case <-ctx.Done():
			return errors.Join(none, context.Cause(ctx))
		}
	}
}

// checkTurn returns a channel that is closed when an ADD ahead that is bound to the same
// device leaves. If none is ahead it is this one's turn: the channel is nil, and ahead are
// the devices of the others.
func (s *search) checkTurn(place *nodecache.Place) (wait <-chan struct{}, ahead []string) {
	wait, err := place.Turn()
	if wait == nil && err == nil {
		ahead, err = place.Before()
	}
	s.warnUnordered(err)
	return wait, ahead
}

// tryAssignAsFirst is tryAssign for the ADD whose turn it is. From time to time it frees stale
// allocations, because those behind it don't.
func (s *search) tryAssignAsFirst(ctx context.Context, ahead []string) error {
	err := s.tryAssign(ctx, ahead, false)
	var none *ipam.Exhausted
	if errors.As(err, &none) && time.Since(s.reclaimed) >= reclaimTime {
		s.reclaim(ctx)
		err = s.tryAssign(ctx, ahead, false)
	}
	return err
}

// nextTry returns what wakes when it is time to try again though the cache has not changed:
// a cooldown has ended, a sandbox may be gone, or an ADD ahead may have been killed.
func (s *search) nextTry(none *ipam.Exhausted, first, yielding bool) <-chan time.Time {
	if !first {
		return nil
	}
	next := time.Until(s.reclaimed.Add(reclaimTime))
	if none.Cooling > 0 {
		next = min(next, none.NextFree+time.Millisecond)
	}
	if yielding {
		next = min(next, pollTime)
	}
	return time.After(next)
}

// wakes is what tells the first in the queue to read the cache again.
type wakes struct {
	changed <-chan struct{}  // nil where it can't be watched
	poll    <-chan time.Time // nil where it is watched
	close   func()
}

// watchCache returns what wakes when the cache changes. A burst of pods can use up the node's
// inotify instances: then the cache is read from time to time.
func (p *Plugin) watchCache() wakes {
	watch, err := p.Cache.Watch()
	if err != nil {
		p.Log.Warn("can't watch the pool, looking from time to time", "error", err)
		tick := time.NewTicker(pollTime)
		return wakes{poll: tick.C, close: tick.Stop}
	}
	return wakes{changed: watch.C, close: func() { _ = watch.Close() }}
}

// announcePending tells the agent of this pending ADD. If that fails, as on a full disk, the
// ADD goes on: pods that are replaced free addresses without the agent.
func (s *search) announcePending() *nodecache.Announcement {
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
