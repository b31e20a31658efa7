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
	mayCall func() error // why no job may send a request now (S6)
	wake    func()       // has the loop look at the queue
	fresh   map[string][]quota.Request
	begun   map[string][]*pending // by node
	idle    time.Time             // when nothing was left that could have been sent
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
}

type ticketKey struct{}

// NewGate returns a gate, which admits nothing before an operator runs with it.
func NewGate(c Clock) *Gate {
	return &Gate{clock: c, fresh: map[string][]quota.Request{}, begun: map[string][]*pending{}}
}

// other is for actions whose bucket is not known: less than any cloud lets pass.
var other = quota.Limit{Burst: 5, PerSecond: 1}

// openTerm begins a term, with a budget that begins now.
func (g *Gate) openTerm(budget *quota.Budget, mayCall func() error, wake func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.born, g.idle = g.clock.Now(), g.clock.Now()
	g.budget = budget
	g.queue = quota.NewQueue(g.budget)
	g.mayCall, g.wake = mayCall, wake
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
	mayCall := g.mayCall
	g.mu.Unlock()
	return mayCall()
}

// admitRead admits what is of no job: describes for all nodes, whose tokens nothing else takes for long, and a sweep.
func (g *Gate) admitRead(ctx context.Context, action string) error {
	for {
		g.mu.Lock()
		if g.budget == nil {
			g.mu.Unlock()
			return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "this operator does not lead"}
		}
		now := g.sinceOpen()
		taken, next := g.budget.Take(action, now), g.budget.Next(action, now)
		g.mu.Unlock()
		if taken {
			return nil
		}
		g.clock.Sleep(ctx, nil, next-now)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("no token: %w", err)
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
	g.mu.Unlock()
	g.wake()
	select {
	case <-next.granted:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Both may have happened: what is granted is under way, and ends with the job.
	if next.taken {
		job.Request, job.under = next.Request, true
		return ctx.Err()
	}
	g.begun[next.Node] = slices.DeleteFunc(g.begun[next.Node], func(other *pending) bool { return other == next })
	g.tellQueue(next.Node)
	return &driver.Error{Kind: cloud.ErrUnavailable, Detail: fmt.Sprintf("%s got no token in time: %v", action, ctx.Err())}
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

// grantAll grants what may be sent now. It returns the jobs that begin with that, and when to call it again, 0 for not before something changes.
func (g *Gate) grantAll() (jobs []*ticket, next time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.sinceOpen()
	for {
		w, found := g.queue.Take(now)
		if !found {
			break
		}
		if w.Begun {
			g.grantBegun(w)
			continue
		}
		g.fresh[w.Node] = slices.DeleteFunc(g.fresh[w.Node], func(f quota.Request) bool { return f.Action == w.Action && f.Object == w.Object })
		jobs = append(jobs, &ticket{Request: w, name: w.Action + " " + w.Object, under: true, token: w.Action})
	}
	// All that may be sent is on its way now: from here on stuckFor counts.
	at, waits := g.queue.Next(now)
	if g.idle = g.clock.Now(); waits {
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

// stuckFor returns for how long something could have been sent and was not.
func (g *Gate) stuckFor() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue == nil {
		return 0
	}
	if at, waits := g.queue.Next(g.sinceOpen()); !waits || at > g.sinceOpen() {
		return 0
	}
	return g.clock.Now().Sub(g.idle)
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
