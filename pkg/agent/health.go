package agent

import (
	"time"

	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/pool"
)

// judge makes of what the tick found what the cluster is to know, and tells it. causes are ranked.
func (a *Agent) judge(now time.Duration, causes []pool.Cause) {
	c, was := a.conf.Kubernetes.Health, *a.mem.Health
	next, r := health.Judge(c, was, now, a.observe(now, c.Grace, causes))
	*a.mem.Health = next
	a.unsaved = a.unsaved || next.Faulty != was.Faulty || next.Capacity != was.Capacity
	if next.Faulty != was.Faulty {
		a.noteFaultTurn(r)
	}
	s := &a.status
	switch {
	case !r.Faulty || next.Well == 0:
		s.FaultOver = time.Time{}
	case s.FaultOver.IsZero():
		s.FaultOver = a.Wall().Add(next.Well - now)
	}
	told := s.Health.Reason
	switch s.Health = r; {
	case !next.Known:
		s.Health = health.Report{Capacity: -1} // not even whether there are addresses
		return
	case !r.Faulty:
		s.FaultSince = time.Time{}
	case s.FaultSince.IsZero() || told != r.Reason: // it may be an earlier agent's
		s.FaultSince = a.Wall().Add(next.ReasonSince() - now)
	}
	if a.Report != nil {
		a.Report(r)
	}
	if a.Warn != nil {
		a.warn(now, causes)
	}
}

// noteFaultTurn logs a fault that came or went, and writes it down: a restart must not
// forget it, or the cluster would hear that all is well.
func (a *Agent) noteFaultTurn(r health.Report) {
	if r.Faulty {
		a.Log.Warn("node can't give its pods addresses", "reason", r.Reason, "message", r.Message)
	} else {
		a.Log.Info("node gives its pods addresses again")
	}
	if err := a.save(); err != nil {
		a.noteError(err)
		a.Events.Error("memory")
	}
}

// observe is what the tick found about addresses.
func (a *Agent) observe(now, grace time.Duration, causes []pool.Cause) health.Observation {
	o := health.Observation{Usable: a.planned && a.cacheErr == nil, Most: -1}
	if len(causes) > 0 {
		o.Cause = asFault(causes[0])
	}
	if !o.Usable {
		return o
	}
	d := a.demand
	o.Have, o.Used, o.Free, o.Cooling = d.owned, d.used, d.free, d.assigned-d.used
	o.Demand, o.Unserved, o.Target = d.total, d.unserved(), max(a.decision.Target, d.total)
	if o.Unserved > o.Free && o.Cooling > 0 {
		o.Soon = restedWithin(a.cached, now, grace)
	}
	if o.Stuck = len(a.causes) > 0; a.view.known {
		o.Most = a.status.Most
	} else {
		o.Stuck = len(a.reasons(now).failureCauses()) > 0
	}
	return o
}
