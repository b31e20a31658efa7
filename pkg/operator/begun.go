package operator

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// noteNeeded keeps since when the node needs no new ENI.
func (m *member) noteNeeded(view order.View, steps []planned, noPlace pool.Cause, now time.Duration) {
	_, unsure := m.unsure[""]
	creates := slices.ContainsFunc(steps, func(s planned) bool { return s.Do == pool.Create })
	switch {
	case creates || noPlace.Is() || unsure || m.jobs[""] != nil || order.Short(view.Spec, view.Status, 0, 0) > 0:
		m.unneeded = 0
	case m.unneeded == 0:
		m.unneeded = max(now, 1)
	}
}

// skipBegun gives up an ENI that was begun and that the node needs no more: a leader ended before it was attached, and the pods that it was for have gone.
// The next ENI gets another token from then on, so that nobody takes that one for its own; it is deleted as all that nobody finishes.
func (t *term) skipBegun(node *member, view order.View, now order.Moment) {
	if view.Status.Mode != order.Operator || node.unneeded == 0 || now.Mono < node.unneeded+t.o.LeakAge || node.isBusy() || node.isGoing() || node.shown == nil {
		return
	}
	uid := string(node.network.UID)
	token := order.Token(uid, view.Status.Created)
	for _, nic := range node.shown.looseENIs() {
		if nic.Token == token && node.isLeft(nic.ID, t.o.LeakAge, now.Mono) && !node.isGone(nic.ID) {
			node.deeds = append(node.deeds, func(t *order.Term, v order.View, _ order.Moment) order.Status { return t.Skip(v, uid, token) })
			t.dirty[node.network.Name] = true
			return
		}
	}
}
