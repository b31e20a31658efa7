package operator

import (
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// unhurried is how long news waits that changes nothing for anybody: until then it goes out with what follows. It is less than the minute
// after which an agent tells that the operator does not answer.
const unhurried = 10 * time.Second

// holdsNews tells whether what a decision says anew can wait for what follows: a call that brings addresses, or the first describe
// of a node, comes within a second or two, and each write costs three watches a copy. No call rests on what is held back: of a node
// that was not described there is none, and that the spec is taken in, and conditions, nothing is decided by.
func (m *member) holdsNews(next decision, now time.Duration) bool {
	isNew := m.isFresh() && next.view.Status.Mode == order.Operator && m.shown == nil && m.client != nil
	if !next.changed || !isNew && !saysSameFacts(m.network.Status, next.network.Status) {
		m.held = 0
		return false
	}
	if m.held == 0 {
		m.held = max(now, 1)
	}
	return now < m.held+unhurried
}

// saysSameFacts tells whether a status differs in nothing but what was taken in and conditions.
func saysSameFacts(old, next crd.NodeNetworkStatus) bool {
	next.ObservedGeneration, next.Conditions = old.ObservedGeneration, old.Conditions
	return sameContent(old, next)
}

// isFresh tells whether nobody has called the cloud for the node yet: its agent leaves that to an operator, and none has written its status.
func (m *member) isFresh() bool {
	return m.network.Spec.Mode == crd.Operator && m.network.Spec.Handover == nil && m.network.Status.Mode == ""
}
