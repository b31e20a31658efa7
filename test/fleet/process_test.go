package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unsafe"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/plugins/enipool-operator/cluster"
)

// process is one of an operator: it stands for election, and leads. It can be stopped as by SIGSTOP, and killed as by SIGKILL: wherever
// it touches the world it waits then, or does nothing any more.
type process struct {
	w    *world
	name string

	mu     sync.Mutex
	frozen chan struct{} // closed when it goes on, nil while it is not stopped
	dead   bool
	jump   time.Duration // of its clock
	trap   *trap
	cancel context.CancelFunc
	killed chan struct{}
	op     *operator.Operator
	ended  chan struct{}
}

// trap is what happens at an effect of a process.
type trap struct {
	at    string // the effect, "" for any
	skip  int    // so many of them before
	after bool
	do    func()
}

var errDead = &driver.Error{Kind: cloud.ErrUnknown, Detail: "the process has ended"}

// startOperator begins a process.
func (w *world) startOperator(ctx context.Context, name string) *process {
	p := &process{w: w, name: name, killed: make(chan struct{}), ended: make(chan struct{})}
	ctx, p.cancel = context.WithCancel(ctx)
	gate := operator.NewGate(clock{p})
	region := engine.NewRegion(calls{w.account.Driver("", w.traits), p}, engine.Options{SubnetTags: forPods, Cluster: "blue", Admit: gate.Admit, Limit: timeout})
	op, err := operator.New(operator.Options{Region: region, Objects: objects{p}, Lease: w.lease, Timeout: timeout, Gate: gate, Clock: clock{p}, Actions: w.traits.ActionsOf, Log: w.logOf(name)})
	if err != nil {
		w.complain("%v", err)
	}
	p.op = op
	e := cluster.Election{Client: leases{p: p}, Namespace: "kube-system", Name: "enipool-operator", Identity: name, Duration: leaseLasts, Log: slog.New(slog.DiscardHandler)}
	go func() {
		defer close(p.ended)
		_ = e.Run(ctx, func(ctx context.Context, lead operator.Lead) error {
			w.note("%s leads", name)
			err := op.Run(ctx, p.lead(lead))
			w.note("%s leads no more: %v", name, err)
			return err
		})
	}()
	return p
}

// pass waits while the process is stopped. It is an error when it was killed.
func (p *process) pass() error {
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	return nil
}

// effect is called before and after all that the process changes.
func (p *process) effect(what string, after bool) error {
	p.mu.Lock()
	t := p.trap
	if t == nil || t.after != after || t.at != "" && t.at != what {
		t = nil
	} else if t.skip--; t.skip >= 0 {
		t = nil
	} else {
		p.trap = nil
	}
	p.mu.Unlock()
	if t != nil {
		p.w.note("%s is met at %s, after it: %v", p.name, what, after)
		t.do()
	}
	return p.pass()
}

func (p *process) setTrap(t *trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = t
}

// stopFor stops the process for a while. It does not wait for that.
func (p *process) stopFor(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil || p.dead {
		return
	}
	c := make(chan struct{})
	p.frozen = c
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.frozen == c {
			p.frozen = nil
			close(c)
		}
	})
}

// kill kills the process. It does not wait for its end.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return
	}
	p.dead = true
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
	close(p.killed)
	p.cancel()
}

// setClock sets the process's time of day.
func (p *process) setClock(jump time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jump = jump
}

// clock is the operator's in a process.
type clock struct{ p *process }

// Now implements operator.Clock.
func (c clock) Now() time.Time {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.p.w.reading(time.Now(), c.p.jump)
}

// Sleep implements operator.Clock.
func (c clock) Sleep(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	operator.Wall{}.Sleep(ctx, wake, d)
	_ = c.p.pass()
}

// lead leads by times with monotonic readings, as the clock has them.
func (p *process) lead(lead operator.Lead) operator.Lead {
	renewed := lead.Renewed
	lead.Acquired = p.w.reading(lead.Acquired, 0)
	lead.Renewed = func() time.Time { return p.w.reading(renewed(), 0) }
	return lead
}

// reading returns a time with a monotonic reading and a time of day that was set by so much. Virtual time has no monotonic readings, and
// package time no way to make them.
func (w *world) reading(t time.Time, jump time.Duration) (r time.Time) {
	const hasMonotonic, since1885 = 1 << 63, 2682288000 // seconds before 1970
	type parts struct {
		wall uint64
		ext  int64
	}
	day := t.Add(jump)
	p := (*parts)(unsafe.Pointer(&r))
	p.wall = hasMonotonic | uint64(day.Unix()+since1885)<<30 | uint64(day.Nanosecond())
	p.ext = int64(t.Sub(w.began) + time.Hour)
	return r
}

// calls are the requests of a process to the cloud.
type calls struct {
	driver.Driver
	p *process
}

// send sends a request. One that was about to be sent when the process was stopped is sent when it goes on, whatever its time.
func send[T any](ctx context.Context, c calls, action string, f func(context.Context) (T, error)) (T, error) {
	var none T
	before := ctx.Err()
	if err := c.p.effect(action, false); err != nil {
		return none, err
	}
	if wait := c.p.w.throttle(action); wait > 0 {
		return none, &driver.Error{Kind: cloud.ErrThrottled, Detail: "the account's rate is low", RetryAfter: wait}
	}
	late := before == nil && ctx.Err() != nil
	if late {
		ctx = context.WithoutCancel(ctx)
	}
	v, err := f(ctx)
	c.p.w.traced("%s: %s: %+v, %v", c.p.name, action, v, err)
	if gone := c.p.effect(action, true); gone != nil {
		return none, gone
	}
	if late {
		return none, &driver.Error{Kind: cloud.ErrUnknown, Detail: "no answer came in time"}
	}
	return v, err
}

func change1(ctx context.Context, c calls, action string, f func(context.Context) error) error {
	_, err := send(ctx, c, action, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// Self implements driver.Driver: the process is on no node.
func (calls) Self(context.Context) (driver.Self, error) {
	return driver.Self{Instance: "i-0", VPC: "vpc"}, nil
}

// explain returns what the leader tells of its nodes, and of itself.
func (w *world) explain() string {
	p := w.leader()
	all, err := p.op.All(w.ctx)
	report, _ := p.op.Report(w.ctx)
	text, _ := json.MarshalIndent(map[string]any{"nodes": all, "report": report}, "", " ")
	return fmt.Sprintf("%s, healthy: %v, %v\n%s", p.name, p.op.Healthy(), err, text)
}
