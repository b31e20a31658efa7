package engine

import (
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// beginIntent notes that the ENI of a token is to be made. isNew: there surely is none yet, so
// no describe is needed before it is made. before: an earlier call may have made one.
func (n *Node) beginIntent(token string) (isNew, before bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	memory := &n.memory
	it := memory.making[token]
	if len(memory.making) >= mostIntents {
		clear(memory.making) // of intents that were given up
	}
	before = it.begun || memory.begun[token]
	isNew = !before && it.try == 0 && isRecent(memory.looked, n.clock.Now())
	for _, known := range memory.tokens {
		isNew = isNew && known != token
	}
	it.begun = true
	memory.making[token] = it
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

// forgetBegun notes that no ENI was made for a token: the next call counts as its first, and the
// index that the ENI was to have is free again.
func (n *Node) forgetBegun(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	it := n.memory.making[token]
	it.begun, it.few, it.asked, it.index = false, false, time.Time{}, 0
	n.memory.making[token] = it
}

// noteFewer notes that the ENI of a token is asked for with fewer addresses from now on.
func (n *Node) noteFewer(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	it := n.memory.making[token]
	it.few = true
	n.memory.making[token] = it
}

// intentOf returns the intent of a token, the same in each call of this process, and whether
// this call is the first.
func (n *Node) intentOf(token string) (it intent, first bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	memory := &n.memory
	it = memory.making[token]
	if !it.asked.IsZero() {
		return it, false, nil
	}
	it.asked = n.clock.Now().UTC()
	if n.t.NoIndex {
		taken := map[int]bool{0: true}
		for at := range memory.occupied {
			taken[at.index] = true
		}
		for _, other := range memory.making {
			taken[other.index] = true
		}
		for _, shown := range memory.seen { // the last describe of all may lack what was made a moment ago
			taken[shown.Index], taken[shown.raw.Mark.Index] = true, true
		}
		for it.index = 1; taken[it.index]; it.index++ {
		}
		if it.index > eni.MaxIndex {
			return it, true, errorf(cloud.ErrLimit, "every device index is taken")
		}
	}
	memory.making[token] = it
	return it, true, nil
}

// isMissing notes that describes do not show the ENI that the cloud's answer named, and tells
// whether they have lacked it for so long that there surely is none.
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

// beginNextTry notes that what was made with a token is gone, so that the next request has another
// request token. If the last try asked for fewer addresses, so does the next: a cloud may remember
// the token of a refused request too, and refuse other parameters.
func (n *Node) beginNextTry(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.memory.making[token]
	n.memory.making[token] = intent{try: before.try + 1, begun: true, few: before.few}
}

// noteReady ends the intent of a token: its ENI is ready. The ENI has its addresses, whatever
// describes show yet, and whichever ENI had them before.
func (n *Node) noteReady(token string, on nic) {
	n.noteDeed(on.ID, on.Addresses, on.blocks, assigned)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory.making, token)
	delete(n.memory.begun, token)
	n.memory.tokens[on.ID] = token
	n.memory.ready[on.ID] = seenENI{on, n.clock.Now()}
}
