// Package operator calls the cloud for the nodes of a cluster, in place of their agents. It reads what
// the agents ask for in NodeNetwork objects, decides by the rules of package order, and writes the answers into
// the objects' status; what goes to the cloud, and when, is in the order of package quota.
//
// It is a library: who gets the lease and talks to the API server is a program's affair. DESIGN.md says how it works.
package operator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/quota"
	"github.com/enipool/enipool/pkg/topology"
)

// Options are what an operator works with. Those up to Gate are needed.
type Options struct {
	Region  cloud.Region // whose engine asks Gate before each request, and ends each after Timeout
	Objects Objects
	Lease   order.Lease
	Timeout time.Duration // of a request, less than the lease
	Gate    *Gate
	Actions func(part string) []string // driver.Traits.ActionsOf of the cloud

	Claims   ClaimObjects // nil: there are no topologies
	Families []eni.Family // that pods of topologies have addresses of

	Clock    Clock         // nil: the machine's; the same as the Gate's
	Describe time.Duration // how often everything is described, 0 is 5 minutes
	LeakAge  time.Duration // how old an ENI is before it is deleted that nobody finishes, 0 is 10 minutes
	Share    int           // percent of the account's rates, 0 is 80
	Budget   map[string]quota.Limit
	Observe  bool   // look and tell, and call nothing that changes
	Cluster  string // its name, that Region tags ENIs with; "": the tags are not compared with it
	Log      *slog.Logger
	Meter    Meter        // nil: nobody counts
	Tell     func(Notice) // must not block; nil: nobody is told
}

// Operator is one operator. It may lead several terms, one after the other.
type Operator struct {
	o      Options
	checks checks

	mu     sync.Mutex
	inbox  []func(*term)
	wake   chan struct{}
	turned time.Time       // when the loop turned last, zero while it does not run
	oldest time.Time       // when the first of the calls under way has to have ended
	ended  <-chan struct{} // closed with the term, nil while there is none
	counts map[string]topology.Count

	zones     zoneLabels
	toldKinds map[string]bool // fields that the installed kinds lack, of which people were told. Only the loop of a term touches it
}

// New returns an operator, or what is wrong with its options.
func New(options Options) (*Operator, error) {
	if options.Clock == nil {
		options.Clock = Wall{}
	}
	options.Describe, options.LeakAge = cmp.Or(options.Describe, 5*time.Minute), cmp.Or(options.LeakAge, 10*time.Minute)
	options.Share, options.Log = cmp.Or(options.Share, 80), cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	if options.Meter == nil {
		options.Meter = unmetered{}
	}
	if options.Tell == nil {
		options.Tell = func(Notice) {}
	}
	if options.Share < 1 || options.Share > 100 {
		return nil, fmt.Errorf("share: %d percent: must be from 1 to 100", options.Share)
	}
	if err := options.Lease.Validate(options.Timeout); err != nil {
		return nil, err
	}
	return &Operator{o: options, wake: make(chan struct{}, 1)}, nil
}

// Run leads a term, until ctx ends or the term can't go on. From when ctx ends nothing more is sent to the cloud; what is under
// way has the time of a request to end and to be written down, unless lead.Held ends before.
func (o *Operator) Run(ctx context.Context, lead Lead) error {
	ctx, end := context.WithCancelCause(ctx)
	held := lead.Held
	if held == nil {
		held = ctx
	}
	held, cancel := context.WithCancel(held)
	var under sync.WaitGroup
	defer under.Wait()
	defer cancel()
	defer end(nil)
	all, err := o.o.Objects.ReadAll(ctx)
	if err != nil {
		return fmt.Errorf("read the cluster's objects: %w", err)
	}
	last := lead.Epoch
	for _, n := range all.Networks {
		last = max(last, n.Status.Epoch)
	}
	epoch := nextEpoch(last, o.o.Clock.Now())
	if err := lead.Number(ctx, epoch); err != nil {
		return fmt.Errorf("write epoch %d on the lease: %w", epoch, err)
	}
	o.mu.Lock()
	o.inbox, o.turned, o.oldest, o.ended = nil, o.o.Clock.Now(), time.Time{}, ctx.Done()
	o.mu.Unlock()
	t := &term{Operator: o, lead: lead, epoch: epoch, ctx: held, stop: ctx, end: end, under: &under, members: map[string]*member{}, nodes: map[string]Node{},
		guests: map[string]*member{}, subnets: map[string]*subnet{}, dirty: map[string]bool{}, index: newIndex(), open: open{running: map[*job]bool{}, parked: map[string]bool{}}, rounds: rounds{claiming: o.newClaiming()}}
	t.sweeps.at = firstSweep
	t.sweeps.ask(firstSweep + o.o.LeakAge)
	o.o.Gate.openTerm(budgetOf(o.limits(nil), last > 0), t.mayCall, ctx.Done(), o.nudge)
	defer context.AfterFunc(ctx, o.nudge)()
	t.takeAll(all)
	under.Go(func() {
		o.o.Objects.Watch(held, func(e Event) { o.post(func(t *term) { t.takeEvent(e) }) })
	})
	if t.claiming != nil {
		under.Go(func() {
			o.o.Claims.WatchClaims(held, func(e claims.Event) { o.post(func(t *term) { t.takeClaims(e) }) })
		})
	}
	t.loop()
	o.mu.Lock()
	o.turned, o.oldest, o.ended = time.Time{}, time.Time{}, nil
	o.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return context.Cause(held) // it ended before whoever stops the operator knew
}

// CountOf returns how far a topology is used, false as long as that is not known.
func (o *Operator) CountOf(topology string) (c topology.Count, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, known = o.counts[topology]
	return c, known
}

// nextEpoch returns the number of a term: above all that the lease and the objects show, and not below the time in seconds. A lease that was
// deleted, or put back from a backup, begins at an old number again, and of a term in which nothing was written no object has the number:
// the number of such a term must not come twice. Where a clock that was ahead has left a number that no time reaches, the time tells terms
// apart by what is added to it.
func nextEpoch(last int64, now time.Time) int64 {
	if seconds := now.Unix(); last >= seconds {
		return order.NextEpoch(last) + seconds%epochStride
	}
	return order.NextEpoch(now.Unix())
}

// epochStride is within how many numbers, and so seconds, terms that follow one number differ: twelve days.
const epochStride = 1 << 20

// budgetOf returns the budget that a term begins with. Where there was a term before it begins with nothing: the leader of that one may have
// used all that the account lets pass at once a moment ago, and nobody knows. While the leader waits for the first describe that it may go by a
// part comes in; what the two send is together never more than the account's share, however often they take turns.
func budgetOf(limits map[string]quota.Limit, again bool) *quota.Budget {
	if again {
		return quota.NewEmptyBudget(limits, other, 0)
	}
	return quota.NewBudget(limits, other, 0)
}

// limits returns the part of the account's buckets that the operator takes, where other nodes send so many requests per second. What people
// have said of an action is so much, whoever else sends.
func (o *Operator) limits(others map[string]float64) map[string]quota.Limit {
	limits := map[string]quota.Limit{}
	for action, b := range o.o.Region.Buckets() {
		limits[action] = quota.Limit{Burst: b.Burst, PerSecond: b.PerSecond}.Share(o.o.Share).Beside(others[action])
	}
	for action, l := range o.o.Budget {
		limits[action] = l
	}
	return limits
}

// post gives the loop something to do.
func (o *Operator) post(do func(*term)) {
	o.mu.Lock()
	o.inbox = append(o.inbox, do)
	o.mu.Unlock()
	o.nudge()
}

func (o *Operator) nudge() {
	select {
	case o.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// unhealthy is for how long an operator may do nothing where there is something to do.
const unhealthy = 5 * time.Minute

// Healthy returns why the operator has to be started again, nil if it goes on by itself.
func (o *Operator) Healthy() error {
	o.mu.Lock()
	turned, oldest := o.turned, o.oldest
	o.mu.Unlock()
	now := o.o.Clock.Now()
	switch {
	case turned.IsZero():
		return nil // it does not lead
	case now.Sub(turned) >= unhealthy:
		return fmt.Errorf("nothing was decided since %s", turned.Format(time.RFC3339))
	case !oldest.IsZero() && now.Sub(oldest) >= unhealthy:
		return fmt.Errorf("a call to the cloud has not ended since %s", oldest.Format(time.RFC3339))
	}
	for class, d := range o.o.Gate.stuckFor() {
		// Calls that no pod waits for may have to wait for others of their kind, each for as long as a call may take.
		if most := unhealthy + longJob; d >= most || class == quota.Starving && d >= unhealthy {
			return fmt.Errorf("a call that may be made has waited for %s, class %s", d, class)
		}
	}
	if w, can := o.o.Objects.(Watcher); can {
		if since, err := w.Silent(); err != nil && now.Sub(since) >= unhealthy {
			return fmt.Errorf("the API server has told of no changes since %s: %w", since.Format(time.RFC3339), err)
		}
	}
	return nil
}
