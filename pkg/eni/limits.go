package eni

// Limits is what the instance that a node runs on may carry.
type Limits struct {
	ENIs int // attached at once, the node's own among them
	V4   int // IPv4 addresses an ENI, its primary among them
	V6   int // IPv6 addresses an ENI, its primary among them
}

// PerENI returns how many addresses of the family an ENI may carry besides its
// primary.
func (l Limits) PerENI(f Family) int {
	if f == IPv4 {
		return max(l.V4-1, 0)
	}
	return max(l.V6-1, 0)
}
