package firewall

import "github.com/google/nftables/binaryutil"

// match is whether a rule matches a packet, as far as can be told.
type match uint8

const (
	matchesNot match = iota
	mayMatch
	matches
)

// and returns whether both match.
func (m match) and(other match) match { return min(m, other) }

func (m match) not() match { return matches - m }

func matchIf(is bool) match {
	if is {
		return matches
	}
	return matchesNot
}

// action is what a rule does with a packet.
type action uint8

const (
	goesOn action = iota
	accepts
	drops
	returns
	jumps
	goesTo
	decidesElsewhere // a program in user space, a map that can't be judged
)

// ruleView is a rule as it looks to one packet.
type ruleView struct {
	match  match
	action action
	chain  string // of jumps and goesTo
	marks  bool   // it changes the packet's mark
	mark   []byte // to this, nil: to what can't be told
}

// ruleSource shows the rules of a chain to a packet. Whether the mark is known changes
// on the way, so rules are looked at one by one.
type ruleSource interface {
	each(chain string, w *walk, visit func(ruleView) (goOn bool, err error)) error
}

// end is how a packet leaves a chain.
type end uint8

const (
	fallsThrough end = iota
	isAccepted
	isDropped
)

// deepest is how many chains may lead from one to the next, as in the kernel.
const deepest = 16

// walk is the way of a flow's first packet through chains.
type walk struct {
	flow    Flow
	rules   ruleSource
	mayPass bool // there was a rule on the way that might have accepted it
	marked  bool // its mark is not known any more
	doubted bool // whether the packet comes to the next rule is not certain
	cleared bool // a rule that the packet comes to changes what enipool set of its mark

	droppedIn  string // the chain that drops it
	pastCalico bool   // it came to a chain of Calico's
}

// mark takes in what a rule does to the mark.
func (w *walk) mark(r ruleView) {
	if r.marks && r.mark != nil && !w.marked && !w.doubted && r.match == matches {
		w.cleared = w.cleared || (binaryutil.NativeEndian.Uint32(r.mark)^w.flow.Mark)&w.flow.Mask != 0
	}
	w.marked = w.marked || r.marks
}

// chain follows the packet through a chain and those that lead off it.
func (w *walk) chain(name string, depth int) (end, error) {
	if depth > deepest {
		w.mayPass = true
		return fallsThrough, nil
	}
	w.pastCalico = w.pastCalico || isCalicos(name)
	result := fallsThrough
	err := w.rules.each(name, w, func(r ruleView) (bool, error) {
		if r.match == matchesNot {
			return true, nil
		}
		w.mark(r)
		sure := r.match == matches
		switch r.action {
		case accepts:
			w.mayPass = w.mayPass || !sure
			result = isAccepted
		case drops:
			if w.flow.NewLink != "" && isCalicos(name) { // Felix adds a chain for each pod's link
				w.mayPass, w.doubted = true, true
				return true, nil
			}
			if result = isDropped; sure {
				w.droppedIn = name
			}
		case returns:
			w.mayPass, w.doubted = w.mayPass || !sure, w.doubted || !sure
			return !sure, nil
		case decidesElsewhere:
			w.mayPass, w.doubted = true, true
			return true, nil
		case jumps, goesTo:
			var err error
			was := w.doubted
			w.doubted = was || !sure
			if result, err = w.chain(r.chain, depth+1); err != nil {
				return false, err
			}
			w.doubted = was
			if result == isAccepted && !sure {
				w.mayPass = true
			}
			if result == fallsThrough && r.action == goesTo {
				w.mayPass = w.mayPass || !sure
				return !sure, nil
			}
		}
		if result == fallsThrough || !sure {
			w.doubted = w.doubted || result != fallsThrough
			result = fallsThrough
			return true, nil
		}
		return false, nil
	})
	return result, err
}
