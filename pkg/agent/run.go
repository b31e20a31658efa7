package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// Run lives by the agent's clock until that says that it is to end: it does what each event asks for, and
// waits for the next. It returns after the calls under way have ended.
func (a *Agent) Run(ctx context.Context) error {
	t := newTurns(a)
	for e := (Event{Kind: Due}); e.Kind != Stopped; e = a.Clock.Next(ctx, t.waitUntil()) {
		t.handle(ctx, e)
	}
	return a.stop(context.WithoutCancel(ctx))
}

// patience is how long a stop waits for calls under way. What has not ended then
// the next agent finds by its intent, or by looking.
const patience = 10 * time.Second

// stop waits for what is under way, takes its results in and writes the memory
// down. Nothing is torn down: pods go on with what the node has.
func (a *Agent) stop(ctx context.Context) error {
	for end := a.Now() + patience; len(a.calls) > 0 && a.Now() < end; {
		a.Clock.Next(ctx, end)
		a.collect(a.Now())
	}
	now := a.Now()
	var errs []error
	if cached, err := a.read(ctx); err == nil && a.view.known && !a.view.operated { // else the next one adopts it
		_, err = a.learn(ctx, cached, now)
		errs = append(errs, err)
	}
	errs = append(errs, a.remember())
	a.report(now)
	a.Log.Info("stopped")
	return errors.Join(errs...)
}

// Once ticks until nothing is left to do and returns what is still wrong then.
func (a *Agent) Once(ctx context.Context) error {
	a.describeAt = 0 // somebody waits for it
	for {
		before := a.steps
		after := min(a.Tick(ctx), time.Second)
		idle := len(a.calls) == 0 && a.steps == before && a.view.known && !a.awaitsLate() && !a.hungry
		stuck := len(a.calls) == 0 && a.steps == before && len(a.backoffs) > 0
		if idle || stuck {
			err := a.stop(ctx)
			if p := a.status.Problem; p != "" {
				err = errors.Join(err, errors.New(p))
			}
			return err
		}
		if e := a.Clock.Next(ctx, a.Now()+after); e.Kind == Stopped {
			return errors.Join(context.Cause(ctx), a.stop(context.WithoutCancel(ctx)))
		}
	}
}

// Plan looks at everything, changes nothing, and returns what the next ticks
// would do and why.
func (a *Agent) Plan(ctx context.Context) ([]string, error) {
	now := a.Now()
	d, err := describeCloud(ctx, a.Cloud, eni.Limits{}, true)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, hint(err))
	}
	d.start = now
	a.applyDescribe(d)
	cached, lines, err := a.cacheToBe(ctx, now)
	if err != nil {
		return nil, err
	}
	a.assumeBegun(cached, now)
	a.noteDoubts(cached)
	links, err := a.linksFor(ctx, cached)
	if err != nil {
		return nil, err
	}
	if err := a.outsideVPC(cached.ENIs); err != "" {
		return nil, errors.New(err)
	}
	cached, changes := a.previewSettings(cached)
	lines = append(lines, changes...)
	lines = append(lines, a.belief(now).compare(cached, links, now).lines()...)
	steps, err := a.planSteps(cached, now)
	for _, s := range steps {
		lines = append(lines, fmt.Sprintf("%s %s: %s", s.Do, subject(s), s.Reason))
	}
	lines = append(lines, fmt.Sprintf("demand %d, need %d, target %d (%s), owned %d, at most %d", a.demand.total, a.decision.Need, a.decision.Target, a.decision.Reason, a.demand.owned, a.status.Most))
	if a.status.Most == 0 {
		lines = append(lines, a.view.noRoom(a.conf.Settings.Families))
	}
	return append(lines, pool.Texts(a.targetCauses)...), err
}

// cacheToBe returns the cache, or the one that would be built, and says so.
func (a *Agent) cacheToBe(ctx context.Context, now time.Duration) (*ipam.State, []string, error) {
	cached, err := a.read(ctx)
	if err == nil && len(cached.Damaged) == 0 || err != nil && !a.Unusable(err) {
		return cached, nil, err
	}
	why := a.whyUnusable(cached, err)
	sv, err := a.readBasis(ctx, now)
	if err != nil {
		return nil, nil, err
	}
	next, err := a.merge(sv, cached, now)
	if err != nil {
		return nil, nil, err
	}
	return next, []string{fmt.Sprintf("build node cache: %d ENIs, %d addresses: %s", len(next.ENIs), len(next.Addresses), why)}, nil
}

// subject says what a step is about.
func subject(s pool.Step) string {
	switch {
	case s.Do == pool.Create:
		return fmt.Sprintf("an ENI with %d slots in %s", s.Count, s.Subnet)
	case s.Do == pool.Assign:
		return fmt.Sprintf("%d %s addresses to %s", s.Count, s.Family, s.ENI)
	case len(s.Addrs) == 0:
		return s.ENI
	}
	return fmt.Sprintf("%s with %d addresses (%s)", s.ENI, len(s.Addrs), brief(s.Addrs))
}
