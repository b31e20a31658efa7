package agent

import "time"

// agenda is what is due when, as times since boot, and what is to be done as soon as it can be.
type agenda struct {
	describeAt time.Duration // when the cloud is to be looked at again
	urgent     bool          // then because a call's outcome asks for it
	againAt    time.Duration // and once more for late effects of calls whose outcome is unknown, 0 for not
	heardAt    time.Duration // and for those of deletions that an earlier agent began, 0 for not
	resyncAt   time.Duration // when the kernel and the stale allocations are
	othersAt   time.Duration // when what others hold is
	cooledAt   time.Duration // when the next address has rested, 0 for none
	calm       int           // comparisons in a row after the first that found nothing, see putOffResync

	occupied   bool // others changed what they hold since it was looked at
	disturbed  bool // others changed the kernel, and it was not compared since
	compareDue bool // a describe came that the cache was not compared with
	unsynced   bool // the cache shrank and the kernel does not know yet
	hungry     bool // something could not begin for want of budget or a free hand
	rebuilt    bool // this tick built the cache: the next one uses it
	unneeded   bool // the first describe, which was put off, has begun, and nothing needed it before
}

// begin forgets what only the last tick could not do.
func (g *agenda) begin() { g.hungry, g.rebuilt = false, false }

// lookSoon makes the next tick look at the cloud.
func (g *agenda) lookSoon(now time.Duration) { g.describeAt, g.urgent = now, true }

// lookBy makes the look at the cloud come no later than that.
func (g *agenda) lookBy(at time.Duration) { g.describeAt = min(g.describeAt, at) }

// lookAgain makes a look come when late effects of a call show whose outcome is unknown. By then
// earlier calls' show, too.
func (g *agenda) lookAgain(at time.Duration) { g.againAt = at }

// lookForHeard makes a look come when a describe shows what an earlier agent's deletion did. It may
// be after late effects of own calls or before them: one look can't stand for both.
func (g *agenda) lookForHeard(at time.Duration) { g.heardAt = max(g.heardAt, at) }

// late tells whether late effects are to be looked for.
func (g *agenda) late(now time.Duration) bool { return isDue(g.againAt, now) || isDue(g.heardAt, now) }

// awaitsLate tells whether they are, now or later.
func (g *agenda) awaitsLate() bool { return g.againAt > 0 || g.heardAt > 0 }

// isDue tells whether it is time for what comes at a time, 0 for never.
func isDue(at, now time.Duration) bool { return at > 0 && now >= at }

// noteDescribe takes in that a describe has begun. The next one is due at that time, and late effects
// that this one is to show are waited for no more.
func (g *agenda) noteDescribe(now, next time.Duration) {
	if isDue(g.againAt, now) {
		g.againAt = 0
	}
	if isDue(g.heardAt, now) {
		g.heardAt = 0
	}
	g.describeAt, g.urgent = next, false
}

// atMost brings forward what is due later than shorter periods would have it.
func (g *agenda) atMost(now, describe, resync time.Duration) {
	g.lookBy(now + describe)
	g.resyncAt, g.othersAt, g.calm = min(g.resyncAt, now+resync), min(g.othersAt, now+resync), 0
}

// seesOthers tells whether it is to be looked for what others hold.
func (g *agenda) seesOthers(now time.Duration) bool { return g.occupied || now >= g.othersAt }

// sawOthers takes in that it was.
func (g *agenda) sawOthers(next time.Duration) { g.othersAt, g.occupied = next, false }

// untilNext returns how long to sleep when nothing happens: until the first of what is due, on the agenda or
// besides, and no longer than most. What has been due and was not done waits for something else, which
// is due then or wakes the loop.
func (g *agenda) untilNext(now, most time.Duration, besides ...time.Duration) time.Duration {
	if g.rebuilt { // that tick did nothing else, and nothing announces what it left
		return minTick
	}
	at := now + most
	sooner := func(t time.Duration) {
		if t > now && t < at {
			at = t
		}
	}
	sooner(g.againAt)
	sooner(g.heardAt)
	sooner(g.resyncAt)
	sooner(g.othersAt)
	sooner(g.cooledAt)
	for _, t := range besides {
		sooner(t)
	}
	return max(at-now, minTick)
}

// soon is when to look again for what nothing announces: budget, a new link.
const soon = 250 * time.Millisecond

// minTick keeps a loop that has nothing to wait for from spinning.
const minTick = 50 * time.Millisecond
