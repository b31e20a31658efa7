package netconf

import (
	"fmt"
	"slices"
)

// Fits tells whether the way is as it should be.
func (p Probe) Fits(w Way) bool {
	const defaultTable = 253 // behind main, the system's too
	switch {
	case w.Lost:
		return false
	case len(p.Wrong) > 0:
		return w.Dev == p.Dev || !slices.Contains(p.Wrong, w.Dev)
	case p.Main:
		return w.Table == MainTable || w.Table == defaultTable || w.Dev == p.Dev
	}
	return w.Dev == p.Dev && (w.Gateway == p.Gateway || p.Inside && !w.Gateway.IsValid())
}

// Diverted returns a line for each rule of others by which packets of the probes do not
// go the way they should, with what becomes of them and what to do, and for packets that
// have no way because what is the system's is gone. Where the kernel answers otherwise for
// another reason that is told elsewhere: a route in a table of ours, or a rule of ours that
// is missing.
func Diverted(probes []Probe, ways []Way, policy map[bool]Policy) []string {
	var found []diversion
	told := map[[2]string]int{} // which probe has told of a rule and pods first
	for i, probe := range probes {
		for _, diverted := range probe.findDiversions(ways[i], policy[probe.From.Is6()]) {
			// What a rule does to what pods send is enough.
			about := [2]string{diverted.rule, probe.Pods}
			if first, is := told[about]; is && first != i && !probe.isAllSent() {
				continue
			} else if !is {
				told[about] = i
			}
			if at := slices.IndexFunc(found, diverted.sameBut); at >= 0 {
				found[at].where = "" // into the VPC and out of it alike
				if probe.Main {
					found[at].remedy = diverted.remedy // helps the others, too
				}
				continue
			}
			found = append(found, diverted)
		}
	}
	var lines []string
	for _, d := range found {
		lines = append(lines, d.String())
	}
	return append(lines, noWays(probes, ways, policy)...)
}

// diversion is what a rule of others does to packets.
type diversion struct{ rule, before, packets, where, fate, remedy string }

func (d diversion) sameBut(o diversion) bool {
	d.where, d.remedy = o.where, o.remedy
	return d == o
}

// String tells it in a line.
func (d diversion) String() string {
	return fmt.Sprintf("a rule that is not enipool's comes before %s, %s: what %s%s %s; %s", d.before, d.rule, d.packets, d.where, d.fate, d.remedy)
}

// findDiversions returns what rules of others do to the packet, and to the answers to it.
func (p Probe) findDiversions(w Way, policy Policy) (found []diversion) {
	if p.Fits(w) {
		return nil
	}
	decision := policy.Decide(p.Packet)
	rule, blamed := decision.blamedRule()
	// To be led past our rules does no harm to a packet that takes its way all the same.
	harmless := rule.Action == ActionGoto && p.Fits(decision.resultingWay())
	// Where the kernel found the route in another table, the rule is not what decided.
	decided := w.Lost || decision.resultingWay().Table == w.Table
	if blamed && !harmless && decided {
		found = append(found, diversion{rule.String(), rule.beforeText(), p.What, p.whereText(), decision.fateText(), rule.remedyText(p)})
	}
	if !w.Lost || p.Arrives {
		return found
	}
	// The kernel also drops what comes in by another link than the answer would leave by.
	decision = policy.Decide(p.answerPacket())
	rule, blamed = decision.blamedRule()
	if back := decision.resultingWay(); blamed && (back.Lost || back.Dev != p.In) {
		where := ""
		if len(p.Wrong) > 0 {
			where = p.whereText()
		}
		found = append(found, diversion{rule.String(), rule.beforeText(), "is sent to " + p.Pods, where, decision.fateText(), rule.remedyText(p)})
	}
	return found
}

// isAllSent tells whether the probe is of all that pods send.
func (p Probe) isAllSent() bool { return !p.Arrives && len(p.Wrong) == 0 && p.What == p.Pods+" send" }

func (p Probe) whereText() string {
	switch {
	case len(p.Wrong) > 0:
		return ", as far as the rule selects it,"
	case !p.isAllSent():
		return ""
	case p.Inside:
		return " into the VPC"
	}
	return " out of the VPC"
}

// fateText says where a packet goes by the decision.
func (d Decision) fateText() string {
	past, its := "", "its"
	if rule, _ := d.blamedRule(); rule.Action == ActionGoto {
		past, its = "passes by enipool's rules and ", "the"
	}
	switch {
	case d.Route == nil:
		return past + "ends there"
	case d.Route.Type != "":
		return fmt.Sprintf("%sends there (%s)", past, d.Route)
	}
	return fmt.Sprintf("%sleaves by %s route %s", past, its, d.Route)
}

// priorityPast is right behind enipool's rules.
const priorityPast = PrioritySource + 1

// beforeText says what of the packet's rules the rule comes before.
func (r PolicyRule) beforeText() string {
	if r.Priority > PrioritySource {
		return "the kernel's to the main table, which enipool leaves these packets to"
	}
	return "enipool's"
}

// remedyText says what a person can do about the rule.
func (r PolicyRule) remedyText(p Probe) string {
	ip := "ip"
	if p.From.Is6() {
		ip = "ip -6"
	}
	remove := fmt.Sprintf("remove it (%s rule del %s)", ip, r)
	past := fmt.Sprintf("let pods pass it by (%s rule add priority %d from %s lookup main)", ip, priorityPast, p.Net)
	switch {
	case r.Priority > PrioritySource:
		return remove + " or " + past
	case p.Main: // what it does to such packets it does behind enipool's rules, too
		return fmt.Sprintf("%s or have what made it take a priority above %d and %s, or leave the pods' addresses out", remove, priorityPast, past)
	}
	return fmt.Sprintf("%s or have what made it take a priority above %d, or leave the pods' addresses out", remove, PrioritySource)
}
