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
	waiting, other := s.reservedFor(o, topology)
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
			if at := s.reservedOnENI(nic.Index, o, topology); at != nil {
				return s.setUsed(nic, at, o, now), nil
			}
		}
	}
	return Lease{}, &Awaited{Pod: o, Topology: topology, Gated: gated, Partial: waiting, Device: device, Other: other}
}

// reservedFor tells whether something is reserved for the owner, and what another sandbox of its pod has of
// that, nil if none has any. A lost one counts no more: the pod may have another one in its place.
func (s *State) reservedFor(o eni.Owner, topology string) (waiting bool, other *eni.Address) {
	for i := range s.Addresses {
		a := &s.Addresses[i]
		switch {
		case a.Reservation == nil || a.Lost || !isFor(a, o, topology):
		case a.State == eni.Reserved:
			waiting = true
		case other == nil && a.State == eni.Used && a.Owner.Key != o.Key: // what goes back has no owner any more
			other = a
		}
	}
	return waiting, other
}

// isFor tells whether a reserved address is the owner's. What a topology keeps for a name is for its own pods: one that has the name by now and is of another
// topology would lose it when the first one ends it. One of a topology gets nothing of what was set aside for a pod of its name that is of none.
func isFor(a *eni.Address, o eni.Owner, topology string) bool {
	r := a.Reservation
	return r.IsFor(o) && (topology == "" || r.Topology == topology || r.Topology == "" && !a.IsSetAside())
}

// reservedOnENI returns the positions of what the ENI has reserved for the owner, one per family, or nil if a
// family has none. One for this very pod goes before one for any pod of its name.
func (s *State) reservedOnENI(index int, o eni.Owner, topology string) []int {
	var at []int
	for _, f := range s.Settings.Families {
		best := none
		for i := range s.Addresses {
			a := &s.Addresses[i]
			if a.ENI != index || a.State != eni.Reserved || a.Family() != f || !isFor(a, o, topology) {
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
