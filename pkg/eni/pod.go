package eni

// Pod is a pod of the node that needs addresses, as the cluster knows it.
type Pod struct {
	UID       string
	Namespace string
	Name      string
}

// TopologyPod is a pod of the node that belongs to a topology: it gets what is kept for it.
type TopologyPod struct {
	Pod
	Topology string
}
