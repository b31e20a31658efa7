package agent

import (
	"errors"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// How long to leave things alone at most after a failure: after the first, and ever. On average
// it is half of that.
var (
	delayCloud     = delay{2 * time.Second, 2 * time.Minute}   // not reached
	delayForbidden = delay{30 * time.Second, 5 * time.Minute}  // needs a person
	delaySubnet    = delay{10 * time.Second, 5 * time.Minute}  // others may give addresses back
	delayLimit     = delay{30 * time.Second, 10 * time.Minute} // quotas change rarely
	delayRetry     = delay{2 * time.Second, 2 * time.Minute}   // the rest
)

// applyFailure decides what a failure means for later calls.
func (a *Agent) applyFailure(r result, now time.Duration) {
	a.noteError(r.err)
	if r.urgent {
		a.lookSoon(now)
	} else if r.op == "Describe" && a.conf.DescribeQuiet() > 0 { // what was seen last is as old as it may be already
		a.lookBy(now + a.describeAfter(period{}, now))
	}
	about, f := r.blamed(), failure{delay: delayRetry, err: r.err}
	if detail, is := errors.AsType[*cloud.Error](r.err); is {
		f.atLeast = min(detail.RetryAfter, mostRetry) // what stands before the cloud may wish for an hour
	}
	switch cloud.Kind(r.err) {
	case cloud.ErrThrottled:
		about = of(about.class)
		f.delay = a.throttled(about.class, a.backoffs[about].times, now, a.Rand.Float64())
		if about.class == looks && a.conf.DescribeQuiet() > 0 {
			a.period.refused(now)
		}
	case cloud.ErrUnavailable:
		about, f.delay, f.by = of(about.class), delayCloud, r.key
	case cloud.ErrForbidden:
		f.delay = delayForbidden
	case cloud.ErrSubnetFull:
		f.delay = delaySubnet
		if r.op != "CreateInterface" || slices.Contains(a.conf.Settings.Families, eni.IPv4) { // else it lacks one for the ENI itself
			about = fullSubnet(r.subnet)
			a.noteRefusal(r.subnet, now)
		}
	case cloud.ErrLimit:
		f.delay = delayLimit
		if r.op == "CreateInterface" {
			about = newENIsIn("")
		}
	case cloud.ErrNotFound:
		a.lookSoon(now)
		if r.op == "CreateInterface" {
			f.delay = delayLimit
		}
	case cloud.ErrUnknown:
		about = r.scope()
		// What came of it shows in a describe; a late effect in a later one.
		a.lookSoon(now)
		a.lookAgain(now + a.conf.Settle)
		if r.op == "AssignAddresses" || r.op == "UnassignAddresses" {
			// An assign must not be repeated, and what an unassign takes must not
			// have come back meanwhile.
			a.mem.Unsure[r.id] = now
			a.unsaved = true
		}
	}
	a.backoffs.fail(about, f, now, a.Rand)
	if about != r.blamed() && cloud.Kind(r.err) == cloud.ErrUnavailable {
		a.leaveObjectAlone(r, f, now)
	}
	a.Log.Warn("cloud call failed", "call", r.call.String(), "error", r.err,
		"again in", (a.backoffs.lastOf(about, r.blamed(), r.scope()) - now).Round(time.Millisecond))
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
func hint(err error) string {
	switch cloud.Kind(err) {
	case cloud.ErrUnavailable:
		return "; are cloud.region and cloud.endpoint right? `enipoolctl cloud check` on the node says what to do"
	case cloud.ErrForbidden, cloud.ErrNotFound:
		return "; `enipoolctl cloud check` on the node says what to do"
	case cloud.ErrLimit:
		return "; raise the quota that it names, or take a larger instance"
	}
	return ""
}

// nothingHappened tells whether a failed call surely had no effect.
func nothingHappened(err error) bool {
	switch cloud.Kind(err) {
	case cloud.ErrThrottled, cloud.ErrUnavailable, cloud.ErrForbidden, cloud.ErrNotFound:
		return true
	}
	return false
}
