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

// history is the versions of something, the newest last. It is empty where nobody may
// ask for what was.
type history[T any] []version[T]

// add notes what it is from a time on, and forgets what it was before the oldest
// time that may be asked for.
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

// fromStart makes what it is now what it always was.
func (h history[T]) fromStart() {
	if len(h) > 0 {
		h[len(h)-1].at = time.Time{}
	}
}

// find returns the index of what it was at t, -1 if it was not yet.
func (h history[T]) find(t time.Time) int {
	return sort.Search(len(h), func(i int) bool { return h[i].at.After(t) }) - 1
}

// asOf returns what it was at t; false if it was not yet.
func (h history[T]) asOf(t time.Time) (value T, ok bool) {
	i := h.find(t)
	if i < 0 {
		return value, false
	}
	return h[i].value, true
}

// Remember makes the account keep at least so much of its history for View.
func (a *Account) Remember(age time.Duration) {
	a.lock()
	defer a.mu.Unlock()
	a.remember(age)
}

// SetLag sets how old the answers of describing calls may be from now on. They
// show nothing from before what was remembered until now.
func (a *Account) SetLag(d time.Duration) {
	a.lock()
	defer a.mu.Unlock()
	a.o.Lag = d
	a.remember(d)
}

// remember begins the history of all there is, where there was none.
func (a *Account) remember(age time.Duration) {
	before := a.keep
	a.keep = max(a.keep, age)
	if before > 0 || a.keep <= 0 {
		return
	}
	for _, n := range a.nics {
		a.changed(n)
		n.seen.fromStart()
	}
	for _, s := range a.subnets {
		a.changedSubnet(s)
		s.seen.fromStart()
	}
}

// changed notes that the ENI, and with it its subnet, is not what it was.
func (a *Account) changed(n *nic) {
	if a.keep <= 0 {
		return
	}
	var shown *Interface
	if !n.gone {
		copied := n.Interface
		shown = &copied
	}
	n.seen.add(a.now, shown, a.keep)
	a.changedSubnet(a.subnets[n.Subnet])
}

func (a *Account) changedSubnet(s *subnet) {
	if a.keep > 0 {
		s.seen.add(a.now, s.free(), a.keep)
	}
}
