package engine

import (
	"net/netip"
	"slices"
	"time"
)

// deeds are what has happened to addresses of an ENI.
type deeds map[netip.Addr]deed

type deed struct {
	at    time.Time
	was   outcome
	put   time.Time    // when a call put it there, if none has surely taken it since
	block netip.Prefix // that it came in, if it did
}

type outcome uint8

const (
	put outcome = iota
	taken
	unsure
)

// note keeps what a call has done to addresses of an ENI.
func (n *Node) note(id string, addrs []netip.Addr, blocks []netip.Prefix, was outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.memory.deeds[id] == nil {
		n.memory.deeds[id] = deeds{}
	}
	for _, a := range addrs {
		d := deed{at: n.clock.Now(), was: was}
		switch was {
		case put:
			d.put = d.at
		case unsure:
			d.put = n.memory.deeds[id][a].put
		}
		if at := slices.IndexFunc(blocks, func(b netip.Prefix) bool { return b.Contains(a) }); at >= 0 {
			d.block = blocks[at]
		}
		n.memory.deeds[id][a] = d
	}
}

// lately returns the addresses of an ENI to which this has happened since it was read, or so
// shortly before that the answer may not show it yet, and the blocks they came in.
func (n *Node) lately(on nic, was outcome) (addrs []netip.Addr, blocks []netip.Prefix) {
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

// truth returns what an ENI has: what a describe shows, corrected by what calls have
// done since.
func (n *Node) truth(on nic) (addrs []netip.Addr, blocks []netip.Prefix) {
	more, fresh := n.lately(on, put)
	gone, _ := n.lately(on, taken)
	addrs = minus(union(on.Addresses, more), gone)
	return addrs, blocksWith(addrs, on.blocks, fresh)
}

// perhaps is truth with what the ENI may still have: what a describe shows although a call
// has taken it, for an assignment whose answer was lost may have put it back.
func (n *Node) perhaps(on nic) (addrs []netip.Addr, blocks []netip.Prefix) {
	addrs, blocks = n.truth(on)
	more, old := n.lately(on, unsure)
	addrs = union(addrs, more, on.Addresses)
	return addrs, blocksWith(addrs, blocks, old, on.blocks)
}
