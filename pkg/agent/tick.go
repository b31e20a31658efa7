package agent

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Tick looks at everything once, does what can be done now and begins the calls
// that are due. It returns after how long the next one is due if nothing happens
// before; what goes wrong is in the log and in the status.
func (a *Agent) Tick(ctx context.Context) time.Duration {
	began := a.Wall()
	now := a.Now()
	a.begin()
	a.planned = false
	a.collect(now)
	if err := a.tick(ctx, now); err != nil {
		a.noteError(err)
		a.backOff(of(ticks), err, now)
		a.Log.Error("tick failed", "error", err)
		a.Events.Error("tick")
	} else {
		a.backoffs.clear(of(ticks))
	}
	a.report(now)
	a.Events.Tick(a.Wall().Sub(began))
	return a.untilNextTick(now)
}

// tick is the order of things. An error in one part does not keep the later ones
// from what they can do without it.
func (a *Agent) tick(ctx context.Context, now time.Duration) error {
	a.supply.lookIfDue(ctx, now)
	cached, err := a.read(ctx)
	if a.Unusable(err) || err == nil && len(cached.Damaged) > 0 {
		return a.rebuild(ctx, cached, err, now)
	}
	if err != nil {
		return err
	}
	if a.Writable != nil {
		if err := a.Writable(); err != nil {
			// What the cloud gave now could not be noted. Pods that run need the kernel all the same.
			a.cacheErr = err
			return errors.Join(err, a.resyncIfDue(ctx, cached, now))
		}
	}
	cached, err = a.supply.follow(ctx, cached, now)
	errs := []error{err, a.resyncIfDue(ctx, cached, now)}
	if again, err := a.learnOthers(ctx, cached, now); err != nil {
		errs = append(errs, err)
	} else {
		cached = again
	}
	if again, err := a.setAside(ctx, cached, now); err != nil {
		errs = append(errs, err)
	} else {
		cached = again
	}
	steps, err := a.planSteps(cached, now)
	errs = append(errs, err)
	before := a.steps
	errs = append(errs, a.supply.act(ctx, steps, now)...)
	if a.steps != before || a.busy() || a.demand.assigned != a.served {
		a.noLongerQuiet(now)
	}
	a.served = a.demand.assigned
	if a.steps != before {
		if cached, err = a.read(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	return errors.Join(append(errs, a.supply.finish(ctx, cached, now, errors.Join(errs...)))...)
}

// reading is the cache as it was read last, and what it was compared with.
type reading struct {
	cached      *ipam.State // nil if it could not be read
	cacheErr    error
	lines, enis int         // of the cache that was compared with the view last
	gone        *ipam.State // what the cache was before its settings changed
	restarted   bool        // no tick has seen the cache yet
}

// isCompared tells whether the cache has as many lines and ENIs as the one that was compared.
func (r *reading) isCompared(cached *ipam.State) bool {
	return r.lines == len(cached.Addresses) && r.enis == len(cached.ENIs)
}

// read returns the cache as it is. Nobody changes it.
func (a *Agent) read(ctx context.Context) (*ipam.State, error) {
	a.cached = nil
	a.cacheErr = a.Cache.View(ctx, func(s *ipam.State) error {
		a.cached = s
		return nil
	})
	return a.cached, a.cacheErr
}

// assumeBegun takes the releases that it finds as begun: an earlier agent's call may
// still have its effect. For a part of a block there was no call, nor for what another ENI
// has by now.
func (a *Agent) assumeBegun(cached *ipam.State, now time.Duration) {
	at, id := a.view.places(), ids(cached)
	whole := a.view.whole(cached.Addresses, func(line *eni.Address) bool { return line.State == eni.Releasing })
	for _, line := range cached.Addresses {
		if has := at[line.Addr]; whole[line.Addr] && (has == "" || has == id[line.ENI]) {
			a.mem.Begun[line.Addr] = true
			a.doubts.given[line.Addr] = now
		}
	}
	a.restarted = false
	a.endReleases(cached)
}

// endReleases forgets releases of what is not on its way back by the cache: it went with its ENI.
// When the node gets such an address again, nobody must take it for one that the cloud may take.
func (a *Agent) endReleases(cached *ipam.State) {
	back := map[netip.Addr]bool{}
	for i := range cached.Addresses {
		if line := &cached.Addresses[i]; line.State == eni.Releasing {
			back[line.Addr] = true
		}
	}
	for addr := range a.mem.Begun {
		if !back[addr] {
			delete(a.mem.Begun, addr)
			a.unsaved = true
		}
	}
}

// lookIfDue begins a describe at the start, after each resync time, and when a
// call's outcome asks for one.
func (a *Agent) lookIfDue(ctx context.Context, now time.Duration) {
	if now < a.lookDue(now) && !a.late(now) && (a.view.known && !a.view.noSubnets || a.canWait(ctx, now)) {
		return
	}
	a.urgent = a.urgent || a.late(now)
	unneeded := !a.view.known && a.describeAt > 0 && a.tried() && a.canWait(ctx, now)
	if !a.startDescribe(ctx, now) {
		a.hungry = a.hungry || !a.refuses(looks, now)
		return
	}
	a.unneeded = unneeded
	a.noteDescribe(now, now+a.describeEvery(now))
	a.eager.noteDescribe(a.Rand)
}

// describeEvery is how long after a describe the next one comes if nothing asks for it.
func (a *Agent) describeEvery(now time.Duration) time.Duration { return a.describeAfter(a.period, now) }

// describeAfter is describeEvery by that period.
func (a *Agent) describeAfter(p period, now time.Duration) time.Duration {
	usual, most := a.conf.DescribeEvery(), a.conf.DescribeQuiet()
	if most == 0 { // a period may have been counted before a reload
		return usual * time.Duration(90+a.Rand.IntN(20)) / 100
	}
	return min(p.draw(now, usual, most, a.Rand), max(longestPeriod, usual*3/2))
}

// lookDue is when the cloud is to be looked at. While the account is short, looks without a
// cause are the first to be done without, though not for ever: what others did shows in no
// other way.
func (a *Agent) lookDue(now time.Duration) time.Duration {
	switch {
	case a.urgent:
		return a.describeAt
	case !a.pressed(now) && a.eager.from > 0:
		return min(a.describeAt, a.eager.due(a.view.start))
	case !a.pressed(now):
		return a.describeAt
	}
	return max(a.describeAt, a.view.start+time.Duration(float64(spareLook)*(0.9+a.pressure.draw/5)))
}

// spareLook is how long a node does without describes, about, when the account is short.
const spareLook = 10 * time.Minute

// untilNextTick returns how long to sleep when nothing happens.
func (a *Agent) untilNextTick(now time.Duration) time.Duration {
	var hand time.Duration
	if a.hungry && len(a.calls) == 0 {
		hand = now + soon
	}
	return a.agenda.untilNext(now, a.conf.Resync, a.lookDue(now), a.backoffs.next(now), a.pressure.eases(), a.decision.Again,
		a.mem.Health.Again(a.conf.Kubernetes.Health), now+a.links.next(now), hand, a.supply.again(), a.fights.due(a.fightPause()))
}
