package sim

import (
	"sort"
	"time"
)

// version is what something was from a time on.
type version[T any] struct {
	at    time.Time
	value T
}

// history is the versions of something, the newest last. It is empty if the account keeps none.
type history[T any] []version[T]

// add notes what it is from a time on, and forgets versions that ended more than keep before that.
func (h *history[T]) add(at time.Time, value T, keep time.Duration) {
	if keep <= 0 {
		return
	}
	if last := len(*h) - 1; last >= 0 && !(*h)[last].at.Before(at) {
		(*h)[last].value = value
		return
	}
	if from := h.find(at.Add(-keep)); from > 0 {
		left := copy(*h, (*h)[from:])
		clear((*h)[left:])
		*h = (*h)[:left]
	}
	*h = append(*h, version[T]{at, value})
}

// fromStart makes the newest version valid from the beginning of time.
func (h history[T]) fromStart() {
	if len(h) > 0 {
		h[len(h)-1].at = time.Time{}
	}
}

// find returns the index of the version at t, -1 if there was none yet.
func (h history[T]) find(t time.Time) int {
	return sort.Search(len(h), func(i int) bool { return h[i].at.After(t) }) - 1
}

// asOf returns the version at t, false if there was none yet.
func (h history[T]) asOf(t time.Time) (value T, ok bool) {
	i := h.find(t)
	if i < 0 {
		return value, false
	}
	return h[i].value, true
}

// Remember makes the account keep at least this much of its history for View.
func (a *Account) Remember(age time.Duration) {
	a.lock()
	defer a.mu.Unlock()
	a.keepHistory(age)
}

// SetLag sets how old the answers of describing calls may be from now on. They
// show nothing from before what was remembered until now.
func (a *Account) SetLag(d time.Duration) {
	a.lock()
	defer a.mu.Unlock()
	a.o.Lag = d
	a.keepHistory(d)
}

// keepHistory begins the history of all that exists, if none was kept so far.
func (a *Account) keepHistory(age time.Duration) {
	before := a.historyFor
	a.historyFor = max(a.historyFor, age)
	if before > 0 || a.historyFor <= 0 {
		return
	}
	for _, n := range a.nics {
		a.noteChanged(n)
		n.seen.fromStart()
	}
	for _, s := range a.subnets {
		a.noteChangedSubnet(s)
		s.seen.fromStart()
	}
}

// noteChanged adds the ENI as it is now, and the room of its subnet, to their histories.
func (a *Account) noteChanged(n *nic) {
	if a.historyFor <= 0 {
		return
	}
	var shown *Interface
	if !n.gone {
		copied := n.Interface
		shown = &copied
	}
	n.seen.add(a.now, shown, a.historyFor)
	a.noteChangedSubnet(a.subnets[n.Subnet])
}

func (a *Account) noteChangedSubnet(s *subnet) {
	if a.historyFor > 0 {
		s.seen.add(a.now, s.free(), a.historyFor)
	}
}
