package order

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var compareSteps = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreFields(pool.Step{}, "Reason", "Spare"), cmpopts.EquateEmpty()}

// TestBothSidesTogetherAreThePlan is what lets two programs share a plan: what the operator adds after it has read what
// the agent wrote, and what the agent takes back and gives back, are the plan of a node that calls the cloud itself.
func TestBothSidesTogetherAreThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s, target := anyConfig(t), anySnapshot(t), rapid.IntRange(0, 60).Draw(t, "target")
		for i := range s.ENIs { // lost addresses: TestTheOperatorIsAPlanAhead
			s.ENIs[i].Addresses = slices.DeleteFunc(s.ENIs[i].Addresses, func(a pool.Address) bool { return a.Lost })
		}
		plan := pool.Plan(c, s, target)
		if differs(c, s, plan) {
			return
		}
		spec, status, facts := divided(c, s, plan, target)
		want, got := OperatorSteps(plan), Plan(spec, status, facts)
		if diff := cmp.Diff(want, got, compareSteps); diff != "" {
			t.Fatalf("the operator's steps (-today's plan +operator):\n%s\nall of the plan: %+v\nconfig %+v\nsnapshot %+v\ntarget %d", diff, plan, c, s, target)
		}
	})
}

// differs tells whether the operator does only what the next of today's plans does, because it has read already what this one
// gives back: TestTheOperatorIsAPlanAhead has one of each kind.
func differs(c pool.Config, s pool.Snapshot, plan []pool.Step) bool {
	gives := slices.ContainsFunc(plan, func(s pool.Step) bool { return s.Do == pool.Release })
	back := gives || slices.ContainsFunc(plan, func(s pool.Step) bool { return s.Do == pool.Delete })
	// A burstable node gives back whole ENIs: what waits to go back one by one is left of another mode.
	left := c.Mode == pool.Burstable && slices.ContainsFunc(s.ENIs, func(e pool.ENI) bool { return slices.ContainsFunc(e.Addresses, undecided) })
	// An address of one family that is taken back needs a partner before more are asked for.
	takes := len(s.Families) > 1 && slices.ContainsFunc(plan, func(s pool.Step) bool { return s.Do == pool.Restore })
	return (gives || takes) && len(OperatorSteps(plan)) > 0 || back && c.PreAllocateENI > 0 || left
}

// divided returns what each side knows of a snapshot after the agent has done its steps of the plan.
func divided(c pool.Config, s pool.Snapshot, plan []pool.Step, target int) (Spec, Status, Facts) {
	spec := Spec{Mode: Operator, Families: s.Families, Slots: target, Pool: PoolFor(c, s.MaxPods, s.Cooling)}
	status := Status{Mode: Operator, Limits: s.Limits}
	facts := Facts{Unmanaged: s.Unmanaged, Pending: s.Pending, Subnets: s.Subnets, NoNew: s.NoNew, Calls: map[string]ENICall{}}
	there := 0
	for _, e := range s.ENIs {
		facts.Calls[e.ID] = ENICall{Coming: e.Coming, Busy: e.Busy, NoMore: e.NoMore, Stays: e.Stays, Kept: e.Keep}
		made := ENI{ID: e.ID, Index: e.Index, Subnet: e.Subnet, State: Attached}
		if e.Leaving {
			made.State = ENILeaving
		}
		if contains(plan, pool.Delete, e.ID) {
			spec.ReleaseInterfaces = append(spec.ReleaseInterfaces, e.ID)
		}
		if c.Mode == pool.Burstable && c.ReturnENIs && !slices.ContainsFunc(e.Addresses, serves) {
			spec.Idle = append(spec.Idle, e.ID)
		}
		if e.NoLink {
			spec.NoLink = append(spec.NoLink, e.ID)
		}
		for _, a := range e.Addresses {
			switch {
			case a.Lost:
				continue // the cloud shows it no more
			case a.State == eni.Held:
				spec.Held = append(spec.Held, host(a.Addr)...)
			case a.Committed:
				status.Releasing = append(status.Releasing, host(a.Addr)...)
			case goesBack(plan, a):
				spec.Release = append(spec.Release, host(a.Addr)...)
			}
			made.Addresses = append(made.Addresses, host(a.Addr)...)
		}
		status.ENIs = append(status.ENIs, made)
		if !e.Leaving && e.Index >= c.FirstIndex(s.Limits) {
			there += slotsThere(s.Families, e, plan)
		}
	}
	spec.Waiting = max(0, s.Needed-there)
	return spec, status, facts
}

// undecided tells whether an address goes back and may yet be taken back.
func undecided(a pool.Address) bool { return a.State == eni.Releasing && !a.Committed }

// serves tells whether an address is a pod's or others', or was until a moment ago.
func serves(a pool.Address) bool {
	return a.State == eni.Used || a.State == eni.Cooling || a.State == eni.Held
}

// goesBack tells whether an address stands in the spec's list when the agent has done its steps.
func goesBack(plan []pool.Step, a pool.Address) bool {
	back := a.State == eni.Releasing
	for _, step := range plan {
		if slices.Contains(step.Addrs, a.Addr) {
			back = step.Do != pool.Restore
		}
	}
	return back
}

// slotsThere counts what pods may have of the ENI once the agent has taken back what it takes back.
func slotsThere(families []eni.Family, e pool.ENI, plan []pool.Step) int {
	var there []netip.Addr
	for _, a := range e.Addresses {
		if back := a.State == eni.Releasing && goesBack(plan, a); !back && a.State != eni.Held {
			there = append(there, a.Addr)
		}
	}
	return Slots(families, [][]netip.Addr{there})
}
