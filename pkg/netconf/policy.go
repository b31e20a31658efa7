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
	Not        bool // for the packets that the rest does not select
	Narrow     bool // has selectors that no packet of Packet's kind meets: ports, a user
	Action     RuleAction
	Table      int
	Goto       int // the priority where ActionGoto goes on
	Suppress   int // prefixes of this length or shorter don't count, -1 for none
	Protocol   int
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

// Packet is a packet as rules see it.
type Packet struct {
	From, To netip.Addr
	In       string
	Mark     uint32
}

// protocolKernel is the number of what the kernel makes itself, RTPROT_KERNEL: of rules,
// those to the tables local, main and default.
const protocolKernel = 2

// IsOthers tells whether the rule is neither enipool's nor the kernel's own.
func (r PolicyRule) IsOthers() bool { return !IsOurs(r.Protocol) && r.Protocol != protocolKernel }

// String returns the rule as `ip rule` takes and prints it.
func (r PolicyRule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "priority %d ", r.Priority)
	if r.Not {
		b.WriteString("not ")
	}
	fmt.Fprintf(&b, "from %s", orAll(r.From))
	if r.To.IsValid() {
		fmt.Fprintf(&b, " to %s", orAll(r.To))
	}
	if r.Mask != 0 {
		fmt.Fprintf(&b, " fwmark %#x/%#x", r.Mark, r.Mask)
	}
	if r.In != "" {
		fmt.Fprintf(&b, " iif %s", r.In)
	}
	switch {
	case r.Action != ActionTable && int(r.Action) < len(actionNames):
		b.WriteString(" " + actionNames[r.Action])
	case r.Table == MainTable:
		b.WriteString(" lookup main")
	default:
		fmt.Fprintf(&b, " lookup %d", r.Table)
	}
	if r.Action == ActionTable && r.Suppress >= 0 {
		fmt.Fprintf(&b, " suppress_prefixlength %d", r.Suppress)
	}
	return b.String()
}

// selects tells whether the rule is for the packet.
func (r PolicyRule) selects(p Packet) bool {
	meets := (!r.From.IsValid() || r.From.Contains(p.From)) && (!r.To.IsValid() || r.To.Contains(p.To)) &&
		(r.In == "" || r.In == p.In) && p.Mark&r.Mask == r.Mark && !r.Narrow
	return meets != r.Not
}

// Decide returns the rule that decides on the packet, and the route it finds; no route
// where the rule ends it by itself. Not found are packets that no rule has a route for.
func (p Policy) Decide(packet Packet) (rule PolicyRule, route *TableRoute, found bool) {
	from := 0
	for _, r := range p.Rules {
		if r.Priority < from || !r.selects(packet) {
			continue
		}
		switch r.Action {
		case ActionGoto:
			from = r.Goto
		case ActionBlackhole, ActionUnreachable, ActionProhibit:
			return r, nil, true
		case ActionTable:
			best := p.lookup(r.Table, packet.To)
			if best != nil && best.Type != "throw" && best.Dst.Bits() > r.Suppress {
				return r, best, true
			}
		}
	}
	return PolicyRule{}, nil, false
}

// lookup returns the table's route to the address: the most specific, then the best
// metric, then the one that the kernel names first.
func (p Policy) lookup(table int, to netip.Addr) *TableRoute {
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
