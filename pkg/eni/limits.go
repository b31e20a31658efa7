package eni

// Limits is what the instance that a node runs on may carry.
type Limits struct {
	ENIs int // attached at once, the primary ENI among them
	V4   int // IPv4 addresses per ENI, its primary among them
	V6   int // IPv6 addresses per ENI, its primary among them

	V4Block, V6Block Block // in what an ENI's addresses come and go

	// NoPrimary tells that the primary ENI, whose device index is 0, gets no addresses
	// for pods. False: it gets as many as the others.
	NoPrimary bool `json:",omitempty"`
}

// FirstIndex returns the lowest device index whose ENI gets addresses for pods.
func (l Limits) FirstIndex() int {
	if l.NoPrimary {
		return 1
	}
	return 0
}

// Block is a set of addresses that are assigned to an ENI and released together, such as a
// delegated prefix. The zero Block is for addresses that come one by one.
type Block struct {
	Bits int // addresses whose first Bits bits are the same are of one block
	// Size is how many of them pods may have: 16 of a /28, some of a /80. 1 is for blocks
	// that are left of earlier: new addresses come one by one.
	Size int
}

// PerENI returns how many addresses of the family an ENI may carry besides its
// primary.
func (l Limits) PerENI(f Family) int {
	if f == IPv4 {
		return max(l.V4-1, 0)
	}
	return max(l.V6-1, 0)
}

// Block returns in what addresses of the family come and go.
func (l Limits) Block(f Family) Block {
	if f == IPv4 {
		return l.V4Block
	}
	return l.V6Block
}
