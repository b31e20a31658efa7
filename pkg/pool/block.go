package pool

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// startCount returns how many addresses of the family a new ENI begins with so that it has
// that many slots, of the addresses that the subnet has left: whole blocks, which may be more than
// are needed, and single ones where the subnet has less than a block.
func startCount(l eni.Limits, f eni.Family, slots, left int) int {
	size := unitSize(l, f)
	full := roundUp(slots, size)
	switch {
	case takenOfSubnet(l, f, full) <= left:
		return full
	case f == eni.IPv6:
		return max(left, 0) * size
	}
	whole := max(left, 0) / size * size
	return whole + max(0, min(slots-whole, left-whole, (wholePerENI(l, f)-whole)/size))
}

// unitSize returns how many addresses of the family come and go together.
func unitSize(l eni.Limits, f eni.Family) int { return max(l.Block(f).Size, 1) }

// wholePerENI returns how many addresses of the family an ENI carries in whole units.
func wholePerENI(l eni.Limits, f eni.Family) int {
	n, size := l.PerENI(f), unitSize(l, f)
	return n / size * size
}

// scarceFamily returns the family whose addresses are worth sparing.
func scarceFamily(families []eni.Family) eni.Family {
	for _, f := range families {
		if f == eni.IPv4 {
			return f
		}
	}
	return eni.IPv6
}

// ceilDiv divides and rounds up; a is at least 0 and b at least 1.
func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(n, size int) int { return ceilDiv(max(n, 0), size) * size }

// takenOfSubnet returns how much of a subnet's Free that number of new addresses takes. It counts
// IPv4 addresses there; of IPv6 a subnet has more blocks than nodes will ever ask for.
func takenOfSubnet(l eni.Limits, f eni.Family, addresses int) int {
	if f == eni.IPv6 {
		return ceilDiv(addresses, unitSize(l, f))
	}
	return addresses
}

// takenOfLimit returns how much of an ENI's limit n new addresses take: a single one
// as much as a block.
func takenOfLimit(n, size int) int { return n/size*size + n%size*size }

// block is the addresses of one ENI that go together because they share their first
// bits: a delegated prefix, or single addresses that happen to lie in one.
type block struct {
	bits  netip.Prefix
	total int // addresses of it that the node state has
	free  int
	held  int // used, cooling, lost or held by others
	lost  int // of those
	kept  int // of those: held by others, or kept for pods of topologies
	going int // releasing, which can be undone
	gone  int // releasing for good

	restored bool // planned: all that is releasing is restored
	released bool // planned: all that is free is released
}

func (b *block) count(a Address) {
	b.total++
	switch {
	case a.Lost:
		b.held++
		b.lost++
	case a.State == eni.Releasing && a.Committed:
		b.gone++
	case a.State == eni.Releasing:
		b.going++
	case a.State == eni.Free:
		b.free++
	default:
		b.held++
		if a.State == eni.Held || a.IsKept() {
			b.kept++
		}
	}
}

// isRestorable tells whether what is releasing can be restored.
func (b *block) isRestorable() bool { return b.going > 0 && b.gone == 0 && !b.restored }

// isIdle tells whether the block, or what is left of it, can be released.
func (b *block) isIdle() bool { return b.free > 0 && b.held == 0 && !b.restored && !b.released }

// sortIntoBlocks puts the ENI's addresses of the tally's family into blocks, in the order of
// the node state.
func (t *tally) sortIntoBlocks(addresses []Address) {
	at := map[netip.Prefix]int{}
	for _, a := range addresses {
		if a.Family() != t.family {
			continue
		}
		bits, _ := a.Addr.Prefix(t.bits)
		i, known := at[bits]
		if !known {
			i = len(t.blocks)
			at[bits] = i
			t.blocks = append(t.blocks, block{bits: bits})
		}
		t.blocks[i].count(a)
	}
	if t.size == 1 {
		return // addresses come one by one now, so each takes one of the limit, also in an old block
	}
	t.taken = takenOfLimit(t.coming, t.size)
	for _, b := range t.blocks {
		switch {
		case b.isWhole(t.size):
			t.taken += t.size
		case t.family == eni.IPv6 && b.kept == b.total: // the limit is one prefix, and the cloud takes single addresses beside it
		default:
			t.taken += b.total * t.size
		}
	}
}

// isWhole tells whether the addresses are a block and not single ones. Of a block that
// the cloud took away only those stay that pods have.
func (b *block) isWhole(size int) bool { return b.total >= size || b.lost > 0 }

// restoreNext plans the next release to be undone, of a whole block where there are blocks, and
// returns false if there is none.
func (t *tally) restoreNext() bool {
	if !t.inBlocks() {
		if t.restore == t.going {
			return false
		}
		t.restore++
		return true
	}
	for i := range t.blocks {
		if b := &t.blocks[i]; b.isRestorable() {
			t.restoreBlock(b)
			return true
		}
	}
	return false
}

// restoreBlock plans all of the block to be restored.
func (t *tally) restoreBlock(b *block) {
	b.restored = true
	t.restore += b.going
}

// canRestoreNext tells whether restoreNext would return true.
func (t *tally) canRestoreNext() bool {
	if !t.inBlocks() {
		return t.restore < t.going
	}
	for i := range t.blocks {
		if t.blocks[i].isRestorable() {
			return true
		}
	}
	return false
}

// keepTornBlocks plans to restore the releasing part of each block of which the rest is used or
// free, because the cloud takes only whole blocks. If nobody needs the block the next plan
// releases all of it.
func (n *nic) keepTornBlocks() {
	for i := range n.tallies {
		t := &n.tallies[i]
		for k := range t.blocks {
			if b := &t.blocks[k]; b.isRestorable() && b.going < b.total {
				n.mended += b.going
				t.restoreBlock(b)
			}
		}
	}
}

// growsInBlocks tells whether the plan brings addresses to the ENI in blocks.
func (n *nic) growsInBlocks() bool {
	blocks, planned := false, 0
	for _, t := range n.tallies {
		blocks = blocks || t.size > 1
		planned += t.assign + t.restore
	}
	return blocks && planned > 0
}

// releaseBlocks plans to release idle blocks of at most k addresses together, the last of the
// node state first, and none where the plan brings addresses.
func (t *tally) releaseBlocks(k int) {
	if t.assign+t.restore > 0 {
		return
	}
	for i := len(t.blocks) - 1; i >= 0; i-- {
		if b := &t.blocks[i]; b.isIdle() && b.free <= k {
			b.released = true
			t.release += b.free
			k -= b.free
		}
	}
}

// countSingles returns how many of the ENI's addresses are in no whole block.
func (t *tally) countSingles() int {
	n := 0
	for _, b := range t.blocks {
		if !b.isWhole(t.size) {
			n += b.total
		}
	}
	return n
}
