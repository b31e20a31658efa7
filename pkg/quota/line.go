package quota

import "slices"

// line is what waits for the tokens of one action: what has begun, and the requests of each class,
// each in order.
type line struct {
	begun   row
	classes [classes]row
	passed  [classes]int // how many times in a row a class went although a less urgent one waited
}

func (l *line) listOf(r Request) *row {
	if r.Begun {
		return &l.begun
	}
	return &l.classes[r.Class]
}

func (l *line) insert(r Request) {
	l.listOf(r).insert(r)
}

func (l *line) remove(r Request) {
	l.listOf(r).remove(r)
}

// chooseNext returns the request that goes next of those that may: their class, and they. A class
// that may not is not gone through: a hundred thousand may wait in it.
func (l *line) chooseNext(classMay func(Class) bool, may func(Request) bool) (Request, bool) {
	begun := l.begun.list()
	if at := slices.IndexFunc(begun, func(r Request) bool { return classMay(r.Class) && may(r) }); at >= 0 {
		return begun[at], true
	}
	var firsts [classes]*Request
	for c := range l.classes {
		if !classMay(Class(c)) {
			continue
		}
		list := l.classes[c].list()
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
	waits := slices.ContainsFunc(l.classes[r.Class+1:], func(of row) bool { return len(of.list()) > 0 })
	if l.passed[r.Class]++; !waits {
		l.passed[r.Class] = 0
	}
}
