package ipam

import (
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// AssignReserved gives a pod what is reserved for it: one address of each family, all of one ENI. It returns a
// lease without addresses for a pod that is to have free ones (AssignPodBehind), and *Awaited for one that
// has to wait: it is of a topology ("" for none), its namespace is gated, or what is kept for it is not to be
// had yet.
func (s *State) AssignReserved(o eni.Owner, topology, device string, now time.Duration) (Lease, error) {
	return s.assignReserved(claimant{o, topology, false}, device, now)
}

// AssignSetAside is AssignReserved for a pod that is known to be of no topology: it gets nothing of what is kept for a pod of its name that is of one,
// and does not wait for that. The operator would not know of it, and give the address to another pod while this one has it.
func (s *State) AssignSetAside(o eni.Owner, device string, now time.Duration) (Lease, error) {
	return s.assignReserved(claimant{o, "", true}, device, now)
}

// claimant is who asks for what is reserved.
type claimant struct {
	eni.Owner
	topology string // "" for none, or that nobody has told
	ofNone   bool   // it is known to be of none
}

func (s *State) assignReserved(c claimant, device string, now time.Duration) (Lease, error) {
	o, topology := c.Owner, c.topology
	waiting, other := s.reservedFor(c)
	gated := s.Settings.IsGated(o.Namespace)
	if !waiting && other == nil && topology == "" && !gated {
		return Lease{}, nil // this is all for a pod without a topology
	}
	if err := s.checkNew(o.Key); err != nil {
		return Lease{}, err
	}
	if other == nil {
		for _, nic := range s.ENIs {
			if device != "" && nic.Device != device {
				continue
			}
			if at := s.reservedOnENI(nic.Index, c); at != nil {
				return s.setUsed(nic, at, o, now), nil
			}
		}
	}
	return Lease{}, &Awaited{Pod: o, Topology: topology, Gated: gated, Partial: waiting, Device: device, Other: other}
}

// reservedFor tells whether something is reserved for the owner, and what another sandbox of its pod has of
// that, nil if none has any. A lost one counts no more: the pod may have another one in its place.
func (s *State) reservedFor(c claimant) (waiting bool, other *eni.Address) {
	for i := range s.Addresses {
		a := &s.Addresses[i]
		switch {
		case a.Reservation == nil || a.Lost || !c.mayHave(a):
		case a.State == eni.Reserved:
			waiting = true
		case other == nil && a.State == eni.Used && a.Owner.Key != c.Key: // what goes back has no owner any more
			other = a
		}
	}
	return waiting, other
}

// mayHave tells whether a reserved address is the claimant's. What a topology keeps for a name is for its own pods: one that has the name by now and is of
// another topology would lose it when the first one ends it. One of a topology gets nothing of what was set aside for a pod of its name that is of none,
// and the other way round.
func (c claimant) mayHave(a *eni.Address) bool {
	r := a.Reservation
	itsOwn := c.topology == "" || r.Topology == c.topology || r.Topology == "" && !a.IsSetAside()
	return r.IsFor(c.Owner) && itsOwn && (!c.ofNone || a.IsSetAside())
}

// reservedOnENI returns the positions of what the ENI has reserved for the owner, one per family, or nil if a
// family has none. One for this very pod goes before one for any pod of its name.
func (s *State) reservedOnENI(index int, c claimant) []int {
	var at []int
	for _, f := range s.Settings.Families {
		best := none
		for i := range s.Addresses {
			a := &s.Addresses[i]
			if a.ENI != index || a.State != eni.Reserved || a.Family() != f || !c.mayHave(a) {
				continue
			}
			if best == none || s.Addresses[best].Reservation.UID == "" && a.Reservation.UID != "" {
				best = i
			}
		}
		if best == none {
			return nil
		}
		at = append(at, best)
	}
	return at
}

// Awaited is returned by AssignReserved for a pod that has to wait for what is to be reserved for it.
type Awaited struct {
	Pod      eni.Owner
	Topology string       // the pod's, "" for none
	Gated    bool         // its namespace is one in which all pods wait
	Partial  bool         // some is reserved, but not one of each family on one ENI that the pod may use
	Device   string       // the only link whose ENI may serve the pod, "" for any
	Other    *eni.Address // what another sandbox or interface of the pod has, nil if none has
}

// Error says what is awaited and from whom, because this is what ends up in the pod's events.
func (e *Awaited) Error() string {
	what := "its address"
	switch {
	case e.Topology != "":
		what += " of topology " + e.Topology
	case e.Gated && !e.Partial && e.Other == nil:
		what = fmt.Sprintf("an address reserved for it, as each pod of the namespace %s must", e.Pod.Namespace)
	}
	return fmt.Sprintf("pod %s waits for %s: %s", e.Pod.PodName(), what, e.cause())
}

func (e *Awaited) cause() string {
	switch {
	case e.Other != nil && e.Other.Owner.Container == e.Pod.Container:
		return fmt.Sprintf("its interface %s has %s, and a pod gets one", e.Other.Owner.IfName, e.Other.Addr)
	case e.Other != nil:
		return fmt.Sprintf("its earlier sandbox %s has %s until the runtime ends that", e.Other.Owner.Container, e.Other.Addr)
	case e.Partial && e.Device != "":
		return fmt.Sprintf("what is reserved for it is not on the ENI of %s", e.Device)
	case e.Partial:
		return "operator: not one address of each family is reserved for it on one ENI yet"
	}
	if e.Gated && e.Topology == "" {
		return "none is reserved for it on this node yet; the agent does that for a pod without a topology, the operator for another one"
	}
	return "operator: none is reserved for it on this node yet"
}
