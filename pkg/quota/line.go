package quota

import "slices"

// line is what waits for the tokens of one action: what has begun, and the wishes of each class,
// each in order.
type line struct {
	begun   row
	classes [classes]row
	passed  [classes]int // how many times in a row a class went although a less urgent one waited
}

func (l *line) listOf(w Wish) *row {
	if w.Begun {
		return &l.begun
	}
	return &l.classes[w.Class]
}

func (l *line) insert(w Wish) {
	l.listOf(w).insert(w)
}

func (l *line) remove(w Wish) {
	l.listOf(w).remove(w)
}

// chooseNext returns the wish that goes next of those that may.
func (l *line) chooseNext(may func(Wish) bool) (Wish, bool) {
	begun := l.begun.list()
	if at := slices.IndexFunc(begun, may); at >= 0 {
		return begun[at], true
	}
	var firsts [classes]*Wish
	for c := range l.classes {
		list := l.classes[c].list()
		if at := slices.IndexFunc(list, may); at >= 0 {
			firsts[c] = &list[at]
		}
	}
	var chosen *Wish
	for c, w := range firsts {
		if w == nil {
			continue
		}
		chosen = w
		if l.passed[c] < turns || !slices.ContainsFunc(firsts[c+1:], func(w *Wish) bool { return w != nil }) {
			break
		}
		// It had its turns: all less urgent ones share this one, in the same way.
	}
	if chosen == nil {
		return Wish{}, false
	}
	return *chosen, true
}

// grant takes a wish out of the line and counts the turns of its class. A more urgent class that
// let it pass begins to count from scratch.
func (l *line) grant(w Wish) {
	l.remove(w)
	if w.Begun {
		return // it had its turn when it began
	}
	for c := range w.Class {
		l.passed[c] = 0
	}
	waits := slices.ContainsFunc(l.classes[w.Class+1:], func(of row) bool { return len(of.list()) > 0 })
	if l.passed[w.Class]++; !waits {
		l.passed[w.Class] = 0
	}
}
