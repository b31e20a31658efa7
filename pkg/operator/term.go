package operator

import (
	"context"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// term is the state of a term. Only its loop touches it.
type term struct {
	*Operator
	lead  Lead
	epoch int64
	ctx   context.Context         // of all that is under way
	stop  context.Context         // ends when nothing new is to begin
	end   context.CancelCauseFunc // has stop end
	endBy time.Duration           // until when what is under way then has time to end, 0 before
	under *sync.WaitGroup

	members map[string]*member
	guests  map[string]*member // nodes without an object, where the operator observes
	nodes   map[string]Node
	subnets map[string]*subnet
	dirty   map[string]bool // members to look at
	index
	looks
	past
	open
	rounds
}

// rounds is what is done for many nodes together.
type rounds struct {
	scanAt   time.Duration // when dues are asked next
	reserves bool          // ranges of a subnet are being reserved
	reclaims bool          // nodes are asked for idle slots, or do without some
	claiming *claiming     // nil where there are no topologies
}

// looks is what is known of describes.
type looks struct {
	under   bool
	all     time.Duration // when the next describe of everything is due
	early   bool          // the first of the term was begun: of those alone whose pods wait
	shown   time.Time     // when the last that succeeded began
	begun   time.Duration // the same since the lease was got
	whole   misses        // of describes of everything
	some    misses        // of describes of some nodes
	last    error         // of the last one, nil if it succeeded
	failed  *pool.Cause   // why they fail, once that is told
	noPlace bool          // the last one of everything has shown no subnet
	drifts  drifts        // what they have shown of ENIs that are not as they are to be
	others  others        // nodes that call the cloud themselves

	otherCluster string // the name that most of the nodes' ENIs are tagged with, where that is not the cluster's
}

// misses are failures in a row.
type misses struct {
	count int
	since time.Duration // when the first of them ended
	until time.Duration // until when it is not tried again
}

// add returns them with one more, that ended now.
func (m misses) add(now time.Duration) misses {
	if m.count == 0 {
		m.since = now
	}
	m.count++
	m.until = now + min(time.Minute, time.Second<<min(m.count, 6))
	return m
}

func (t *term) now() order.Moment {
	now := t.o.Clock.Now()
	return order.Moment{Mono: now.Sub(t.lead.Acquired), Wall: now}
}

// mayCall returns why no request may be sent now (S6).
func (t *term) mayCall() error {
	if t.stop.Err() != nil {
		return errStops
	}
	if !t.o.Lease.MayCall(t.now().Mono, t.lead.Renewed().Sub(t.lead.Acquired), t.o.Timeout) {
		return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "the lease may run out before the request ends"}
	}
	return nil
}

// patience is how long the loop sleeps at most: Healthy goes by it.
const patience = time.Minute

// loop turns until the term ends.
func (t *term) loop() {
	for t.ctx.Err() == nil && !t.hasEnded() {
		wait := t.turn()
		t.o.Clock.Sleep(t.ctx, t.wake, min(wait, patience))
	}
}

// turn does what there is to do, and returns how long nothing is to be done if nothing happens.
func (t *term) turn() time.Duration {
	t.mu.Lock()
	inbox := t.inbox
	t.inbox, t.turned = nil, t.o.Clock.Now()
	t.mu.Unlock()
	for _, do := range inbox {
		do(t)
	}
	now, wait := t.now().Mono, patience
	if t.stop.Err() != nil {
		return t.endTurn()
	}
	scans := now >= t.scanAt
	if scans {
		for _, name := range t.due.take(now) {
			t.dirty[name] = true
		}
	}
	wait = min(wait, t.turnClaims())
	// Those that have waited come before those that have something to say only now.
	for name := t.unpark(); name != ""; name = t.unpark() {
		delete(t.dirty, name)
		t.reconcile(name)
	}
	for name := range t.dirty {
		delete(t.dirty, name)
		t.reconcile(name)
	}
	if scans {
		t.reclaim()
	}
	// A job that turns out to need nothing makes room for another one.
	for {
		jobs, next := t.o.Gate.grantAll()
		for _, ticket := range jobs {
			t.beginJob(ticket)
		}
		if next > 0 {
			wait = min(wait, next)
		}
		if len(jobs) == 0 {
			break
		}
	}
	if len(t.dirty) > 0 {
		wait = 0
	}
	wait = min(wait, t.claimsDue())
	if t.reclaims || len(t.lacking) > 0 {
		wait = min(wait, askEvery)
	}
	if scans {
		t.scanAt = now + scanEvery
		wait = min(wait, t.scan(now))
	} else {
		wait = min(wait, t.scanAt-now)
	}
	return max(wait, time.Nanosecond)
}

// scanEvery is how often it is asked at most who is due and what nodes are asked for, however many events there are; askEvery how often the
// latter is asked at least, where pods wait for it.
const (
	scanEvery = 100 * time.Millisecond
	askEvery  = time.Second
)

// scan begins what is due for all members together, and returns how long until something is due.
func (t *term) scan(now time.Duration) time.Duration {
	for _, s := range t.subnets {
		s.emptied.is = s.emptied.is && now < s.emptied.until
	}
	wait := min(t.describeMembers(now), t.readOlder(now), t.sweep(now), t.reserve(now), t.askLeavers(now))
	if at, _, is := t.due.next(); is {
		wait = min(wait, max(0, at-now))
	}
	return min(wait, t.tellSubnets(now))
}
