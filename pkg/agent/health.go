package agent

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/pool"
)

// judge makes of what the tick found what the cluster is to know, and tells it.
func (a *Agent) judge(now time.Duration) {
	c, was := a.conf.Kubernetes.Health, *a.mem.Health
	next, r := health.Judge(c, was, now, a.observe(now, c.Grace))
	*a.mem.Health = next
	a.unsaved = a.unsaved || next.Faulty != was.Faulty || next.Capacity != was.Capacity
	if next.Faulty != was.Faulty {
		a.turned(r)
	}
	s := &a.status
	switch s.Health = r; {
	case !next.Known:
		s.Health = health.Report{Capacity: -1} // not even whether there are addresses
		return
	case !r.Faulty:
		s.FaultSince = time.Time{}
	case s.FaultSince.IsZero(): // it may be an earlier agent's
		s.FaultSince = a.Wall().Add(next.Since - now)
	}
	if a.Report != nil {
		a.Report(r)
	}
	if a.Warn != nil {
		a.warn(now)
	}
}

// turned logs a fault that came or went, and writes it down: a restart must not
// forget it, or the cluster would hear that all is well.
func (a *Agent) turned(r health.Report) {
	if r.Faulty {
		a.Log.Warn("node can't give its pods addresses", "reason", r.Reason, "message", r.Message)
	} else {
		a.Log.Info("node gives its pods addresses again")
	}
	if err := a.save(); err != nil {
		a.fault(err)
		a.Events.Error("memory")
	}
}

// observe is what the tick found about addresses.
func (a *Agent) observe(now, grace time.Duration) health.Observation {
	o := health.Observation{Usable: a.planned && a.bookErr == nil, Most: -1}
	if !o.Usable {
		what := a.cacheProblem()
		if s, refused := a.reasons(now).refusal(); refused && !a.view.known { // who reads the condition has no log
			what += ", and the cloud does not say what to build it from: " + a.backoffs[s].err.Error()
		}
		o.Causes = inHealth(append(a.reasons(now).troubles(), pool.Cause{Kind: pool.CacheUnusable, Words: what}))
		return o
	}
	d := a.demand
	o.Have, o.Used, o.Free, o.Resting = d.owned, d.used, d.free, d.assigned-d.used
	o.Wanted, o.Unserved, o.Target = d.wanted, d.unserved(), max(a.decision.Target, d.wanted)
	if o.Unserved > o.Free && o.Resting > 0 {
		o.Soon = restedWithin(a.book, now, grace)
	}
	if o.Causes = inHealth(a.causes); a.view.known {
		o.Most = a.status.Most
	} else {
		o.Causes = inHealth(a.reasons(now).troubles())
	}
	return o
}

// inHealth returns causes as what the cluster is told.
func inHealth(list []pool.Cause) (told []health.Cause) {
	for _, c := range pool.Rank(slices.Clone(list)) {
		told = append(told, health.Cause{Reason: c.Kind.Reason(), What: c.Words})
	}
	return told
}
