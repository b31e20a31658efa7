package operator

import "time"

// absence is describes in a row that did not show something: when the first of them began, and the last.
type absence struct {
	describes   int
	first, last time.Duration
}

// add returns it with one more, that began at a time.
func (a absence) add(began time.Duration) absence {
	if a.describes == 0 {
		a.first = began
	}
	a.describes, a.last = a.describes+1, began
	return a
}

// isProof tells whether they prove that it is gone: pages are no snapshot, and one describe may lack what is there.
func (a absence) isProof(settle time.Duration) bool {
	return a.describes > 1 && a.last >= a.first+settle
}

// pause is how long after the last of them the next one comes: what is not there for long costs ever fewer.
func (a absence) pause(settle time.Duration) time.Duration {
	return min(settle<<min(max(0, a.describes-1), 10), lastPause)
}

// noteTold takes in whether a describe tells anything of the node, and returns whether that counts. That it tells nothing does when an
// earlier one told nothing either: it may have failed for the node alone, or its pages have missed it.
func (m *member) noteTold(last *shown) bool {
	if last.view.Err == nil {
		m.untold = absence{}
		return true
	}
	m.untold = m.untold.add(last.began.Mono)
	return m.untold.isProof(m.term.Lease.Settle)
}
