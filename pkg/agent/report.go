package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/status"
)

// noteError puts an error into the status, where it stays until the next one.
func (a *Agent) noteError(err error) {
	a.status.LastError, a.status.LastErrorTime = strings.ReplaceAll(err.Error(), "\n", "; "), a.Wall()
}

// report tells what the tick found.
func (a *Agent) report(now time.Duration) {
	s := &a.status
	s.Node, s.Mode, s.Strategy = a.conf.Node, a.conf.Pool.Mode.String(), a.conf.Pool.Scale.Strategy.String()
	s.Demand, s.PendingADDs, s.StaleAllocations = a.demand.total, a.demand.waiting, len(a.doubts.dead)
	s.Need, s.Target, s.Reason, s.Burst = a.decision.Need, a.decision.Target, string(a.decision.Reason), a.decision.Burst
	s.MaxPods, s.MaxPodsSource = a.MaxPods()
	s.ENILimit, s.ENIs, s.PerENI = a.view.limits.ENIs, 0, a.conf.Pool.SlotsPerENI(a.view.limits, a.conf.Settings.Families)
	for _, nic := range a.view.enis {
		if nic.Index >= 0 {
			s.ENIs++
		}
	}
	s.InFlight, s.Backoff, s.LeftOut = a.inFlight(), a.backoffs.lines(now), a.leftOut()
	s.Addresses = status.Addresses{}
	if a.cached != nil {
		s.Addresses = countByState(a.cached, now)
	}
	s.Unlinked, s.Unused = a.links.lines(a.cached), a.unusedLines()
	s.Prefixes = countPrefixes(a.view.limits.V4Block, a.cached).line()
	if s.Held = nil; a.cached != nil {
		s.Held = heldLines(a.cached)
	}
	wait := a.waitsFor(now)
	if a.cached != nil && wait != noWait { // as the agent before left it
		s.ENIs, s.Target = len(a.cached.ENIs), a.mem.Scale.Target
	}
	a.tellFights(now)
	a.tellOutsideVPC()
	causes := a.tellCauses(now)
	s.Ready = a.cacheErr == nil && s.Addresses.Attached > 0 && (a.view.known && !a.view.noSubnets || wait == putOff)
	s.Watched, s.Synced, s.Pods = a.demand.watched, a.demand.synced, a.demand.pods
	if a.FastPath != nil {
		fast := a.FastPath()
		s.FastPath = &fast
	}
	if a.Refused != nil {
		s.Refused = a.Refused()
	}
	a.judge(now, causes)
	s.Written = a.Wall()
	s.Due = s.Written.Add(a.conf.Resync)
	if s.Beat = 0; a.Beat != nil {
		s.Beat = status.BeatEvery
	}
	a.Events.Observe(*s)
	if err := a.Publish(*s, a.why()); err != nil {
		a.Log.Warn("status can't be published", "error", err)
		a.Events.Error("status")
	}
}

// leftOut says of what the cloud told that can't be right.
func (a *Agent) leftOut() (lines []string) {
	c, ok := a.Cloud.(cloud.Quarantiner)
	if !ok {
		return nil
	}
	for _, q := range c.Quarantined() {
		lines = append(lines, cmp.Or(q.ID, "an ENI without ID")+": "+q.Why)
	}
	return lines
}

// countByState counts the cache's addresses by state.
func countByState(b *ipam.State, now time.Duration) status.Addresses {
	lost := 0
	for i := range b.Addresses {
		if b.Addresses[i].Lost {
			lost++
		}
	}
	c, unlinked := b.Count(now, nil), len(b.HeldAddresses())-len(heldByOthers(b))
	return status.Addresses{Unlinked: unlinked, Attached: c.Total + len(b.Damaged), Free: c.Free, Used: c.Used - lost, Cooling: c.Cooling, Releasing: c.Releasing, Lost: lost, Held: c.Held, Damaged: len(b.Damaged),
		Reserved: c.Reserved, Claimed: c.Claimed}
}

// undoneProblem says that repairs don't last, "" if they do.
func undoneProblem(list []status.Undone) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].String()
}

// rebuildFails tells whether records of the node cache are damaged and it could not be built
// anew. Pods go on getting what the other records have, and nothing else is done.
func (a *Agent) rebuildFails() bool {
	return a.cached != nil && len(a.cached.Damaged) > 0 && a.backoffs[of(rebuilds)].why() != ""
}

// cacheProblem says why the node cache can't be used. Most errors name it themselves.
func (a *Agent) cacheProblem() string {
	why := a.backoffs[of(rebuilds)].why()
	if why == "" && (a.cached != nil || a.cacheErr != nil) {
		why = a.whyUnusable(a.cached, a.cacheErr)
	}
	if strings.Contains(why, "node cache") {
		return why
	}
	return "node cache: " + why
}

// noRoom says why the node can hold no pod's address of those families at all.
func (v *view) noRoom(families []eni.Family) string {
	for _, f := range families {
		if v.limits.PerENI(f) == 0 {
			return fmt.Sprintf("the instance carries no %s addresses for pods; see the key families", f)
		}
	}
	if v.limits.NoPrimary {
		return "the instance carries no ENI for pods: its primary ENI gets no addresses for them, and it may have no others"
	}
	return "the instance carries no ENI for pods; see the key pool.firstENI"
}

// firstIndex returns the lowest device index whose addresses are for pods.
func (a *Agent) firstIndex() int { return a.conf.Pool.FirstIndex(a.view.limits) }

// fullSubnets names the subnets that are full.
func (a *Agent) fullSubnets(now time.Duration) string {
	var names []string
	for id := range a.scarce {
		if a.isFull(id, now) {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// save writes the memory down if it changed.
func (a *Agent) save() error {
	if !a.unsaved {
		return nil
	}
	if err := a.remember(); err != nil {
		return err
	}
	a.unsaved = false
	return nil
}
