package netconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Policy is how the kernel decides on the way of packets of one family: its rules by
// priority and its routes, whoever's they are.
type Policy struct {
	Rules  []PolicyRule
	Routes []TableRoute
}

// PolicyRule is a rule of the kernel's, whoever's it is.
type PolicyRule struct {
	Priority   int
	From, To   netip.Prefix // not valid: all
	In         string       // the link that packets came in by, "" for any
	Mark, Mask uint32
	Not        bool      // for the packets that the rest does not select
	Transport  Transport // 0 for any
	FromPorts  PortRange // ports that packets are sent from, and to
	ToPorts    PortRange
	Narrow     bool // has selectors that no packet of Packet's kind meets: a user, a tunnel
	Action     RuleAction
	Table      int
	Goto       int // the priority where ActionGoto goes on
	Suppress   int // prefixes of this length or shorter don't count, -1 for none
	Protocol   int
}

// PortRange are the ports from First to Last; the zero range is all.
type PortRange struct{ First, Last uint16 }

func (r PortRange) contains(port uint16) bool {
	return r == PortRange{} || r.First <= port && port <= r.Last
}

// String returns the range as `ip rule` takes it.
func (r PortRange) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// RuleAction is what a rule does with packets, FR_ACT_* of linux/fib_rules.h.
type RuleAction int

// The actions of rules.
const (
	ActionTable       RuleAction = 1
	ActionGoto        RuleAction = 2
	ActionNothing     RuleAction = 3
	ActionBlackhole   RuleAction = 6
	ActionUnreachable RuleAction = 7
	ActionProhibit    RuleAction = 8
)

var actionNames = [...]string{ActionGoto: "goto", ActionNothing: "nop", ActionBlackhole: "blackhole", ActionUnreachable: "unreachable", ActionProhibit: "prohibit"}

// Packet is a packet as rules see it. Of one without Transport only the addresses are told.
type Packet struct {
	From, To         netip.Addr
	In               string
	Mark             uint32
	Transport        Transport
	FromPort, ToPort uint16
}

// answerPacket returns the packet that the kernel looks up to see whether the source of p is
// reached by the link that p came in by.
func (p Packet) answerPacket() Packet {
	return Packet{From: p.To, To: p.From, In: "lo", Transport: p.Transport, FromPort: p.ToPort, ToPort: p.FromPort}
}

// protocolKernel is the number of what the kernel makes itself, RTPROT_KERNEL: of rules,
// those to the tables local, main and default.
const protocolKernel = 2

// IsOthers tells whether the rule is neither enipool's nor the kernel's own.
func (r PolicyRule) IsOthers() bool { return !IsOurs(r.Protocol) && r.Protocol != protocolKernel }

// String returns the rule as `ip rule` takes and prints it.
func (r PolicyRule) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "priority %d ", r.Priority)
	if r.Not {
		text.WriteString("not ")
	}
	fmt.Fprintf(&text, "from %s", orAll(r.From))
	if r.To.IsValid() {
		fmt.Fprintf(&text, " to %s", orAll(r.To))
	}
	if r.Mask != 0 {
		fmt.Fprintf(&text, " fwmark %#x/%#x", r.Mark, r.Mask)
	}
	if r.In != "" {
		fmt.Fprintf(&text, " iif %s", r.In)
	}
	text.WriteString(r.transportText())
	switch {
	case r.Action == ActionGoto:
		fmt.Fprintf(&text, " goto %d", r.Goto)
	case r.Action != ActionTable && int(r.Action) < len(actionNames):
		text.WriteString(" " + actionNames[r.Action])
	case r.Table == MainTable:
		text.WriteString(" lookup main")
	default:
		fmt.Fprintf(&text, " lookup %d", r.Table)
	}
	if r.Action == ActionTable && r.Suppress >= 0 {
		fmt.Fprintf(&text, " suppress_prefixlength %d", r.Suppress)
	}
	return text.String()
}

// transportText returns what the rule says of transports and ports.
func (r PolicyRule) transportText() (text string) {
	switch r.Transport {
	case 0:
	case TCP, UDP, SCTP:
		text = " ipproto " + r.Transport.String()
	default:
		text = fmt.Sprintf(" ipproto %d", byte(r.Transport))
	}
	if r.FromPorts != (PortRange{}) {
		text += " sport " + r.FromPorts.String()
	}
	if r.ToPorts != (PortRange{}) {
		text += " dport " + r.ToPorts.String()
	}
	return text
}

// selects tells whether the rule is for the packet.
func (r PolicyRule) selects(p Packet) bool {
	meets := (!r.From.IsValid() || r.From.Contains(p.From)) && (!r.To.IsValid() || r.To.Contains(p.To)) &&
		(r.In == "" || r.In == p.In) && p.Mark&r.Mask == r.Mark && !r.Narrow &&
		(r.Transport == 0 || r.Transport == p.Transport) && r.FromPorts.contains(p.FromPort) && r.ToPorts.contains(p.ToPort)
	return meets != r.Not
}

// Decision is what becomes of a packet by the rules.
type Decision struct {
	Rule  PolicyRule  // that decides
	Route *TableRoute // that it finds; nil: the rule ends the packet by itself
	Found bool        // else no rule has a route for the packet
	// Passed is the rule of others that led past rules in between, to this one; nil: none.
	Passed *PolicyRule
}

// Decide follows the packet through the rules.
func (p Policy) Decide(packet Packet) (decision Decision) {
	from := 0
	for i, rule := range p.Rules {
		if rule.Priority < from || !rule.selects(packet) {
			continue
		}
		switch rule.Action {
		case ActionGoto:
			// One that leads to no rule does nothing.
			if !slices.ContainsFunc(p.Rules, func(to PolicyRule) bool { return to.Priority == rule.Goto }) {
				continue
			}
			if from = rule.Goto; rule.IsOthers() {
				decision.Passed = &p.Rules[i]
			}
		case ActionBlackhole, ActionUnreachable, ActionProhibit:
			decision.Rule, decision.Found = rule, true
			return decision
		case ActionTable:
			best := p.lookupRoute(rule.Table, packet.To)
			if best != nil && best.Type != "throw" && best.Dst.Bits() > rule.Suppress {
				decision.Rule, decision.Route, decision.Found = rule, best, true
				return decision
			}
		}
	}
	return decision
}

// blamedRule returns the rule of others that the decision is due to.
func (d Decision) blamedRule() (rule PolicyRule, is bool) {
	switch {
	case d.Found && d.Rule.IsOthers():
		return d.Rule, true
	case d.Passed != nil:
		return *d.Passed, true
	}
	return PolicyRule{}, false
}

// resultingWay is where the packet goes by the decision.
func (d Decision) resultingWay() Way {
	if d.Route == nil || d.Route.Type != "" {
		return Way{Table: d.Rule.Table, Lost: true}
	}
	return Way{Dev: d.Route.Dev, Gateway: d.Route.Gateway, Table: d.Rule.Table}
}

// lookupRoute returns the table's route to the address: the most specific, then the best
// metric, then the one that the kernel names first.
func (p Policy) lookupRoute(table int, to netip.Addr) *TableRoute {
	var best *TableRoute
	for i := range p.Routes {
		r := &p.Routes[i]
		if r.Table != table || !r.Dst.Contains(to) {
			continue
		}
		if best == nil || r.Dst.Bits() > best.Dst.Bits() || r.Dst == best.Dst && r.Metric < best.Metric {
			best = r
		}
	}
	return best
}

// SortRules brings rules into the order in which the kernel asks them.
func SortRules(rules []PolicyRule) {
	slices.SortStableFunc(rules, func(a, b PolicyRule) int { return a.Priority - b.Priority })
}
