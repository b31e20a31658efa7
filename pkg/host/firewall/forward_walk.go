package firewall

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/netconf"
)

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
	translates       // gives its connection another source, which ends the chain
	decidesElsewhere // a program in user space, a map that can't be judged
)

// ruleView is a rule as it looks to one packet.
type ruleView struct {
	match  match
	action action
	chain  string // of jumps and goesTo
	source source // of translates
	mark   mark   // of the packet, after the rule
	conn   mark   // of its connection, after the rule
}

// source is the source address that a rule gives a connection. One that can't be told has
// no address.
type source struct {
	given      bool
	masquerade bool // the address of the link by which it leaves
	addr       netip.Addr
}

// ruleSource shows the rules of a chain to a packet. What is known of the marks changes
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

// walk is the way of a flow's packet through chains.
type walk struct {
	flow    Flow
	rules   ruleSource
	mayPass bool // there was a rule on the way that might have accepted it
	mark    mark // of the packet
	conn    mark // of its connection
	source  source
	// Whether the packet comes to the next rule is not certain where it may have ended
	// before (gone), left this chain (left), or not come to this chain (unsure).
	gone, left, unsure bool
	// atOurs is called where the packet comes to a chain of enipool, which is not looked
	// into; it tells whether the packet's way ends there.
	atOurs func(chain string) (ends bool)

	droppedIn  string // the chain that drops it
	pastCalico bool   // it came to a chain of Calico's
}

// isCertain tells whether the packet does what the rule says.
func (w *walk) isCertain(r ruleView) bool {
	return r.match == matches && !w.gone && !w.left && !w.unsure
}

// applyMarks takes in what a rule does to the marks.
func (w *walk) applyMarks(r ruleView) {
	if w.isCertain(r) {
		w.mark, w.conn = r.mark, r.conn
		return
	}
	w.mark, w.conn = w.mark.either(r.mark), w.conn.either(r.conn)
}

// followBase follows the packet through a base chain.
func (w *walk) followBase(rules ruleSource, chain string) (end, error) {
	w.rules, w.gone, w.left, w.unsure = rules, false, false, false
	return w.followChain(chain, 0)
}

// followChain follows the packet through a chain and those that lead off it.
func (w *walk) followChain(name string, depth int) (end, error) {
	if depth > deepest { // the kernel allows no such chains: they were changed while they were read
		w.mayPass, w.gone = true, true
		return fallsThrough, nil
	}
	w.pastCalico = w.pastCalico || isCalicos(name)
	result := fallsThrough
	err := w.rules.each(name, w, func(r ruleView) (bool, error) {
		if r.match == matchesNot {
			return true, nil
		}
		w.applyMarks(r)
		sure := r.match == matches
		switch r.action {
		case accepts:
			result = isAccepted
		case translates:
			if w.isCertain(r) {
				w.source = r.source
			}
			result = isAccepted
		case drops:
			if w.flow.NewLink != "" && isCalicos(name) { // Felix adds a chain for each pod's link
				w.mayPass, w.gone = true, true
				return true, nil
			}
			if result = isDropped; sure {
				w.droppedIn = name
			}
		case returns:
			w.mayPass, w.left = w.mayPass || !sure, w.left || !sure
			return !sure, nil
		case decidesElsewhere:
			w.mayPass, w.gone = true, true
		case jumps, goesTo:
			back, err := false, error(nil)
			if result, back, err = w.followJump(r, depth, sure); err != nil {
				return false, err
			}
			// Behind a chain that it went to a packet does not come back here, but to whoever
			// jumped here.
			if result == fallsThrough && r.action == goesTo {
				w.mayPass, w.left = w.mayPass || !sure, w.left || !sure
				return !sure, nil
			}
			sure = sure && !back
		}
		if result == fallsThrough {
			return true, nil
		}
		// Some packets may end here and others go on: the rules below are followed for those.
		if !sure {
			w.mayPass, w.gone = w.mayPass || result == isAccepted, true
			result = fallsThrough
			return true, nil
		}
		return false, nil
	})
	return result, err
}

// followJump follows the packet through the chain that a rule leads to, and tells whether some
// packets may have come back where others have not.
func (w *walk) followJump(r ruleView, depth int, sure bool) (result end, back bool, err error) {
	if w.atOurs != nil && netconf.IsIptChain(r.chain) {
		if w.atOurs(r.chain) {
			result = isAccepted
		}
		return result, false, nil
	}
	unsure, left := w.unsure, w.left
	w.unsure, w.left = unsure || left || !sure, false
	result, err = w.followChain(r.chain, depth+1)
	back = w.left
	w.unsure, w.left = unsure, left
	return result, back, err
}
