package quota

import (
	"cmp"
	"slices"
	"time"
)

// Class is how urgent a wish is; less is more urgent.
type Class int

// The classes.
const (
	Starving Class = iota // a pod waits for an address, or something without which it goes on waiting
	Empty                 // a node without any address for pods
	Short                 // a node with less than its target
	Giving                // what goes back: releases, deletions, sweeps, reservations
	classes
)

// String names the class, as in metrics.
func (c Class) String() string { return [...]string{"starving", "empty", "short", "giving"}[c] }

const (
	// turns is how many wishes of a class in a row pass those of less urgent ones. Then one of
	// those goes first: a class that always has a wish would keep the others out for ever. They
	// share that one in the same way, so that what goes back, of the last of four classes, has one
	// of 729 requests: three minutes at four per second, and never while a pod waits for it, since
	// it is of the first class then.
	turns = 8

	// perNode and inAll are how many requests are under way at once at most. At 4 requests per
	// second that take 6 seconds each, 24 are under way; an ENI has one at a time, since clouds
	// refuse a second change.
	perNode = 2
	inAll   = 32
)

// Wish is what one node wants to ask of the cloud next with one action.
type Wish struct {
	Node   string
	Action string
	Object string // the ENI that it changes, "" if that does not exist yet
	Class  Class
	Since  time.Duration // when the node began to lack what the wish is for: the oldest goes first
	Begun  bool          // a step of what has begun, as the attachment of an ENI just made: goes before all others
}

func (w Wish) sameAs(v Wish) bool {
	return w.Node == v.Node && w.Action == v.Action && w.Object == v.Object
}

// before orders the wishes of one class. Names decide between equals, so that the order does not
// depend on that of arrival.
func (w Wish) before(v Wish) int {
	return cmp.Or(cmp.Compare(w.Since, v.Since), cmp.Compare(w.Node, v.Node), cmp.Compare(w.Object, v.Object))
}

// Queue holds what nodes wish until there is a token for it, and knows what is under way.
type Queue struct {
	budget *Budget
	lines  map[string]*line  // by action
	wishes map[string][]Wish // by node: all that are in lines
	onNode map[string]int    // requests under way
	on     map[string]bool   // ENIs with one
	begun  int
}

// NewQueue returns an empty queue on a budget.
func NewQueue(b *Budget) *Queue {
	return &Queue{budget: b, lines: map[string]*line{}, wishes: map[string][]Wish{}, onNode: map[string]int{}, on: map[string]bool{}}
}

// Set replaces what a node wishes: at most one wish of an action and an object. One that is there already keeps its place unless its class or
// its age is another one now.
func (q *Queue) Set(node string, wishes []Wish) {
	old := q.wishes[node]
	for _, w := range old {
		if !slices.Contains(wishes, w) {
			q.lines[w.Action].remove(w)
		}
	}
	for _, w := range wishes {
		if !slices.Contains(old, w) {
			q.lineOf(w.Action).insert(w)
		}
	}
	if q.wishes[node] = slices.Clone(wishes); len(wishes) == 0 {
		delete(q.wishes, node)
	}
}

func (q *Queue) lineOf(action string) *line {
	if q.lines[action] == nil {
		q.lines[action] = &line{}
	}
	return q.lines[action]
}

// Take takes the wish that goes next, with its token; the request must be sent at once. It is
// under way until Done. found is false if nothing may be sent now.
func (q *Queue) Take(now time.Duration) (next Wish, found bool) {
	if q.begun >= inAll {
		return Wish{}, false
	}
	// Actions have buckets of their own, so none waits for another one's token. Between those
	// that have one the more urgent wish goes first.
	for action, l := range q.lines {
		w, may := l.chooseNext(q.mayRun)
		if !may || q.budget.Next(action, now) > now {
			continue
		}
		if !found || q.goesBefore(w, next) {
			next, found = w, true
		}
	}
	if !found {
		return Wish{}, false
	}
	q.budget.Take(next.Action, now)
	l := q.lines[next.Action]
	l.grant(next)
	q.forgetWish(next)
	q.begun++
	q.onNode[next.Node]++
	if next.Object != "" {
		q.on[next.Object] = true
	}
	return next, true
}

// goesBefore orders the first wishes of two actions. It is a total order: lines are visited in
// no order.
func (q *Queue) goesBefore(w, v Wish) bool {
	if w.Begun != v.Begun {
		return w.Begun
	}
	return cmp.Or(cmp.Compare(w.Class, v.Class), w.before(v), cmp.Compare(w.Action, v.Action)) < 0
}

// mayRun tells whether the request may be under way beside those that are.
func (q *Queue) mayRun(w Wish) bool {
	return q.onNode[w.Node] < perNode && !(w.Object != "" && q.on[w.Object])
}

func (q *Queue) forgetWish(w Wish) {
	list := slices.DeleteFunc(q.wishes[w.Node], w.sameAs)
	if q.wishes[w.Node] = list; len(list) == 0 {
		delete(q.wishes, w.Node)
	}
}

// Done ends a request that Take gave.
func (q *Queue) Done(w Wish) {
	q.begun--
	if q.onNode[w.Node]--; q.onNode[w.Node] == 0 {
		delete(q.onNode, w.Node)
	}
	delete(q.on, w.Object)
}

// Next returns when to ask Take again if neither Set nor Done comes before; waits is false if
// nothing waits for a token.
func (q *Queue) Next(now time.Duration) (at time.Duration, waits bool) {
	if q.begun >= inAll {
		return 0, false
	}
	for action, l := range q.lines {
		if _, may := l.chooseNext(q.mayRun); !may {
			continue
		}
		if due := q.budget.Next(action, now); !waits || due < at {
			at, waits = due, true
		}
	}
	return at, waits
}

// Waiting returns how many wishes of each class wait.
func (q *Queue) Waiting() (of [classes]int) {
	for _, l := range q.lines {
		for c := range l.classes {
			of[c] += len(l.classes[c].list())
		}
		for _, w := range l.begun.list() {
			of[w.Class]++
		}
	}
	return of
}

// UnderWay returns how many requests are under way.
func (q *Queue) UnderWay() int { return q.begun }
