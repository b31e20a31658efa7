package order

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Changes is what the node state becomes by a status. It goes by the status alone: whatever came before, the same status gives
// the same state, and a second time nothing.
type Changes struct {
	Head // for the node cache, 0 for none

	ENIs []ENI    // attached and not in the node state: their links come first
	Add  []Added  // addresses that the node state does not have
	Gone []string // ids of ENIs that are no more

	Reserve   []Reserved   // what is to be kept, or for another pod than it is
	Unreserve []netip.Addr // what is kept and is not to be: it goes back, and is never general
	Nobodys   []netip.Addr // of those, what any pod of a name may take: while it cools down none is to
	Release   []netip.Addr // free ones that leave service
	Found     []netip.Addr // lost ones that are there again
	Lost      []netip.Addr // pods' that the cloud took away
	Drop      []netip.Addr // nobody's that the cloud took away
}

// Due returns the changes without what may not be yet: a pod has an address that is kept for another one, or it cools after one.
// Until then there is nothing to write.
func (c Changes) Due(state *ipam.State, now time.Duration) Changes {
	if len(c.Reserve)+len(c.Unreserve) == 0 {
		return c // nearly always
	}
	lines := map[netip.Addr]*eni.Address{}
	for i := range state.Addresses {
		lines[state.Addresses[i].Addr] = &state.Addresses[i]
	}
	c.Reserve = slices.DeleteFunc(slices.Clone(c.Reserve), func(r Reserved) bool { return !state.CanReserve(lines[r.Addr], r.reservation(), now) })
	c.Nobodys = slices.DeleteFunc(slices.Clone(c.Nobodys), func(addr netip.Addr) bool { return state.CanUnreserve(lines[addr], now) })
	c.Unreserve = slices.DeleteFunc(slices.Clone(c.Unreserve), func(addr netip.Addr) bool { return !state.CanUnreserve(lines[addr], now) })
	return c
}

// Added is the new addresses of one ENI.
type Added struct {
	ENI       string
	Free      []netip.Addr
	Reserved  []Reserved
	Releasing []netip.Addr // they go back, or may: no pod gets them
}

// Adopt returns what a node state that has seen a status becomes by the object. There is nothing to adopt
// where the status is stale (S5), the node does not leave the calls to the operator, or the agent has not begun (Begin).
func Adopt(state *ipam.State, head Head, boot string, v View) Changes {
	if Stale(head, v.Status) || v.Status.Mode != Operator || v.Spec.Boot != boot {
		return Changes{}
	}
	a := &adoption{View: v, state: state, c: Changes{Head: Head{v.Status.Revision, v.Status.Epoch}}, out: outOfService(v),
		going: setOf(v.Status.Limits, v.Spec.Release, v.Status.Releasing), lines: map[netip.Addr]bool{},
		reserved: v.Status.reservedBy(func(Reserved) bool { return true })}
	a.readENIs()
	for _, line := range state.Addresses {
		a.lines[line.Addr] = true
		a.noteLine(line)
	}
	// Whose a damaged record is nobody knows until the state is rebuilt.
	if len(state.Damaged) == 0 {
		a.addMissing()
	}
	return a.c
}

// adoption is an Adopt in the making.
type adoption struct {
	View
	state    *ipam.State
	c        Changes
	out      addrSet // no pod may get them
	going    addrSet // of those: they go back, or may
	reserved map[netip.Addr]Reserved
	lines    map[netip.Addr]bool   // of the node state
	on       map[netip.Addr]string // the id of the ENI that has it
	idOf     map[int]string        // ids by the indexes of the node state
}

// outOfService returns the addresses that no pod may get: what is or may be accepted, what a late call may take
// away, and what lies on an ENI that leaves.
func outOfService(v View) addrSet {
	out := setOf(v.Status.Limits, v.Spec.Release, v.Status.Releasing, v.Status.quarantinedPrefixes())
	for _, e := range v.Status.ENIs {
		if e.State != Attached || slices.Contains(v.Status.LeavingInterfaces, e.ID) || slices.Contains(v.Spec.ReleaseInterfaces, e.ID) {
			out.add(Addresses(v.Status.Limits, e.Addresses...))
		}
	}
	return out
}

func (a *adoption) readENIs() {
	a.on, a.idOf = map[netip.Addr]string{}, map[int]string{}
	there := map[string]bool{}
	for _, e := range a.Status.ENIs {
		if e.State == Creating || e.State == Detached {
			continue
		}
		there[e.ID] = true
		for _, addr := range Addresses(a.Status.Limits, e.Addresses...) {
			a.on[addr] = e.ID
		}
		if e.State == Attached && !slices.ContainsFunc(a.state.ENIs, func(nic eni.Interface) bool { return nic.ID == e.ID }) {
			a.c.ENIs = append(a.c.ENIs, e)
		}
	}
	for _, nic := range a.state.ENIs {
		a.idOf[nic.Index] = nic.ID
		if !there[nic.ID] && nic.Index > 0 {
			a.c.Gone = append(a.c.Gone, nic.ID)
		}
	}
}

// noteLine notes what becomes of an address of the node state.
func (a *adoption) noteLine(line eni.Address) {
	c, addr := &a.c, line.Addr
	r, reserved := a.reserved[addr]
	switch missing := a.on[addr] != a.idOf[line.ENI]; {
	case missing && line.State == eni.Used && !line.Lost:
		c.Lost = append(c.Lost, addr)
	case missing && line.State != eni.Used:
		c.Drop = append(c.Drop, addr)
	case missing:
	case line.Lost && !a.out[addr]:
		c.Found = append(c.Found, addr)
	case line.State == eni.Releasing:
	case line.Reservation != nil && (a.out[addr] || !reserved && !line.IsSetAside()):
		c.Unreserve = append(c.Unreserve, addr)
		if a.out[addr] && line.State == eni.Reserved && line.Reservation.UID == "" && !line.Reservation.IsNobodys() {
			c.Nobodys = append(c.Nobodys, addr)
		}
	case a.out[addr] && line.State != eni.Used:
		c.Release = append(c.Release, addr)
	case reserved && (line.Reservation == nil || *line.Reservation != r.reservation()):
		c.Reserve = append(c.Reserve, r)
	}
}

// addMissing notes the addresses that the node state does not have, ENI by ENI. Those on ENIs that carry no pods stay out.
func (a *adoption) addMissing() {
	first := a.Spec.Pool.FirstIndex(a.Status.Limits)
	for _, e := range a.Status.ENIs {
		if e.State != Attached || e.Index < first {
			continue
		}
		add := Added{ENI: e.ID}
		leaves := slices.Contains(a.Status.LeavingInterfaces, e.ID) || slices.Contains(a.Spec.ReleaseInterfaces, e.ID)
		for _, addr := range Addresses(a.Status.Limits, e.Addresses...) {
			r, reserved := a.reserved[addr]
			switch {
			case a.lines[addr]:
			case a.going[addr] || leaves:
				add.Releasing = append(add.Releasing, addr)
			case a.out[addr]: // quarantined: it comes when that has ended
			case reserved:
				add.Reserved = append(add.Reserved, r)
			case e.Topology == "":
				add.Free = append(add.Free, addr)
			}
		}
		if len(add.Free)+len(add.Reserved)+len(add.Releasing) > 0 {
			a.c.Add = append(a.c.Add, add)
		}
	}
}

// PodName returns namespace/pod, "-" while it is nobody's.
func (r Reserved) PodName() string { return r.reservation().PodName() }

// reservation is r as the node state has it. A uid alone names no pod.
func (r Reserved) reservation() eni.Reservation {
	if r.Pod == "" {
		return eni.Reservation{Topology: r.Topology}
	}
	return eni.Reservation{Topology: r.Topology, Namespace: r.Namespace, Pod: r.Pod, UID: r.UID}
}
