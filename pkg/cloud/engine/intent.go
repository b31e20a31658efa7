package engine

import (
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// begin notes that the ENI of a token is to be made, and tells whether there is surely
// none that describes could show, and whether an earlier call may have made one.
func (n *Node) begin(token string) (isNew, before bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &n.memory
	it := m.making[token]
	if len(m.making) >= mostIntents {
		clear(m.making) // of intents that were given up
	}
	before = it.begun || m.begun[token]
	isNew = !before && it.try == 0 && isRecent(m.looked, n.clock.Now())
	for _, known := range m.tokens {
		isNew = isNew && known != token
	}
	it.begun = true
	m.making[token] = it
	return isNew, before
}

// mayBeMade tells whether an earlier call may have made an ENI with the token.
func (n *Node) mayBeMade(token string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.isBegun(token)
}

// isBegun is mayBeMade of a caller that holds the lock.
func (n *Node) isBegun(token string) bool {
	return n.memory.making[token].begun || n.memory.begun[token]
}

// wasBegun tells whether an earlier process may have made an ENI with the token.
func (n *Node) wasBegun(token string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.memory.begun[token]
}

// unbegun notes that nothing has come of it: the next call is the first, and the index
// that it was to have is free again.
func (n *Node) unbegun(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	it := n.memory.making[token]
	it.begun, it.few, it.asked, it.index = false, false, time.Time{}, 0
	n.memory.making[token] = it
}

// fewerFor notes that the ENI of a token is asked for with fewer addresses.
func (n *Node) fewerFor(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	it := n.memory.making[token]
	it.few = true
	n.memory.making[token] = it
}

// intentOf returns how to go about a token, the same in each call of this process, and
// whether this is the first.
func (n *Node) intentOf(token string) (it intent, first bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &n.memory
	it = m.making[token]
	if !it.asked.IsZero() {
		return it, false, nil
	}
	it.asked = n.clock.Now().UTC()
	if n.t.NoIndex {
		taken := map[int]bool{0: true}
		for at := range m.taken {
			taken[at.index] = true
		}
		for _, other := range m.making {
			taken[other.index] = true
		}
		for _, shown := range m.seen { // a later look may not show yet what was made a moment ago
			taken[shown.Index], taken[shown.raw.Mark.Index] = true, true
		}
		for it.index = 1; taken[it.index]; it.index++ {
		}
		if it.index > eni.MaxIndex {
			return it, true, because(cloud.ErrLimit, "every device index is taken")
		}
	}
	m.making[token] = it
	return it, true, nil
}

// isMissing notes that describes do not show the ENI that the cloud has answered with, and
// tells whether they have not for so long that there surely is none.
func (n *Node) isMissing(token, id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	it, now := n.memory.making[token], n.clock.Now()
	if it.missing.IsZero() {
		it.missing, it.named = now, id
		n.memory.making[token] = it
	}
	return now.Sub(it.missing) >= doubtful
}

// again notes that what was made with a token is gone. The next one is asked for with as few
// addresses at once, in case the cloud remembers the token of what it refused, too.
func (n *Node) again(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.memory.making[token]
	n.memory.making[token] = intent{try: before.try + 1, begun: true, few: before.few}
}

// made ends the making of a token: what is next is the ENI's own affair. Its addresses were put
// there, whatever describes show yet, and whichever ENI had them before.
func (n *Node) made(token string, on nic) {
	n.note(on.ID, on.Addresses, on.blocks, put)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory.making, token)
	delete(n.memory.begun, token)
	n.memory.tokens[on.ID] = token
	n.memory.ready[on.ID] = sight{on, n.clock.Now()}
}
