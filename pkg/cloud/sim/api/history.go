package api

import (
	"sort"
	"time"
)

// version is what something was from a time on.
type version[T any] struct {
	at    time.Time
	value T
}

// history is the versions of something, the newest last.
type history[T any] []version[T]

// add notes what it is from a time on, and forgets what it was before the oldest
// time that may be asked for.
func (h *history[T]) add(at time.Time, value T, keep time.Duration) {
	if last := len(*h) - 1; last >= 0 && !(*h)[last].at.Before(at) {
		(*h)[last].value = value
		return
	}
	from := max(0, h.find(at.Add(-keep)))
	*h = append((*h)[from:], version[T]{at, value})
}

// fromStart makes what it is now what it always was.
func (h history[T]) fromStart() { h[len(h)-1].at = time.Time{} }

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
