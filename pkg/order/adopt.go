package order

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

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

	Reserve   []Reserved   // general ones that become reserved
	Unreserve []netip.Addr // reserved ones that become general
	Release   []netip.Addr // free ones that leave service
	Found     []netip.Addr // lost ones that are there again
	Lost      []netip.Addr // pods' that the cloud took away
	Drop      []netip.Addr // nobody's that the cloud took away
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
	case line.State != eni.Free && line.State != eni.Cooling && line.State != eni.Held:
	case a.out[addr]:
		if line.State == eni.Held && IsReserved(line.HeldBy) {
			c.Unreserve = append(c.Unreserve, addr) // it cools, and goes by the next adoption
		}
		c.Release = append(c.Release, addr)
	case reserved && !IsReserved(line.HeldBy):
		c.Reserve = append(c.Reserve, r)
	case !reserved && IsReserved(line.HeldBy):
		c.Unreserve = append(c.Unreserve, addr)
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

// reservedFor begins the cause of an address that is held because it is reserved.
const reservedFor = "reserved for "

// cause says for people what the address is reserved for.
func (r Reserved) cause() string {
	if r.named() {
		return fmt.Sprintf("%s%s/%s of topology %s", reservedFor, r.Namespace, r.Pod, r.Topology)
	}
	return fmt.Sprintf("%spods of topology %s", reservedFor, r.Topology)
}

// IsReserved tells whether a held address is held because it is reserved.
func IsReserved(cause string) bool { return strings.HasPrefix(cause, reservedFor) }
