package netconf

import (
	"fmt"
	"slices"
	"strings"
)

// PriorityMain is where the kernel has its rule to the main table.
const PriorityMain = 32766

// noWays returns a line for each family where the kernel would drop packets of the probes
// because no rule has a route for them, so that no rule of others is to blame: somebody took
// away what is the system's, as `ip rule flush` does.
func noWays(probes []Probe, ways []Way, policy map[bool]Policy) []string {
	var lines []string
	for _, v6 := range []bool{false, true} {
		rules, ip := policy[v6], "ip"
		if v6 {
			ip = "ip -6"
		}
		var pods, inside []string
		for i, probe := range probes {
			if probe.From.Is6() != v6 || !ways[i].Lost || !rules.lacksRoute(probe) {
				continue
			}
			if !slices.Contains(pods, probe.Pods) {
				pods = append(pods, probe.Pods)
			}
			if probe.Main && probe.Inside {
				inside = append(inside, fmt.Sprintf("the kernel has no way for what %s%s: no rule has a route to %s; put the route of the node's subnet back (%s route)", probe.What, probe.whereText(), probe.To, ip))
			}
		}
		switch {
		case len(pods) > 0 && !rules.asksMain():
			lines = append(lines, fmt.Sprintf("the kernel has no way for packets of %s: its rule priority %d from all lookup main is missing; put it back: %s rule add priority %[2]d lookup main",
				strings.Join(pods, " and "), PriorityMain, ip))
		default:
			// That there is no way out of the VPC may be meant so.
			lines = append(lines, inside...)
		}
	}
	return lines
}

// lacksRoute tells whether the rules find no route for the packet, or none back to where it
// comes from: then the kernel drops it, too.
func (p Policy) lacksRoute(probe Probe) bool {
	return !p.Decide(probe.Packet).Found || !p.Decide(probe.answerPacket()).Found
}

// asksMain tells whether there is a rule by which the main table is asked for all packets.
func (p Policy) asksMain() bool {
	return slices.ContainsFunc(p.Rules, func(r PolicyRule) bool {
		all := PolicyRule{Priority: r.Priority, Action: ActionTable, Table: MainTable, Suppress: -1, Protocol: r.Protocol}
		return r == all
	})
}
