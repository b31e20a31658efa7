package order

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// Both sides run pool.Plan, the operator with what the object and the cloud tell, and each acts on its own steps. Together
// these are the plan of a node that calls the cloud itself: TestBothSidesTogetherAreThePlan.

// AgentSteps returns the steps of a plan that the agent acts on: what goes back and what is taken back.
func AgentSteps(plan []pool.Step) []pool.Step {
	return slices.DeleteFunc(slices.Clone(plan), isGrowth)
}

// OperatorSteps returns the steps of a plan that the operator acts on: what brings addresses.
func OperatorSteps(plan []pool.Step) []pool.Step {
	return slices.DeleteFunc(slices.Clone(plan), func(s pool.Step) bool { return !isGrowth(s) })
}

func isGrowth(s pool.Step) bool { return s.Do == pool.Assign || s.Do == pool.Create }

// Facts is what the operator knows besides the object.
type Facts struct {
	Unmanaged int // ENIs of the instance that are nobody's pool
	Pending   []pool.Pending
	Subnets   []pool.Subnet
	NoNew     pool.Cause         // see pool.Snapshot
	Calls     map[string]ENICall // by ENI id
	WholeENIs bool               // an ENI has addresses of its own subnet alone: places for topologies are ENIs that are left to be made
}

// ENICall is what the operator knows of calls about one ENI.
type ENICall struct {
	Coming []pool.Coming
	Busy   bool       // a call is under way, or its outcome is not known
	NoMore pool.Cause // it refused addresses lately
	Stays  bool       // it refused to give addresses back lately
	Kept   bool       // not made by us: never deleted

	Promised int // places on it that pods of topologies are to have
}

// Plan returns what the operator does so that the node gets the slots that its spec asks for.
func Plan(spec Spec, status Status, facts Facts) []pool.Step {
	return OperatorSteps(pool.Plan(spec.Pool, Snapshot(spec, status, facts), spec.Slots))
}

// Snapshot returns the node as the operator plans for it. Which addresses are free and which a pod uses makes no difference
// to what is to come, so all count as free, but for what the spec says no pod can get, and what waits to go back: on a Restore
// the operator must not count, since that is the agent's to do.
func Snapshot(spec Spec, status Status, facts Facts) pool.Snapshot {
	s := pool.Snapshot{Families: spec.Families, Limits: status.Limits, Unmanaged: facts.Unmanaged,
		Pending: facts.Pending, Subnets: facts.Subnets, NoNew: facts.NoNew}
	states, going := statesFor(status, spec.Held, spec.Release), statesFor(status, spec.Held, nil)
	for _, e := range status.ENIs {
		switch {
		case e.State == Creating || e.State == Detached: // what is being made is in the facts
		case e.Topology != "" || e.State == Unknown:
			s.Unmanaged++ // it only takes room
		case spec.Pool.Mode == pool.Burstable && slices.Contains(spec.ReleaseInterfaces, e.ID):
			// Until it is accepted it counts, or others would be filled for it. See Spec.Idle.
			s.ENIs = append(s.ENIs, plannedENI(spec, status, facts, e, going))
		default:
			s.ENIs = append(s.ENIs, plannedENI(spec, status, facts, e, states))
		}
	}
	if facts.WholeENIs {
		s.KeptENIs = max(0, spec.Pool.KeptENIs(status.Limits, spec.Families)-countOfTopologies(status))
	}
	if spec.Waiting > 0 {
		s.Needed = Slots(spec.Families, addressesOn(s, spec.Pool.FirstIndex(status.Limits))) + spec.Waiting
	}
	return s
}

// countOfTopologies returns how many ENIs a node has that are for pods of topologies alone.
func countOfTopologies(s Status) (n int) {
	for _, e := range s.ENIs {
		if e.Topology != "" && e.State != Creating && e.State != Detached {
			n++
		}
	}
	return n
}

func plannedENI(spec Spec, status Status, facts Facts, e ENI, states map[netip.Addr]pool.Address) pool.ENI {
	call, asked := facts.Calls[e.ID], slices.Contains(spec.ReleaseInterfaces, e.ID)
	n := pool.ENI{ID: e.ID, Index: e.Index, Subnet: e.Subnet, Coming: call.Coming, Busy: call.Busy, NoMore: call.NoMore, Stays: call.Stays,
		Leaving: e.State == ENILeaving || slices.Contains(status.LeavingInterfaces, e.ID) || asked && spec.Pool.Mode != pool.Burstable,
		NoLink:  slices.Contains(spec.NoLink, e.ID), Promised: call.Promised}
	// Of an ENI that pods use something of the plan must not think that it may go.
	n.Keep = call.Kept || !asked && !slices.Contains(spec.Idle, e.ID)
	for _, addr := range Addresses(status.Limits, e.Addresses...) {
		a, special := states[addr]
		if !special {
			a.State = eni.Free
		}
		a.Addr, a.ENI = addr, e.Index
		n.Addresses = append(n.Addresses, a)
	}
	return n
}

// statesFor returns how the addresses count that are not simply there.
func statesFor(status Status, held, release []netip.Prefix) map[netip.Addr]pool.Address {
	states := map[netip.Addr]pool.Address{}
	mark := func(state eni.State, committed bool, prefixes []netip.Prefix) {
		for _, a := range Addresses(status.Limits, prefixes...) {
			states[a] = pool.Address{Address: eni.Address{State: state}, Committed: committed}
		}
	}
	mark(eni.Held, false, held)
	mark(eni.Held, false, status.quarantinedPrefixes())
	for _, r := range status.Reserved {
		mark(eni.Held, false, []netip.Prefix{netip.PrefixFrom(r.Addr, r.Addr.BitLen())})
	}
	mark(eni.Releasing, true, release)
	mark(eni.Releasing, true, status.Releasing)
	return states
}

// addressesOn returns the addresses that pods may have of each ENI that carries pods and stays.
func addressesOn(s pool.Snapshot, first int) [][]netip.Addr {
	var lists [][]netip.Addr
	for _, e := range s.ENIs {
		var list []netip.Addr
		for _, a := range e.Addresses {
			if a.State == eni.Free {
				list = append(list, a.Addr)
			}
		}
		if e.Index >= first && !e.Leaving {
			lists = append(lists, list)
		}
	}
	return lists
}

// PoolFor returns the pool settings that a spec has: what the kubelet's maxPods and the addresses that cool down leave
// room for is in MaxAllocate, since the operator knows neither. 0 is no limit, as in pool.Snapshot.
func PoolFor(c pool.Config, maxPods, cooling int) pool.Config {
	if most := maxPods + cooling; maxPods > 0 && (c.MaxAllocate == 0 || most < c.MaxAllocate) {
		c.MaxAllocate = most
	}
	return c
}
