package quota

import (
	"cmp"
	"slices"
	"time"
)

// Place is where a request stands in the queue.
type Place struct {
	Request
	Before int // requests of its action that go before it, at most: its class may get a turn sooner
}

// Places returns where the requests of a node stand, the most urgent first.
func (q *Queue) Places(node string) (list []Place) {
	for _, w := range q.requests[node] {
		list = append(list, Place{w, q.lines[w.Action].countBefore(w)})
	}
	slices.SortFunc(list, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Object, b.Object))
	})
	return list
}

// countBefore returns how many requests stand before one that is in the line.
func (l *line) countBefore(w Request) (n int) {
	if !w.Begun {
		n = len(l.begun.list())
		for c := range l.classes[:w.Class] {
			n += len(l.classes[c].list())
		}
	}
	at, _ := slices.BinarySearchFunc(l.listOf(w).list(), w, Request.before)
	return n + at
}

// Expected returns when the budget has a token for a request that others go before, if nobody comes in
// between and the cloud refuses nothing: now if there is one.
func (b *Budget) Expected(action string, before int, now time.Duration) time.Duration {
	k := b.bucketOf(action)
	from := k.nextToken(now)
	lacks := int64(before+1)*token - max(k.level, token)
	if lacks <= 0 {
		return from
	}
	return from + time.Duration((lacks+k.rate-1)/k.rate)
}

// Classes returns all classes, the most urgent first.
func Classes() (list []Class) {
	for c := range classes {
		list = append(list, c)
	}
	return list
}

// WaitingFor returns how many requests of each action wait.
func (q *Queue) WaitingFor() map[string]int {
	of := map[string]int{}
	for action, l := range q.lines {
		of[action] = len(l.begun.list())
		for c := range l.classes {
			of[action] += len(l.classes[c].list())
		}
	}
	return of
}
