package operator

import "time"

// windUp is how long a term that is to end has for what was sent besides the time of a request: to write down what came of it.
const windUp = 3 * time.Second

// hasEnded tells whether a term that is to end has ended: what its calls have done is written, or there is no more time for that.
// The lease is held meanwhile. Without this each call under way would be one of which nobody knows the outcome, and
// the next leader would keep its addresses from pods until the fence has passed.
func (t *term) hasEnded() bool {
	if t.stop.Err() == nil {
		return false
	}
	now := t.now().Mono
	if t.endBy == 0 {
		t.endBy = now + t.o.Timeout + windUp
	}
	if now >= t.endBy {
		return true
	}
	for _, node := range t.members {
		if node.isOpen() {
			return false
		}
	}
	return len(t.running) == 0 && !t.drifts.isAnyUnder()
}

// isOpen tells whether something is still to be written of a node.
func (m *member) isOpen() bool { return m.writing || len(m.deeds) > 0 && !m.left && m.wrong == nil }

// endTurn writes down what calls have done, and begins nothing.
func (t *term) endTurn() time.Duration {
	for name, node := range t.members {
		if len(node.deeds) > 0 {
			t.reconcile(name)
		}
	}
	return scanEvery
}
