package operator

import (
	"time"

	"github.com/enipool/enipool/pkg/order"
)

// index is what is kept of all members so that nobody need go through them.
type index struct {
	claims   map[string]*member // by instance: whom it is described for
	tally    tally
	due      *dues                    // when members are to be looked at though nothing changed
	describe *dues                    // when they are to be described
	starving map[string]*member       // whose pods wait
	lacking  map[string]*member       // whose pods wait for what no subnet has, and who do without something for such pods
	starved  map[string]time.Duration // by subnet for whose addresses pods wait, or did: when they were last seen to
}

func newIndex() index {
	return index{claims: map[string]*member{}, tally: tally{}, due: newDues(), describe: newDues(), starving: map[string]*member{}, lacking: map[string]*member{},
		starved: map[string]time.Duration{}}
}

// note keeps what the index has of a member, nil if it is there no more.
func (x *index) note(name string, m *member, now order.Moment) {
	delete(x.starving, name)
	delete(x.lacking, name)
	if m == nil {
		x.due.set(name, 0)
		x.describe.set(name, 0)
		return
	}
	x.tally.exchange(m, m.portions(nil))
	x.due.set(name, m.due)
	at := time.Duration(0)
	if m.client != nil && m.isKnown() {
		if t, is := m.describeDue(m.view, now); is {
			at = max(t, 1)
		}
	}
	x.describe.set(name, at)
	if m.network != nil && m.view.Spec.Waiting > 0 {
		x.starving[name] = m
	}
	if m.lacksRoom() || m.asksBack > 0 {
		x.lacking[name] = m
	}
}
