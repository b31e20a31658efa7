package agent

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// How long to leave things alone after a failure: the first time, and at most.
var (
	delayCloud     = delay{time.Second, time.Minute}           // throttled or not reached
	delayForbidden = delay{30 * time.Second, 5 * time.Minute}  // needs a person
	delaySubnet    = delay{10 * time.Second, 5 * time.Minute}  // others may give addresses back
	delayLimit     = delay{30 * time.Second, 10 * time.Minute} // quotas change rarely
	delayRetry     = delay{time.Second, time.Minute}           // the rest
)

// collect takes in the results of calls that have ended.
func (a *Agent) collect(now time.Duration) {
	for {
		select {
		case r := <-a.done:
			a.take(r, now)
		default:
			return
		}
	}
}

func (a *Agent) take(r result, now time.Duration) {
	delete(a.calls, r.key)
	a.Events.Call(r.op, outcome(r.err), r.took)
	if r.err == nil {
		a.holds.clear("cloud")
		a.holds.clear(r.key)
	}
	switch r.op {
	case "Describe":
		if r.err == nil {
			a.seen(r.described)
		} else if r.limits != (eni.Limits{}) {
			a.view.limits = r.limits // the next look need not ask for them
		}
	case "AssignAddresses":
		a.came(r.id, r.addrs, now)
		a.view.assigned(r.id, r.addrs)
		if r.err == nil && len(r.addrs) < r.count {
			a.describeAt = now // the subnet has less than was thought
		}
	case "CreateInterface":
		a.made(r, now)
	case "UnassignAddresses":
		a.released(r, now)
	case "DeleteInterface":
		a.left(r, now)
	}
	if r.err != nil {
		a.failed(r, now)
	}
}

// seen takes in a describe.
func (a *Agent) seen(d described) {
	a.view = a.view.renew(d, &a.mem, a.conf.Settle)
	a.mem.forget(d.start, a.conf.Settle)
	leaks := map[string]time.Duration{}
	for _, nic := range a.view.enis {
		if nic.Index < 0 && nic.Ours && !a.making(nic.Token) {
			leaks[nic.ID] = since(a.leaks, nic.ID, d.start)
		}
	}
	a.leaks, a.sightDue = leaks, true
	a.clearUnheard(d)
	a.noteEmptySubnets(d)
	clear(a.said)
}

// came notes addresses that came to an ENI. One that another ENI of the node had is still on
// its way back from there in the node cache, and can't be taken back.
func (a *Agent) came(id string, addrs []netip.Addr, now time.Duration) {
	for _, addr := range addrs {
		a.mem.added[addr] = now
		delete(a.mem.Gone, addr)
	}
	for _, addr := range without(addrs, a.view.elsewhere(id, addrs)) {
		delete(a.mem.Begun, addr)
	}
}

// clearUnheard ends the doubt about deletions that an earlier agent asked for: of the ones
// that the cloud has heard of, late ones too, ENIs that are still attached show nothing.
func (a *Agent) clearUnheard(d described) {
	for _, nic := range d.enis {
		if _, doubted := a.unheard[nic.ID]; doubted && nic.Index >= 0 && d.start >= a.heardBy(nic.ID) {
			a.mem.Leaving[nic.ID] = false
			delete(a.unheard, nic.ID)
		}
	}
}

// heardBy is when a describe shows what an earlier agent's deletion did.
func (a *Agent) heardBy(id string) time.Duration {
	return a.unheard[id] + a.conf.Cloud.Timeout + a.conf.Settle
}

// made ends the intent to have an ENI, unless it may still come.
func (a *Agent) made(r result, now time.Duration) {
	if r.err == nil {
		a.came(r.nic.ID, r.nic.Addresses, now)
		a.view.put(r.nic)
		a.mem.addedENI[r.nic.ID] = now
		a.holds.clear("create")
	}
	if r.err == nil || errors.Is(r.err, cloud.ErrSubnetFull) || errors.Is(r.err, cloud.ErrLimit) || errors.Is(r.err, cloud.ErrNotFound) || errors.Is(r.err, cloud.ErrForbidden) {
		a.mem.Creates = slices.DeleteFunc(a.mem.Creates, func(c create) bool { return c.Token == r.create.Token })
		a.unsaved = true
	}
}

// released notes what an unassign took away.
func (a *Agent) released(r result, now time.Duration) {
	if r.err == nil {
		left := without(r.call.addrs, a.view.elsewhere(r.id, r.call.addrs)) // the cloud may have given some to another ENI
		for _, addr := range left {
			a.mem.Gone[addr] = now
			delete(a.mem.added, addr)
		}
		a.view.unassigned(r.id, left)
		a.unsaved = true
		return
	}
	if nothingHappened(r.err) {
		for _, addr := range r.fresh {
			delete(a.mem.Begun, addr) // it can be taken back again
		}
	}
}

// left notes what came of a deletion.
func (a *Agent) left(r result, now time.Duration) {
	switch {
	case r.err == nil:
		delete(a.mem.Leaving, r.id)
		delete(a.unheard, r.id)
		a.deleted(r.id, now)
	case !nothingHappened(r.err):
		a.mem.Leaving[r.id] = true
		delete(a.unheard, r.id)
	case !a.mem.Leaving[r.id]:
		a.keepENI(r.id)
	default:
		if _, doubted := a.unheard[r.id]; doubted {
			a.againAt = max(now, a.heardBy(r.id))
		}
	}
	a.unsaved = true
}

// keepENI ends the intent to delete an ENI that the cloud has refused to delete. As the
// intent itself that is written down first: the next tick may make the ENI's addresses free
// in the node cache before it writes the memory, and an agent that starts from a memory
// with the intent takes the ENI from under the pods that have them. While it can't be
// written the ENI goes on being deleted; the tick's own write of the memory tells why.
func (a *Agent) keepENI(id string) {
	delete(a.mem.Leaving, id)
	if a.remember() != nil {
		a.mem.Leaving[id] = false
		return
	}
	a.unsynced = true // the kernel needs it again
}

// deleted notes that an ENI is gone with all it carried.
func (a *Agent) deleted(id string, now time.Duration) {
	if nic, ok := a.view.eni(id); ok {
		for _, addr := range nic.Addresses {
			a.mem.Gone[addr] = now
			delete(a.mem.added, addr)
		}
	}
	a.mem.GoneENI[id] = now
	delete(a.mem.addedENI, id)
	a.view.drop(id)
	a.unsaved = true
}

// failed decides what a failure means for later calls.
func (a *Agent) failed(r result, now time.Duration) {
	a.fault(r.err)
	key, wait := r.key, delayRetry
	switch cloud.Kind(r.err) {
	case cloud.ErrThrottled, cloud.ErrUnavailable:
		key, wait = "cloud", delayCloud
	case cloud.ErrForbidden:
		key, wait = "cloud", delayForbidden
		// What is refused of one ENI, such as a part of a block, may be granted for others.
		if r.op == "DeleteInterface" || r.op == "UnassignAddresses" {
			key = r.key
		}
	case cloud.ErrSubnetFull:
		key, wait = "subnet "+r.subnet, delaySubnet
		a.noteRefusal(r.subnet, now)
	case cloud.ErrLimit:
		wait = delayLimit
		if r.op == "CreateInterface" {
			key = "create"
		}
	case cloud.ErrNotFound:
		a.describeAt = now
		if r.op == "CreateInterface" {
			key, wait = "subnet "+r.subnet, delayLimit
		}
	case cloud.ErrUnknown:
		// What came of it shows in a describe; a late effect in a later one.
		a.describeAt, a.againAt = now, now+a.conf.Settle
		if r.op == "AssignAddresses" || r.op == "UnassignAddresses" {
			// An assign must not be repeated, and what an unassign takes must not
			// have come back meanwhile.
			a.mem.Unsure[r.id] = now
			a.unsaved = true
		}
	}
	var detail *cloud.Error
	var atLeast time.Duration
	if errors.As(r.err, &detail) {
		atLeast = detail.RetryAfter
	}
	if about := aboutOne(r); about != "" && key == "cloud" && !errors.Is(r.err, cloud.ErrThrottled) {
		a.holds.fail(about, delay{2 * wait.first, 2 * wait.most}, atLeast, now, a.Rand)
		a.holds.because(about, r.err)
	}
	a.holds.fail(key, wait, atLeast, now, a.Rand)
	a.holds.because(key, r.err)
	a.Log.Warn("cloud call failed", "call", r.call.String(), "error", r.err,
		"again in", (a.holds[key].until - now).Round(time.Millisecond))
}

// aboutOne is what a failed call was about alone. The cause may be there: it is left alone for
// longer than the cloud is, so that the node goes on with its other ENIs and subnets.
func aboutOne(r result) string {
	switch r.op {
	case "AssignAddresses", "UnassignAddresses":
		return eniKey(r.id)
	case "CreateInterface":
		return "subnet " + r.subnet
	}
	return ""
}

// hint says what a person can do about a failure.
func hint(err error) string {
	switch cloud.Kind(err) {
	case cloud.ErrUnavailable:
		return "; is the cloud up, and cloud.endpoint right?"
	case cloud.ErrForbidden:
		return "; look at the credentials and their permissions"
	case cloud.ErrNotFound:
		return "; is the key node the cloud's name of this node?"
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

// outcome is a word for metrics.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	kind := cloud.Kind(err).Error()
	return strings.ReplaceAll(kind, " ", "-")
}
