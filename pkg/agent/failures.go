package agent

import (
	"errors"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// delayRetry is how long to leave alone what the node itself failed to do.
var delayRetry = delay{2 * time.Second, 2 * time.Minute}

// applyFailure decides what a failure means for later calls, by the meaning of its kind.
func (a *Agent) applyFailure(r result, now time.Duration) {
	a.noteError(r.err)
	if r.urgent {
		a.lookSoon(now)
	} else if r.op == "Describe" && a.conf.DescribeQuiet() > 0 { // what was seen last is as old as it may be already
		a.lookBy(now + a.describeAfter(period{}, now))
	}
	means := cloud.MeaningOf(r.err)
	about, f := r.pausedBy(means.Pauses, a.conf.Settings.Families), failure{delay: r.delayOf(means), err: r.err}
	if detail, is := errors.AsType[*cloud.Error](r.err); is {
		f.atLeast = min(detail.RetryAfter, mostRetry) // what stands before the cloud may ask for an hour
	}
	switch {
	case means.Pauses == cloud.ItsCalls:
		f.delay = a.throttled(about.class, a.backoffs[about].times, now, a.Rand.Float64())
		if about.class == looks && a.conf.DescribeQuiet() > 0 {
			a.period.refused(now)
		}
	case means.Pauses == cloud.ItsCallsAndObject:
		f.by = r.key
	case about.kind == aSubnet:
		a.noteRefusal(r.subnet, now)
	}
	a.lookAfter(means.Look, r, now)
	a.backoffs.fail(about, f, now, a.Rand)
	if means.Pauses == cloud.ItsCallsAndObject && about != r.blamed() {
		a.leaveObjectAlone(r, f, now)
	}
	a.Log.Warn("cloud call failed", "call", r.call.String(), "error", r.err,
		"again in", (a.backoffs.lastOf(about, r.blamed(), r.scope()) - now).Round(time.Millisecond))
}

// pausedBy returns what is left alone after a failed call. families are those of the pods.
func (r result) pausedBy(s cloud.Scope, families []eni.Family) scope {
	creates := r.op == "CreateInterface"
	switch {
	case s == cloud.ItsCalls, s == cloud.ItsCallsAndObject:
		return of(classOf(r.op))
	case s == cloud.ItsRoom && !(creates && !slices.Contains(families, eni.IPv4)): // else it lacks one for the ENI itself
		return fullSubnet(r.subnet)
	case s == cloud.ItsQuota && creates:
		return newENIsIn("")
	case s == cloud.ItsIntent:
		return r.scope()
	}
	return r.blamed()
}

// delayOf is for how long that is left alone.
func (r result) delayOf(m cloud.Meaning) delay {
	if r.op == "CreateInterface" && m.PauseMaking != (cloud.Delay{}) {
		return delay{m.PauseMaking.First, m.PauseMaking.Most}
	}
	return delay{m.Pause.First, m.Pause.Most}
}

// lookAfter has the cloud looked at where a failure says that what is known is old, or that it
// is not known what the call has done.
func (a *Agent) lookAfter(l cloud.Look, r result, now time.Duration) {
	if l == cloud.NoLook {
		return
	}
	a.lookSoon(now)
	if l != cloud.LookTwice {
		return
	}
	// What came of it shows in a describe; a late effect in a later one.
	a.lookAgain(now + a.conf.Settle)
	if r.op == "AssignAddresses" || r.op == "UnassignAddresses" {
		// An assign must not be repeated, and what an unassign takes must not
		// have come back meanwhile.
		a.mem.Unsure[r.id] = now
		a.unsaved = true
	}
}

// blamed is what a failed call was about alone, where nothing tells more: the other objects of
// its class go on. Of an ENI that was to be made that is its subnet, for new ENIs.
func (r result) blamed() scope {
	if r.op == "CreateInterface" {
		return newENIsIn(r.subnet)
	}
	return r.scope()
}

// leaveObjectAlone leaves what a call was about alone for longer than its class is: the cause may
// be there, and the node goes on with its other ENIs and subnets.
func (a *Agent) leaveObjectAlone(r result, f failure, now time.Duration) {
	if a.mem.making(r.create.Token) { // calls that the cloud answers do not hasten this one
		a.backoffs.fail(r.scope(), f, now, a.Rand)
	}
	f.delay = delay{2 * f.first, 2 * f.most}
	f.atLeast = max(f.atLeast, a.backoffs[of(classOf(r.op))].until-now)
	a.backoffs.fail(r.blamed(), f, now, a.Rand)
}

// backOff leaves alone what the node itself failed to do.
func (a *Agent) backOff(s scope, err error, now time.Duration) {
	a.backoffs.fail(s, failure{delay: delayRetry, err: err}, now, a.Rand)
}

// hint says what a person can do about a failure that does not pass by itself.
func hint(err error) string { return cloud.MeaningOf(err).Advice }

// nothingHappened tells whether a failed call surely had no effect.
func nothingHappened(err error) bool { return cloud.MeaningOf(err).Effect == cloud.NoEffect }
