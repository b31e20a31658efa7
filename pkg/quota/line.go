package quota

import "slices"

// line is what waits for the tokens of one action: what has begun, and the requests of each class,
// each in order.
type line struct {
	begun   []Request
	classes [classes][]Request
	passed  [classes]int // how many times in a row a class went although a less urgent one waited
}

func (l *line) listOf(r Request) *[]Request {
	if r.Begun {
		return &l.begun
	}
	return &l.classes[r.Class]
}

func (l *line) insert(r Request) {
	list := l.listOf(r)
	at, _ := slices.BinarySearchFunc(*list, r, Request.before)
	*list = slices.Insert(*list, at, r)
}

func (l *line) remove(r Request) {
	list := l.listOf(r)
	if at, found := slices.BinarySearchFunc(*list, r, Request.before); found {
		*list = slices.Delete(*list, at, at+1)
	}
}

// chooseNext returns the request that goes next of those that may.
func (l *line) chooseNext(may func(Request) bool) (Request, bool) {
	if at := slices.IndexFunc(l.begun, may); at >= 0 {
		return l.begun[at], true
	}
	var firsts [classes]*Request
	for c, list := range l.classes {
		if at := slices.IndexFunc(list, may); at >= 0 {
			firsts[c] = &list[at]
		}
	}
	var chosen *Request
	for c, r := range firsts {
		if r == nil {
			continue
		}
		chosen = r
		if l.passed[c] < turns || !slices.ContainsFunc(firsts[c+1:], func(r *Request) bool { return r != nil }) {
			break
		}
		// It had its turns: all less urgent ones share this one, in the same way.
	}
	if chosen == nil {
		return Request{}, false
	}
	return *chosen, true
}

// grant takes a request out of the line and counts the turns of its class. A more urgent class that
// let it pass begins to count from scratch.
func (l *line) grant(r Request) {
	l.remove(r)
	if r.Begun {
		return // it had its turn when it began
	}
	for c := range r.Class {
		l.passed[c] = 0
	}
	waits := slices.ContainsFunc(l.classes[r.Class+1:], func(list []Request) bool { return len(list) > 0 })
	if l.passed[r.Class]++; !waits {
		l.passed[r.Class] = 0
	}
}
