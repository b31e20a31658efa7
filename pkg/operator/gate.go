package operator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/quota"
)

// Gate is where every request to the cloud passes: the engine asks it before each (engine.Options.Admit). It has the only
// budget of the account and the queue of what waits for it. A job comes with the token of the request that it is for; the
// others of the job wait in the queue as begun, before all that has not. So nothing is paced twice.
type Gate struct {
	clock Clock

	mu      sync.Mutex
	budget  *quota.Budget
	queue   *quota.Queue
	born    time.Time
	mayCall func() error    // why no request may be sent now (S6)
	stop    <-chan struct{} // closed when none will be sent any more
	wake    func()          // has the loop look at the queue
	fresh   map[string][]quota.Request
	begun   map[string][]*pending     // by node
	others  map[string]float64        // requests per second that nodes send which call the cloud themselves
	moved   map[quota.Class]time.Time // when something of the class was sent last, or nothing of it could have been
}

// pending is a request of a job that waits for its token.
type pending struct {
	quota.Request
	granted chan struct{}
	taken   bool
}

// ticket is a job's place at the gate. One request of it is under way at a time.
type ticket struct {
	quota.Request        // of the request under way
	name          string // of the job, among all of the node
	under         bool   // a request is under way
	token         string // the action whose token the job came with and has not used yet
	step          int    // number of the request
	last          string // the action that was asked for last
	unsent        bool   // that request was not sent: what came of the job says nothing of the cloud
}

type ticketKey struct{}

// NewGate returns a gate, which admits nothing before an operator runs with it.
func NewGate(c Clock) *Gate {
	return &Gate{clock: c, fresh: map[string][]quota.Request{}, begun: map[string][]*pending{}}
}

// other is for actions whose bucket is not known: less than any cloud lets pass.
var other = quota.Limit{Burst: 5, PerSecond: 1}

// openTerm begins a term, with a budget that begins now. From when stop is closed on nothing is admitted.
func (g *Gate) openTerm(budget *quota.Budget, mayCall func() error, stop <-chan struct{}, wake func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.born, g.moved = g.clock.Now(), map[quota.Class]time.Time{}
	g.budget, g.others = budget, nil
	g.queue = quota.NewQueue(g.budget)
	g.mayCall, g.stop, g.wake = mayCall, stop, wake
	clear(g.fresh)
	clear(g.begun)
}

func (g *Gate) sinceOpen() time.Duration { return g.clock.Now().Sub(g.born) }

// Admit returns when a request that counts as the action may be sent, or with an error if it must not be. It is for engine.Options.Admit.
func (g *Gate) Admit(ctx context.Context, action string) error {
	t, isJob := ctx.Value(ticketKey{}).(*ticket)
	await := func() error { return g.admitRead(ctx, action) }
	if isJob {
		await = func() error { return g.awaitToken(ctx, t, action) }
	}
	if err := await(); err != nil {
		return err
	}
	// The lease may have run out while the token was awaited, or while this process was stopped.
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.mayCall()
	if err == nil && ctx.Err() != nil {
		err = &driver.Error{Kind: cloud.ErrUnavailable, Detail: fmt.Sprintf("%s got its token too late: %v", action, ctx.Err())}
	}
	if err != nil {
		g.budget.Refund(action, g.sinceOpen())
	}
	if isJob {
		if t.unsent = err != nil; t.unsent {
			g.endRequest(t)
		}
	}
	return err
}

// closedFor is how long it takes until somebody looks again whether requests may be sent: the lease is renewed every two seconds.
const closedFor = 500 * time.Millisecond

// errStops is why nothing is admitted any more.
var errStops = &driver.Error{Kind: cloud.ErrUnavailable, Detail: "this operator ends"}

// admitRead admits what is of no job: describes for all nodes, whose tokens nothing else takes for long, and a sweep. While none may be
// sent it takes no token.
func (g *Gate) admitRead(ctx context.Context, action string) error {
	for {
		g.mu.Lock()
		if g.budget == nil {
			g.mu.Unlock()
			return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "this operator does not lead"}
		}
		now, taken, pause, stop := g.sinceOpen(), false, closedFor, g.stop
		if g.mayCall() == nil {
			taken = g.budget.Take(action, now)
			pause = g.budget.Next(action, now) - now
		}
		g.mu.Unlock()
		if taken {
			return nil
		}
		g.clock.Sleep(ctx, stop, pause)
		if err := ctx.Err(); err != nil {
			return &driver.Error{Kind: cloud.ErrUnavailable, Detail: fmt.Sprintf("%s got no token in time: %v", action, err)}
		}
		select {
		case <-stop:
			return errStops
		default:
		}
	}
}

// awaitToken waits for the token of a job's next request: the one before has ended.
func (g *Gate) awaitToken(ctx context.Context, job *ticket, action string) error {
	g.mu.Lock()
	job.last = action
	if job.token == action {
		job.token = ""
		g.mu.Unlock()
		return nil
	}
	g.endRequest(job)
	job.step++
	next := &pending{Request: job.Request, granted: make(chan struct{})}
	next.Action, next.Object, next.Begun = action, fmt.Sprint(job.name, " ", job.step), true
	g.begun[next.Node] = append(g.begun[next.Node], next)
	g.tellQueue(next.Node)
	stop := g.stop
	g.mu.Unlock()
	g.wake()
	var err error
	select {
	case <-next.granted:
	case <-ctx.Done():
		err = &driver.Error{Kind: cloud.ErrUnavailable, Detail: fmt.Sprintf("%s got no token in time: %v", action, ctx.Err())}
	case <-stop:
		err = errStops
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Both may have happened: what is granted is sent.
	if next.taken {
		job.Request, job.under = next.Request, true
		return nil
	}
	job.unsent = true
	g.begun[next.Node] = slices.DeleteFunc(g.begun[next.Node], func(other *pending) bool { return other == next })
	g.tellQueue(next.Node)
	return err
}

// endRequest ends the request of a job that is under way. The caller holds the lock.
func (g *Gate) endRequest(t *ticket) {
	if t.under {
		g.queue.Done(t.Request)
		t.under = false
	}
}

// endJob ends a job.
func (g *Gate) endJob(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endRequest(t)
}

// setFresh replaces what a node waits for with jobs that have not begun.
func (g *Gate) setFresh(node string, fresh []quota.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fresh[node] = fresh; len(fresh) == 0 {
		delete(g.fresh, node)
	}
	g.tellQueue(node)
}

// tellQueue tells the queue what a node waits for. The caller holds the lock.
func (g *Gate) tellQueue(node string) {
	all := slices.Clone(g.fresh[node])
	for _, p := range g.begun[node] {
		all = append(all, p.Request)
	}
	if len(g.begun[node]) == 0 {
		delete(g.begun, node)
	}
	g.queue.Set(node, all)
}

// grantAll grants what may be sent now, nothing while no request may be. It returns the jobs that begin with that, and when to call it again, 0 for not before something changes.
func (g *Gate) grantAll() (jobs []*ticket, next time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.sinceOpen()
	if g.mayCall() != nil {
		clear(g.moved) // nothing could have been sent
		if _, waits := g.queue.Next(now); waits {
			next = closedFor
		}
		return nil, next
	}
	sent := map[quota.Class]bool{}
	for {
		w, found := g.queue.Take(now)
		if !found {
			break
		}
		sent[w.Class] = true
		if w.Begun {
			g.grantBegun(w)
			continue
		}
		g.fresh[w.Node] = slices.DeleteFunc(g.fresh[w.Node], func(f quota.Request) bool { return f.Action == w.Action && f.Object == w.Object })
		jobs = append(jobs, &ticket{Request: w, name: w.Action + " " + w.Object, under: true, token: w.Action})
	}
	// From here on stuckFor counts for what could be sent and is not.
	for class, held := range g.queue.Held(now) {
		class := quota.Class(class)
		if _, known := g.moved[class]; sent[class] || !held || !known {
			g.moved[class] = g.clock.Now()
		}
	}
	at, waits := g.queue.Next(now)
	if waits {
		next = max(at-now, time.Nanosecond)
	}
	return jobs, next
}

// grantBegun lets a job's next request go. The caller holds the lock.
func (g *Gate) grantBegun(w quota.Request) {
	for i, p := range g.begun[w.Node] {
		if p.Object == w.Object && p.Action == w.Action {
			p.taken = true
			close(p.granted)
			g.begun[w.Node] = slices.Delete(g.begun[w.Node], i, i+1)
			return
		}
	}
	g.queue.Done(w) // it was given up in this moment
}

// noteThrottled takes in that the cloud refused the request of a job for their number.
func (g *Gate) noteThrottled(action string, after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.Throttled(action, g.sinceOpen(), after)
}

// stuckFor returns for how long something of each class could have been sent and nothing was.
func (g *Gate) stuckFor() map[quota.Class]time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	stuck := map[quota.Class]time.Duration{}
	if g.queue == nil {
		return stuck
	}
	for class, held := range g.queue.Held(g.sinceOpen()) {
		if at, known := g.moved[quota.Class(class)]; held && known {
			stuck[quota.Class(class)] = g.clock.Now().Sub(at)
		}
	}
	return stuck
}

// Waiting returns how many jobs of each class wait for a token, and the budget by action.
func (g *Gate) Waiting() (classes []int, budget []quota.State) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue == nil {
		return nil, nil
	}
	of := g.queue.Waiting()
	return of[:], g.budget.States(g.sinceOpen())
}
