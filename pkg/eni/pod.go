package eni

// Pod is a pod of the node that needs addresses, as the cluster knows it.
type Pod struct {
	UID       string
	Namespace string
	Name      string
}
