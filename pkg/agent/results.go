package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// collect takes in the results of calls that have ended.
func (a *Agent) collect(now time.Duration) {
	for {
		select {
		case r := <-a.done:
			a.applyResult(r, now)
		default:
			return
		}
	}
}

// applyResult takes in what came of a call. What the class and the object failed before is over once
// one of their calls works.
func (a *Agent) applyResult(r result, now time.Duration) {
	delete(a.calls, r.key)
	if r.op == writesSpec {
		a.supply.noteWritten(r, now)
		return
	}
	a.Events.Call(r.op, string(cloud.OutcomeOf(r.err)), r.took)
	if r.err == nil {
		a.tellWorks(r, now)
		a.backoffs.clear(of(classOf(r.op)))
		a.backoffs.clear(r.scope())
	}
	switch r.op {
	case "Describe":
		if r.err == nil {
			before := a.view
			a.applyDescribe(r.described)
			if a.conf.DescribeQuiet() > 0 {
				a.period.answered(a.isQuiet(r, before))
				if !a.urgent {
					a.describeAt = now + a.describeEvery(now)
				}
			}
		} else {
			a.sawSome(r.described)
		}
	case "AssignAddresses":
		a.noteRoomTaken(r.id, r.addrs, 1)
		a.gaveAll(r, now)
		a.forgetReleasesOf(r.id, r.addrs)
		if len(r.addrs) > 0 {
			a.offerTakenBack(r.subnet)
		}
		a.renew()
		if r.err == nil && len(r.addrs) < r.count {
			a.lookSoon(now) // the subnet has fewer than the last describe showed
		}
	case "CreateInterface":
		a.applyCreate(r, now)
	case "UnassignAddresses":
		a.applyUnassign(r, now)
	case "DeleteInterface":
		a.applyDelete(r, now)
	}
	if r.err != nil {
		a.applyFailure(r, now)
	}
}

// gaveAll forgets that the subnet of a call that got all it asked for was full. What another
// call was told since is left: the two of them were under way together.
func (a *Agent) gaveAll(r result, now time.Duration) {
	if s := fullSubnet(r.subnet); r.err == nil && len(r.addrs) >= r.count && a.backoffs.mayRetry(s, now) {
		a.backoffs.clear(s)
	}
}

// applyDescribe takes in a describe.
func (a *Agent) applyDescribe(d described) {
	at := d.start
	if d.partial {
		d.subnets, at = a.view.subnets, a.view.subnetsAt
	}
	none := d.partial && (!a.view.known || a.view.noSubnets)
	a.view = view{known: true, start: d.start, limits: d.limits, subnets: d.subnets, subnetsAt: at, noSubnets: none}
	a.renew()
	a.mem.forget(d.start, a.conf.Settle)
	a.doubts.leaks = a.doubts.leaks.still(a.view.leaked(&a.mem), d.start)
	a.compareDue = true
	a.unsaved = a.unsaved || a.conf.DescribeQuiet() > 0 && d.start-a.mem.Seen >= seenKept
	a.forgetAdoptions()
	a.clearUnheard(d)
	a.clearGiven(d)
	if !d.partial {
		a.noteEmptySubnets(d)
	}
	clear(a.said)
}

// sawSome takes in what a describe that failed has shown all the same. The subnets of an earlier one will
// do: nobody is to get addresses that the cloud took away because nothing tells how many are left. Without an
// earlier one pods get what the ENIs have.
func (a *Agent) sawSome(d described) {
	if d.limits != (eni.Limits{}) {
		a.view.limits = d.limits // the next look need not ask for them
	}
	if d.sees {
		a.applyDescribe(d)
	}
}

// forgetAdoptions ends the failures to take in ENIs that are not there any more: nobody tries again.
func (a *Agent) forgetAdoptions() {
	for s := range a.backoffs {
		if _, shown := a.view.eni(s.id); s.class == adopts && s.kind == anENI && !shown {
			a.backoffs.clear(s)
		}
	}
}

// renew takes over what the Cloud knows of the ENIs.
func (a *Agent) renew() {
	a.view = a.view.renewed(a.Cloud.Known(), a.isOn)
}

// forgetReleasesOf ends the release of addresses that the ENI got again. Of one that another ENI has, as far
// as its own calls have told, the node cache still has the release from there.
func (a *Agent) forgetReleasesOf(id string, addrs []netip.Addr) {
	for _, addr := range addrs {
		elsewhere := slices.ContainsFunc(a.view.enis, func(nic cloud.Interface) bool {
			return nic.ID != id && slices.Contains(nic.Addresses, addr)
		})
		if !elsewhere {
			delete(a.mem.Begun, addr)
		}
	}
}

// noteRoomTaken notes that the addresses take room of their ENI's subnet (sign 1), or leave it (-1).
func (a *Agent) noteRoomTaken(id string, addrs []netip.Addr, sign int) {
	if nic, known := a.view.eni(id); known {
		a.view.spend(nic.Subnet, sign*a.view.price(addrs))
	}
}

// clearUnheard ends the doubt about deletions that an earlier agent asked for, or whose outcome is not
// known: of the ones that the cloud has heard of, late ones too, ENIs that are still attached show nothing.
func (a *Agent) clearUnheard(d described) {
	for _, nic := range d.enis {
		if a.doubts.unheard.has(nic.ID) && nic.Index >= 0 && d.start >= a.heardBy(nic.ID) {
			a.mem.Leaving[nic.ID] = false
			delete(a.doubts.unheard, nic.ID)
		}
	}
}

// clearGiven does the same for releases: what ENIs still have nobody has taken, and pods may have it while
// the cloud refuses to take it. What a call under way is about it may take any moment.
func (a *Agent) clearGiven(d described) {
	there := map[netip.Addr]bool{}
	for _, nic := range d.enis {
		if nic.Index < 0 || a.isOn(nic.ID) {
			continue
		}
		for _, addr := range nic.Addresses {
			there[addr] = true
		}
	}
	for addr, since := range a.doubts.given {
		switch {
		case !a.mem.Begun[addr]:
		case there[addr] && d.start >= a.showsBy(since):
			delete(a.mem.Begun, addr)
			a.unsaved = true
		default:
			continue
		}
		delete(a.doubts.given, addr)
	}
}

// heardBy is when a describe shows what an earlier deletion did.
func (a *Agent) heardBy(id string) time.Duration { return a.showsBy(a.doubts.unheard[id]) }

// showsBy is when a describe shows what calls did that may have been under way then.
func (a *Agent) showsBy(then time.Duration) time.Duration {
	return then + a.conf.Cloud.Timeout + a.conf.Settle
}

// applyCreate ends the intent to have an ENI, unless it may still come.
func (a *Agent) applyCreate(r result, now time.Duration) {
	if r.err == nil {
		a.forgetReleasesOf(r.nic.ID, r.nic.Addresses)
		a.offerTakenBack(r.subnet)
		a.renew()
		a.backoffs.clear(newENIsIn(""))
		a.backoffs.clear(newENIsIn(r.subnet))
	}
	if r.err == nil || cloud.MeaningOf(r.err).Again == cloud.Final || a.isBarren(r, now) {
		a.endIntent(r.create.Token)
	}
	if r.err != nil && !nothingHappened(r.err) {
		for i := range a.mem.Creates {
			if c := &a.mem.Creates[i]; c.Token == r.create.Token {
				c.unheard = false
			}
		}
	}
}

// giveUpAfter is how long an intent is held on to that the cloud is unavailable for, and how long a release
// of an unknown outcome may still have its effect: longer than any call's effect comes late.
const giveUpAfter = 5 * time.Minute

// isBarren tells whether the cloud has been unavailable for an intent for so long that it is
// given up: what is the matter may be the subnet. It has to have shown meanwhile that nothing
// came of it; a cloud that shows nothing is down for the next intent, too.
func (a *Agent) isBarren(r result, now time.Duration) bool {
	switch cloud.MeaningOf(r.err).Pauses {
	case cloud.ItsCalls: // which says nothing of the intent
		return false
	case cloud.ItsCallsAndObject:
	default:
		delete(a.doubts.barren, r.create.Token)
		return false
	}
	first := a.doubts.barren.of(r.create.Token, now)
	a.doubts.barren[r.create.Token] = first
	if now-first < giveUpAfter {
		return false
	}
	if a.view.start < first+giveUpAfter {
		a.lookSoon(now)
		return false
	}
	return !slices.ContainsFunc(a.view.enis, func(nic cloud.Interface) bool { return nic.Token == r.create.Token })
}

// applyUnassign notes what an unassign took away.
func (a *Agent) applyUnassign(r result, now time.Duration) {
	if nic, known := a.view.eni(r.id); known {
		a.offerArrived(nic.Subnet, now)
	}
	if r.err == nil {
		a.noteRoomTaken(r.id, r.call.addrs, -1)
		for _, addr := range r.call.addrs {
			delete(a.doubts.given, addr) // it is gone, whatever describes still show
		}
		a.renew()
		a.unsaved = true
		return
	}
	if !nothingHappened(r.err) {
		for _, addr := range r.call.addrs {
			a.doubts.given[addr] = now + giveUpAfter
		}
		return
	}
	for _, addr := range r.fresh {
		delete(a.mem.Begun, addr) // it can be taken back again
	}
	for _, addr := range r.call.addrs {
		if since, doubted := a.doubts.given[addr]; doubted && a.mem.Begun[addr] {
			a.lookForHeard(max(now, a.showsBy(since)))
		}
	}
}

// applyDelete notes what came of a deletion.
func (a *Agent) applyDelete(r result, now time.Duration) {
	switch {
	case r.err == nil:
		delete(a.mem.Leaving, r.id)
		delete(a.doubts.unheard, r.id)
		if nic, known := a.view.eni(r.id); known {
			a.offerArrived(nic.Subnet, now)
		}
		a.renew()
	case !nothingHappened(r.err):
		a.mem.Leaving[r.id], a.doubts.unheard[r.id] = true, now+giveUpAfter
	case !a.mem.Leaving[r.id]:
		_ = a.keepENI(r.id) // the tick's own write of the memory tells why it fails
	default:
		if a.doubts.unheard.has(r.id) {
			a.lookForHeard(max(now, a.heardBy(r.id)))
		}
	}
	a.unsaved = true
}

// keepENI ends the intent to delete an ENI that the cloud has refused to delete, or was not asked to. As
// the intent itself that is written down first: the next tick may make the ENI's addresses free
// in the node cache before it writes the memory, and an agent that starts from a memory
// with the intent takes the ENI from under the pods that have them. While it can't be
// written the ENI goes on being deleted.
func (a *Agent) keepENI(id string) error {
	delete(a.mem.Leaving, id)
	if err := a.remember(); err != nil {
		a.mem.Leaving[id] = false
		return err
	}
	a.unsynced = true // the kernel needs it again
	return nil
}
