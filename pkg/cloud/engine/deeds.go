package engine

import (
	"net/netip"
	"slices"
	"time"
)

// deeds are what calls have done to addresses of an ENI, the last of each address.
type deeds map[netip.Addr]deed

type deed struct {
	at         time.Time
	was        outcome
	assignedAt time.Time    // when a call put it there, if none has surely taken it since
	block      netip.Prefix // that it came in, if it did
}

type outcome uint8

const (
	assigned outcome = iota
	unassigned
	uncertain
)

// noteDeed notes what a call has done to addresses of an ENI. id is "" if the ENI is not known.
func (n *Node) noteDeed(id string, addrs []netip.Addr, blocks []netip.Prefix, was outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.memory.deeds[id] == nil {
		n.memory.deeds[id] = deeds{}
	}
	for _, addr := range addrs {
		d := deed{at: n.clock.Now(), was: was}
		switch was {
		case assigned:
			d.assignedAt = d.at
		case uncertain: // the address may still be there, and then since the same time
			d.assignedAt = n.memory.deeds[id][addr].assignedAt
		}
		if at := slices.IndexFunc(blocks, func(b netip.Prefix) bool { return b.Contains(addr) }); at >= 0 {
			d.block = blocks[at]
		}
		n.memory.deeds[id][addr] = d
	}
}

// recentDeeds returns the addresses of an ENI to which calls have done this after the ENI was
// described, or so shortly before that the answer may not show it yet, and the blocks that they
// came in.
func (n *Node) recentDeeds(on nic, was outcome) (addrs []netip.Addr, blocks []netip.Prefix) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range []string{on.ID, ""} {
		for a, d := range n.memory.deeds[id] {
			if d.was != was || d.at.Add(n.t.Times.Settle).Before(on.read) {
				continue
			}
			if _, own := n.memory.deeds[on.ID][a]; own && id != on.ID {
				continue // a call of this process has changed since what an earlier release has noted
			}
			addrs = append(addrs, a)
			if d.block.IsValid() && !slices.Contains(blocks, d.block) {
				blocks = append(blocks, d.block)
			}
		}
	}
	return union(addrs), blocks
}

// currentAddresses returns what an ENI has: what a describe shows, corrected by recent calls.
func (n *Node) currentAddresses(on nic) (addrs []netip.Addr, blocks []netip.Prefix) {
	more, fresh := n.recentDeeds(on, assigned)
	gone, _ := n.recentDeeds(on, unassigned)
	addrs = minus(union(on.Addresses, more), gone)
	return addrs, blocksWith(addrs, on.blocks, fresh)
}

// possibleAddresses adds to currentAddresses what the ENI may still have. That includes what a
// describe shows although a call has unassigned it: an assignment whose answer was lost may have
// put it back.
func (n *Node) possibleAddresses(on nic) (addrs []netip.Addr, blocks []netip.Prefix) {
	addrs, blocks = n.currentAddresses(on)
	more, old := n.recentDeeds(on, uncertain)
	addrs = union(addrs, more, on.Addresses)
	return addrs, blocksWith(addrs, blocks, old, on.blocks)
}
