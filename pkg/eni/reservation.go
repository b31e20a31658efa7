package eni

import "cmp"

// TopologyAnnotation names the topology of a pod. It is there before any kubelet sees the pod bound.
const TopologyAnnotation = "enipool.io/topology"

// Reservation says for whom an address is kept: for one pod, or for the next one of a topology.
type Reservation struct {
	Topology       string // "" if it is not known
	Namespace, Pod string // "" while it is nobody's yet
	UID            string // "" for any pod of that name
}

// IsNobodys tells whether no pod is named yet: then no pod may take the address.
func (r Reservation) IsNobodys() bool { return r.Pod == "" }

// IsGeneral tells whether it is for a pod of no topology, in a namespace in which pods get only what is reserved: the agent has set it aside among the
// addresses for any pod. What is a topology's has its name, or no pod's uid where that could not be read.
func (r Reservation) IsGeneral() bool { return r.Topology == "" && r.Pod != "" && r.UID != "" }

// IsFor tells whether the address is the owner's: it is the pod of that name, and nothing says that it is
// another one of that name.
func (r Reservation) IsFor(o Owner) bool {
	return !r.IsNobodys() && r.Namespace == o.Namespace && r.Pod == o.Pod && (r.UID == "" || o.UID == "" || r.UID == o.UID)
}

// PodName returns namespace/pod, "-" while it is nobody's.
func (r Reservation) PodName() string {
	if r.Namespace == "" {
		return cmp.Or(r.Pod, "-")
	}
	return r.Namespace + "/" + r.Pod
}
