package firewall

import "strings"

// natRules shows the rules of a table's chains.
type natRules interface {
	list(chain string) ([]natRule, error)
}

// natRule is a rule of a chain of type nat.
type natRule interface {
	// number is the only port that the rule is for, 0 if it may be for others.
	number() uint16
	// target is the chain that the rule leads to, whatever it matches.
	target() string
	judge(portProbe) (natView, error)
}

// natView is a rule as it looks to one packet.
type natView struct {
	ruleView
	translates bool
	to         string   // for people: where it leads then
	choice     []string // one of these chains, by chance
	byPort     bool     // the rule looked at the port
}

// natEnd is what becomes of a packet in a chain.
type natEnd uint8

const (
	packetGoesOn natEnd = iota // to the next rule behind the chain
	packetLeaves               // the base chain, as it is
	packetIsDropped
	portIsTaken
	nobodyKnows
)

// natResult says where a packet was taken.
type natResult struct {
	end       natEnd
	chain, to string
}

// natWalk is the way of a packet to a port through the chains of a table.
type natWalk struct {
	probe   portProbe
	rules   natRules
	metOurs bool
}

// followChain tells only of what is certain: a rule that may let the packet leave makes all that
// follows uncertain, one that may take it does not where another one surely takes the rest.
func (w *natWalk) followChain(name string, depth int) (natResult, error) {
	unknown := natResult{end: nobodyKnows}
	if depth > deepest {
		return unknown, nil
	}
	rules, err := w.rules.list(name)
	if err != nil {
		return unknown, err
	}
	mayTake := false
	for _, rule := range rules {
		if n := rule.number(); n != 0 && n != w.probe.port {
			continue
		}
		v, err := rule.judge(w.probe)
		if err != nil {
			return unknown, err
		}
		if v.match == matchesNot {
			continue
		}
		r, err := w.followRule(name, v, depth)
		if err != nil {
			return unknown, err
		}
		sure := v.match == matches
		switch {
		case r.end == packetGoesOn && sure && (v.action == returns || v.action == goesTo):
			if mayTake {
				return unknown, nil
			}
			return r, nil
		// Some packets leave here and others go on to the rules below.
		case r.end == packetGoesOn && (v.action == returns || v.action == goesTo):
			return unknown, nil
		case r.end == packetGoesOn:
		case r.end == portIsTaken && !sure:
			mayTake = true
		case !sure, mayTake && r.end != portIsTaken:
			return unknown, nil
		default:
			return r, nil
		}
	}
	if mayTake {
		return unknown, nil
	}
	return natResult{}, nil
}

// followRule returns what a rule that matches does with the packet.
func (w *natWalk) followRule(chain string, v natView, depth int) (natResult, error) {
	switch {
	case v.translates:
		return natResult{portIsTaken, chain, v.to}, nil
	case len(v.choice) > 0:
		return w.followChoices(chain, v, depth)
	}
	switch v.action {
	case accepts:
		return natResult{end: packetLeaves}, nil
	case drops:
		return natResult{end: packetIsDropped}, nil
	case decidesElsewhere:
		return natResult{end: nobodyKnows}, nil
	case jumps, goesTo:
		return w.enterChain(chain, v, v.chain, depth)
	}
	return natResult{}, nil
}

func (w *natWalk) enterChain(chain string, v natView, next string, depth int) (natResult, error) {
	switch {
	case strings.HasPrefix(next, ourIptPort):
		w.metOurs = true
		return natResult{end: packetLeaves}, nil // to the pod
	case strings.HasPrefix(next, "CNI-HOSTPORT-"): // see portmapped
		return natResult{}, nil
	}
	r, err := w.followChain(next, depth+1)
	if r.end == portIsTaken && v.byPort {
		r.chain = chain // this is where people find the port
	}
	return r, err
}

// followChoices follows all chains that chance may choose: the port is taken if all take it. Of
// those it names the first by what they lead to, the same one each time.
func (w *natWalk) followChoices(chain string, v natView, depth int) (first natResult, err error) {
	for i, next := range v.choice {
		r, err := w.enterChain(chain, v, next, depth)
		if err != nil || r.end != portIsTaken {
			return natResult{end: nobodyKnows}, err
		}
		if i == 0 || r.to < first.to {
			first = r
		}
	}
	return first, nil
}
