package pool

import (
	"reflect"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"net/netip"
	"pgregory.net/rapid"
)

var compare = cmpopts.EquateComparable(netip.Addr{})

// number returns how many of the ENI's addresses of the family are as asked for.
func number(e ENI, f eni.Family, is func(Address) bool) int {
	n := 0
	for _, a := range e.Addresses {
		if a.Family() == f && is(a) {
			n++
		}
	}
	return n
}

func usable(a Address) bool { return a.State != eni.Releasing && a.State != eni.Held && !a.Lost }
func anyway(Address) bool   { return true }
func inUse(a Address) bool {
	return a.State == eni.Used || a.State == eni.Cooling || a.State == eni.Held || a.Lost
}

// slotsOn returns the slots of an ENI, plainly counted, without those to come.
func slotsOn(s Snapshot, e ENI) int {
	n := 1 << 20
	for _, f := range s.Families {
		n = min(n, number(e, f, usable))
	}
	return n
}

// carries tells whether the ENI's slots count.
func carries(c Config, l eni.Limits, e ENI) bool {
	return !e.Leaving && e.Index >= c.FirstENI && !(e.Index == 0 && l.NoPrimary)
}

// sum adds up slots: those there, and with those on their way.
func sum(c Config, s Snapshot) (there, owned int) {
	for _, e := range s.ENIs {
		if !carries(c, s.Limits, e) {
			continue
		}
		there += slotsOn(s, e)
		n := 1 << 20
		for _, f := range s.Families {
			n = min(n, number(e, f, usable)+comingOf(e, f))
		}
		owned += n
	}
	for _, p := range s.Pending {
		owned += p.Slots
	}
	return there, owned
}

// trial is a random plan and what came of it.
type trial struct {
	c      Config
	s      Snapshot
	target int
	steps  []Step
	next   Snapshot
}

func anyCase(t *rapid.T) trial {
	k := trial{c: anyConfig(t), s: anySnapshot(t), target: rapid.IntRange(0, 60).Draw(t, "target")}
	k.steps = Plan(k.c, k.s, k.target)
	k.next = applied(k.s, k.steps)
	k.own()
	return k
}

// own makes the limits that the steps are judged by those of the node.
func (k *trial) own() {
	k.s.Limits, k.next.Limits = k.c.Within(k.s.Limits), k.c.Within(k.next.Limits)
}

func (k trial) most() int      { return k.c.Most(k.s.Limits, k.s.Families, k.s.forPods()) }
func (k trial) reachable() int { return min(k.target, k.most()) }
func (k trial) ceiling() int {
	if k.c.Mode == BestEffort {
		return min(k.reachable()+k.c.MaxAboveWatermark, k.most())
	}
	return k.reachable()
}

func find(s Snapshot, id string) (ENI, bool) {
	for _, e := range s.ENIs {
		if e.ID == id {
			return e, true
		}
	}
	return ENI{}, false
}

func subnetOf(s Snapshot, id string) (Subnet, bool) {
	for _, n := range s.Subnets {
		if n.ID == id {
			return n, true
		}
	}
	return Subnet{}, false
}

// TestNoPlanBreaksARule is the contract of Plan.
func TestNoPlanBreaksARule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyCase(t)
		k.checkForm(t)
		for _, step := range k.steps {
			k.checkStep(t, step)
		}
		k.checkLimits(t)
		k.checkSums(t)
		k.checkOrder(t)
		k.checkSpares(t)
		k.checkTargetCauses(t)
	})
}

// checkForm: a plan is a function of its arguments and leaves them alone, its
// steps stand in order, once an ENI and family, none undoes another, and each has a
// reason.
func (k trial) checkForm(t *rapid.T) {
	before := applied(k.s, nil)
	if again := Plan(k.c, k.s, k.target); !reflect.DeepEqual(k.steps, again) {
		t.Fatalf("the same plan twice:\n%s", cmp.Diff(k.steps, again, compare))
	}
	if diff := cmp.Diff(before, k.s, compare); diff != "" {
		t.Fatalf("the plan changed its snapshot:\n%s", diff)
	}
	if !slices.IsSortedFunc(k.steps, func(a, b Step) int { return int(a.Do) - int(b.Do) }) {
		t.Fatalf("not in the order of the actions: %+v", k.steps)
	}
	type subject struct {
		do     Action
		eni    string
		family eni.Family
	}
	seen := map[subject]bool{}
	for _, step := range k.steps {
		if step.Reason == "" {
			t.Fatalf("no reason: %+v", step)
		}
		at := subject{step.Do, step.ENI, step.Family}
		if step.Do != Create && seen[at] {
			t.Fatalf("twice in a plan: %+v", step)
		}
		seen[at] = true
		for _, f := range k.s.Families {
			less := step.Do == Delete || step.Do == Release && slices.ContainsFunc(step.Addrs, func(a netip.Addr) bool { return eni.FamilyOf(a) == f })
			if less && seen[subject{Assign, step.ENI, f}] || step.Do == Delete && seen[subject{do: Restore, eni: step.ENI}] {
				t.Fatalf("%s gets more %s and less: %+v", step.ENI, f, k.steps)
			}
		}
	}
}

// checkStep: each step alone does only what it may.
func (k trial) checkStep(t *rapid.T, step Step) {
	n, known := subnetOf(k.s, step.Subnet)
	if step.Do == Create {
		if !known || !n.New || n.Blocked.Is() || n.NoNew.Is() || step.Count < 1 || step.Index != -1 || step.ENI != "" {
			t.Fatalf("%+v in %+v", step, n)
		}
		return
	}
	e, _ := find(k.s, step.ENI)
	if !carries(k.c, k.s.Limits, e) || e.Index != step.Index || e.Subnet != step.Subnet {
		t.Fatalf("%+v of %+v", step, e)
	}
	if step.Do != Restore && e.Busy {
		t.Fatalf("%s of a busy ENI: %+v", step.Do, step)
	}
	if step.Do == Assign && e.NoMore.Is() || (step.Do == Release || step.Do == Delete) && e.Stays {
		t.Fatalf("%s of an ENI that refused that lately: %+v", step.Do, step)
	}
	for _, addr := range step.Addrs {
		at := slices.IndexFunc(e.Addresses, func(a Address) bool { return a.Addr == addr })
		if at < 0 {
			t.Fatalf("%s is not on %s", addr, e.ID)
		}
		switch a := e.Addresses[at]; {
		case step.Do == Restore && (a.State != eni.Releasing || a.Committed),
			step.Do != Restore && (a.State != eni.Free || a.Lost):
			t.Fatalf("%s of %+v", step.Do, a)
		}
	}
	k.checkWhole(t, e, step)
	switch step.Do {
	case Assign:
		if !known || n.Blocked.Is() || step.Count < 1 {
			t.Fatalf("%+v in %+v", step, n)
		}
	case Release:
		if k.c.Mode == Burstable || len(step.Addrs) == 0 {
			t.Fatalf("a burstable ENI keeps its addresses: %+v", step)
		}
	case Delete:
		used := slices.ContainsFunc(e.Addresses, inUse)
		if used || e.Keep || e.Index == 0 || len(e.Coming) > 0 || k.c.Mode == Burstable && !k.c.ReturnENIs {
			t.Fatalf("delete of %+v", e)
		}
	}
}

// checkLimits: no limit of instance, ENI or subnet is passed by what is planned.
func (k trial) checkLimits(t *rapid.T) {
	created := 0
	took := map[string]map[eni.Family]int{}
	for _, step := range k.steps {
		if took[step.Subnet] == nil {
			took[step.Subnet] = map[eni.Family]int{}
		}
		switch step.Do {
		case Create:
			created++
			for _, f := range k.s.Families {
				n := step.V4
				if f == eni.IPv6 {
					n = step.V6
				}
				took[step.Subnet][f] += takenOfSubnet(k.s.Limits, f, n) + 1
				if n < step.Count || roomOn(k.s.Limits, ENI{}, f, n) < 0 {
					t.Fatalf("%d %s addresses for %d slots on a new ENI that may carry %d", n, f, step.Count, k.s.Limits.PerENI(f))
				}
			}
		case Assign:
			took[step.Subnet][step.Family] += takenOfSubnet(k.s.Limits, step.Family, step.Count)
			e, _ := find(k.s, step.ENI)
			if roomOn(k.s.Limits, e, step.Family, step.Count) < 0 {
				t.Fatalf("%d %s addresses on %s, which has no room for them: %+v", step.Count, step.Family, e.ID, e)
			}
		}
	}
	if n := len(k.s.ENIs) + len(k.s.Pending) + k.s.Unmanaged + created; created > 0 && n > k.s.Limits.ENIs {
		t.Fatalf("%d ENIs of %d", n, k.s.Limits.ENIs)
	}
	carriers := len(k.s.Pending) + created
	for _, e := range k.s.ENIs {
		if e.Index >= k.c.FirstIndex(k.s.Limits) {
			carriers++
		}
	}
	if most := k.c.MaxAllocateENI; created > 0 && most > 0 && carriers > most {
		t.Fatalf("%d ENIs for pods of %d", carriers, most)
	}
	for id, families := range took {
		for f, n := range families {
			in, _ := subnetOf(k.s, id)
			if left := newField(in, k.s).left[slices.Index(k.s.Families, f)]; n > left {
				t.Fatalf("%d %s addresses from %s, which has %d", n, f, id, left)
			}
		}
	}
}

// checkSums: no more slots than the node may hold, none given back that is wanted,
// none kept that is not.
func (k trial) checkSums(t *rapid.T) {
	thereBefore, ownedBefore := sum(k.c, k.s)
	there, owned := sum(k.c, k.next)
	if owned > max(ownedBefore, k.most())+k.slack() {
		t.Fatalf("%d slots, %d before, at most %d", owned, ownedBefore, k.most())
	}
	least := k.reachable()
	if k.spares() {
		least = min(least, k.s.Needed)
	}
	if there < thereBefore && there < least {
		t.Fatalf("%d slots there of %d before, %d are wanted: %+v", there, thereBefore, least, k.steps)
	}
	if sure := k.sure(); sure < thereBefore && sure < least && inBlocks(k.s.Limits, k.s.Families) {
		t.Fatalf("%d slots there of %d before until what is asked for comes, %d are wanted: %+v", sure, thereBefore, least, k.steps)
	}
	if ownedBefore < k.ceiling() && owned > k.ceiling()+k.slack() && k.c.Mode != Burstable {
		t.Fatalf("%d slots of %d before, %d may be kept", owned, ownedBefore, k.ceiling())
	}
	if k.c.Mode == Burstable || there <= k.ceiling() {
		return
	}
	if inBlocks(k.s.Limits, k.s.Families) {
		k.checkBlocks(t, k.sure()-k.ceiling())
		return
	}
	for _, e := range k.next.ENIs {
		rested := 1 << 20
		for _, f := range k.s.Families {
			rested = min(rested, number(e, f, func(a Address) bool { return usable(a) && a.State == eni.Free }))
		}
		if carries(k.c, k.s.Limits, e) && !e.Busy && !e.Stays && rested > 0 {
			t.Fatalf("%d slots there, %d may be kept, and %s has %d rested ones", there, k.ceiling(), e.ID, rested)
		}
	}
}

// more tells whether a call could give the ENI one more slot.
func more(s Snapshot, e ENI) bool {
	n, known := subnetOf(s, e.Subnet)
	if e.Busy || e.NoMore.Is() || !known || n.Blocked.Is() {
		return false
	}
	low := 1 << 20
	for _, f := range s.Families {
		low = min(low, number(e, f, usable)+comingOf(e, f))
	}
	left := newField(n, s).left
	for i, f := range s.Families {
		lags := number(e, f, usable)+comingOf(e, f) == low
		if lags && (roomOn(s.Limits, e, f, 0) <= 0 || left[i] < 1) {
			return false
		}
	}
	return true
}

// checkOrder: a newer ENI gets more only when no older one has room, but for what
// a slot lacks in one family; a new ENI is made only when none has room at all.
func (k trial) checkOrder(t *rapid.T) {
	grown := len(k.s.ENIs) // the newest that got whole slots
	for i := range k.s.ENIs {
		e := k.s.ENIs[i]
		assigned := map[eni.Family]bool{}
		for _, step := range k.steps {
			if step.Do == Assign && step.ENI == e.ID {
				assigned[step.Family] = true
			}
			if step.Do == Create {
				grown = len(k.s.ENIs)
			}
		}
		if len(assigned) == len(k.s.Families) {
			grown = i
		}
	}
	if k.awaits() {
		return // for what is awaited room is kept
	}
	if slices.ContainsFunc(k.steps, func(s Step) bool { return s.Do == Create }) {
		grown = len(k.s.ENIs)
	} else if grown == len(k.s.ENIs) {
		return
	}
	// What goes back is no room yet.
	after := applied(k.s, slices.DeleteFunc(slices.Clone(k.steps), func(s Step) bool { return s.Do >= Release }))
	for _, e := range k.s.ENIs[:grown] {
		if n, _ := subnetOf(k.s, e.Subnet); n.Spared {
			continue
		}
		if now, ok := find(after, e.ID); ok && carries(k.c, k.s.Limits, e) && more(after, now) && !k.full() {
			t.Fatalf("%s still has room: %+v", e.ID, k.steps)
		}
	}
}

func (k trial) full() bool {
	_, owned := sum(k.c, k.next)
	return owned >= k.most()
}

// awaits tells whether a plan may count on what it will ask for only later.
func (k trial) awaits() bool {
	return slices.ContainsFunc(k.s.ENIs, func(e ENI) bool { return e.Busy && len(e.Coming) > 0 && len(k.s.Families) > 1 })
}

// checkTargetCauses: there is a reason exactly when the target is not reached.
func (k trial) checkTargetCauses(t *rapid.T) {
	list := TargetCauses(k.c, k.s, k.target)
	if again := TargetCauses(k.c, k.s, k.target); !slices.Equal(list, again) {
		t.Fatalf("two answers: %+v and %+v", list, again)
	}
	if k.awaits() || k.yields() {
		return // what goes back for others is missing when it has gone
	}
	_, owned := sum(k.c, k.next)
	_, before := sum(k.c, k.s)
	reached := max(owned, before) >= k.target
	if reached == (len(list) > 0) && !(k.target > k.most() && max(owned, before) >= k.target) {
		t.Fatalf("target %d, %d slots owned after the plan, reasons %+v", k.target, owned, list)
	}
	for _, c := range list {
		if c.Kind.String() == "" || c.Words == "" || c.Slots < 0 {
			t.Fatalf("a cause that says nothing in %+v", list)
		}
	}
}

// TestAPlanThatWorkedLeavesNothingToDo: the second plan is empty, in every mode and
// from any state. One case needs two: with an ENI that a burstable node gives back
// goes room, under its most and in its subnet, that lets older ENIs be filled.
func TestAPlanThatWorkedLeavesNothingToDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyCase(t)
		if k.awaits() {
			t.Skip("there is more to do when the call under way has ended")
		}
		second := Plan(k.c, k.next, k.target)
		if k.spares() {
			k.checkMoved(t)
			return
		}
		if inBlocks(k.s.Limits, k.s.Families) {
			k.checkRest(t, second)
			return
		}
		if k.c.Mode == Burstable && slices.ContainsFunc(k.steps, func(s Step) bool { return s.Do == Delete }) {
			for _, step := range second {
				if step.Do == Create {
					t.Fatalf("an ENI given back and made again: %+v, then %+v", k.steps, second)
				}
			}
			second = Plan(k.c, applied(k.next, second), k.target)
		}
		if len(second) > 0 {
			t.Fatalf("first %+v\nthen %+v", k.steps, second)
		}
	})
}
