package quota

import (
	"cmp"
	"slices"
	"time"
)

// Class is how urgent a request is; less is more urgent.
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
	// turns is how many requests of a class in a row pass those of less urgent ones. Then one of
	// those goes first: a class that always has a request would keep the others out for ever. They
	// share that one in the same way, so that what goes back, of the last of four classes, has one
	// of 729 requests: three minutes at four per second, and never while a pod waits for it, since
	// it is of the first class then.
	turns = 8

	// perNode and inAll are how many requests are under way at once at most. At 4 requests per
	// second that take 6 seconds each, 24 are under way; an ENI has one at a time, since clouds
	// refuse a second change.
	perNode = 2
	inAll   = 32

	// kept are those of them that only pods that wait get. Detaching an ENI takes minutes where the instance does not
	// play along: of enough nodes they would hold all. For the same reason a node has one request that gives back.
	kept = 8
)

// Request is what one node wants to ask of the cloud next with one action.
type Request struct {
	Node   string
	Action string
	Object string // the node's ENI that it changes, or the step of a job; "" for an ENI that does not exist yet
	Class  Class
	Since  time.Duration // when the node began to lack what the request is for: the oldest goes first
	Begun  bool          // a step of what has begun, as the attachment of an ENI just made: goes before all others
}

func (r Request) sameAs(v Request) bool {
	return r.Node == v.Node && r.Action == v.Action && r.Object == v.Object
}

// changed is what a request changes. The steps of a job have names of their own, which are alike on all nodes: those of one node wait for no other's.
type changed struct{ node, object string }

func changedBy(r Request) changed { return changed{r.Node, r.Object} }

// before orders the requests of one class. Names decide between equals, so that the order does not
// depend on that of arrival.
func (r Request) before(v Request) int {
	return cmp.Or(cmp.Compare(r.Since, v.Since), cmp.Compare(r.Node, v.Node), cmp.Compare(r.Object, v.Object))
}

// Queue holds what nodes ask for until there is a token for it, and knows what is under way.
type Queue struct {
	budget   *Budget
	lines    map[string]*line     // by action
	requests map[string][]Request // by node: all that are in lines
	onNode   map[string]int       // requests under way
	giving   map[string]int       // of those, the ones of what goes back
	on       map[changed]bool     // what has one
	begun    int
	others   int // of those, the ones that no pod waits for
}

// NewQueue returns an empty queue on a budget.
func NewQueue(b *Budget) *Queue {
	return &Queue{budget: b, lines: map[string]*line{}, requests: map[string][]Request{}, onNode: map[string]int{}, giving: map[string]int{}, on: map[changed]bool{}}
}

// Set replaces what a node asks for: at most one request of an action and an object. One that is there already keeps its place unless its class or
// its age is another one now.
func (q *Queue) Set(node string, requests []Request) {
	old := q.requests[node]
	for _, r := range old {
		if !slices.Contains(requests, r) {
			q.lines[r.Action].remove(r)
		}
	}
	for _, r := range requests {
		if !slices.Contains(old, r) {
			q.lineOf(r.Action).insert(r)
		}
	}
	if q.requests[node] = slices.Clone(requests); len(requests) == 0 {
		delete(q.requests, node)
	}
}

func (q *Queue) lineOf(action string) *line {
	if q.lines[action] == nil {
		q.lines[action] = &line{}
	}
	return q.lines[action]
}

// Take takes the request that goes next, with its token; the request must be sent at once. It is
// under way until Done. found is false if nothing may be sent now.
func (q *Queue) Take(now time.Duration) (next Request, found bool) {
	if q.begun >= inAll {
		return Request{}, false
	}
	// Actions have buckets of their own, so none waits for another one's token. Between those
	// that have one the more urgent request goes first.
	for action, l := range q.lines {
		if q.budget.Next(action, now) > now {
			continue
		}
		r, may := l.chooseNext(q.classMay, q.nodeMay)
		if !may {
			continue
		}
		if !found || q.goesBefore(r, next) {
			next, found = r, true
		}
	}
	if !found {
		return Request{}, false
	}
	q.budget.Take(next.Action, now)
	l := q.lines[next.Action]
	l.grant(next)
	q.forget(next)
	q.begun++
	q.onNode[next.Node]++
	if next.Class != Starving {
		q.others++
	}
	if next.Class == Giving {
		q.giving[next.Node]++
	}
	if next.Object != "" {
		q.on[changedBy(next)] = true
	}
	return next, true
}

// goesBefore orders the first requests of two actions. It is a total order: lines are visited in
// no order.
func (q *Queue) goesBefore(r, v Request) bool {
	if r.Begun != v.Begun {
		return r.Begun
	}
	return cmp.Or(cmp.Compare(r.Class, v.Class), r.before(v), cmp.Compare(r.Action, v.Action)) < 0
}

// classMay tells whether one more request of the class may be under way beside those that are.
func (q *Queue) classMay(c Class) bool { return c == Starving || q.others < inAll-kept }

// nodeMay tells whether the request may as far as its node is concerned.
func (q *Queue) nodeMay(r Request) bool {
	if r.Class == Giving && q.giving[r.Node] >= perNode-1 {
		return false
	}
	return q.onNode[r.Node] < perNode && !(r.Object != "" && q.on[changedBy(r)])
}

func (q *Queue) forget(r Request) {
	list := slices.DeleteFunc(q.requests[r.Node], r.sameAs)
	if q.requests[r.Node] = list; len(list) == 0 {
		delete(q.requests, r.Node)
	}
}

// Done ends a request that Take gave.
func (q *Queue) Done(r Request) {
	q.begun--
	if r.Class != Starving {
		q.others--
	}
	count(q.onNode, r.Node)
	if r.Class == Giving {
		count(q.giving, r.Node)
	}
	delete(q.on, changedBy(r))
}

func count(of map[string]int, node string) {
	if of[node]--; of[node] == 0 {
		delete(of, node)
	}
}

// Held tells of each class whether a request of it has a token now that its node could use: what is under way of other nodes keeps it, or
// nobody has asked Take.
func (q *Queue) Held(now time.Duration) (held [classes]bool) {
	for action, l := range q.lines {
		if q.budget.Next(action, now) > now {
			continue
		}
		for c := range l.classes {
			held[c] = held[c] || slices.ContainsFunc(l.classes[c].list(), q.nodeMay)
		}
		for _, r := range l.begun.list() {
			held[r.Class] = held[r.Class] || q.nodeMay(r)
		}
	}
	return held
}

// Next returns when to ask Take again if neither Set nor Done comes before; waits is false if
// nothing waits for a token.
func (q *Queue) Next(now time.Duration) (at time.Duration, waits bool) {
	if q.begun >= inAll {
		return 0, false
	}
	for action, l := range q.lines {
		due := q.budget.Next(action, now)
		if waits && due >= at {
			continue
		}
		if _, may := l.chooseNext(q.classMay, q.nodeMay); may {
			at, waits = due, true
		}
	}
	return at, waits
}

// Waiting returns how many requests of each class wait.
func (q *Queue) Waiting() (of [classes]int) {
	for _, l := range q.lines {
		for c := range l.classes {
			of[c] += len(l.classes[c].list())
		}
		for _, r := range l.begun.list() {
			of[r.Class]++
		}
	}
	return of
}

// UnderWay returns how many requests are under way.
func (q *Queue) UnderWay() int { return q.begun }
