package status

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Lines tells people the status at now, the most important first: a label, a tab
// and a text each. What is as it should be takes no line. process is what the agent's lock
// tells: that counts before what the agent said of itself.
func (s Status) Lines(now time.Time, process Process) []string {
	var text lines
	state := "ready"
	if !s.Ready {
		state = "not ready"
	}
	heard := s.LastHeard()
	age := now.Sub(heard)
	lost := s.whyUnheard(now, process)
	if lost != "" {
		end := "; "
		if strings.HasSuffix(lost, "?") {
			end = " "
		}
		text.add("agent", "%s%slast heard of %s (%s)", lost, end, describeAge(age), heard.UTC().Format(time.RFC3339))
		text.add("was", "%s, mode %s", state, s.describeMode())
	} else {
		text.add("agent", "%s, mode %s, heard %s", state, s.describeMode(), describeAge(age))
	}
	text.addEach("cause", s.Cause(now))
	if lost == "" {
		text.addEach("next try", s.NextTry(now))
	}
	if r := s.Refused; r != nil {
		text.add("refused", "%s", r.describeAt(", "+describeAge(now.Sub(r.Since))))
	}
	text.add("demand", "%s", s.describeSizing())
	if s.Watched && !s.Synced {
		text.add("pods", "not known, the API server has not told them yet: no address goes back")
	}
	text.add("limits", "%s", s.describeLimits())
	if c := s.Health.Capacity; s.Health.Reason != "" && c >= 0 && c < s.Most {
		until := "as long as there are no more addresses"
		if !s.Health.Faulty && len(s.Causes)+len(s.TargetCauses) == 0 { // the number follows later, so that it does not go up and down
			until = "until more addresses could be had for a while"
		}
		text.add("capacity", "%d pods, %s", c, until)
	}
	if s.Prefixes != "" {
		text.add("prefixes", "%s", s.Prefixes)
	}
	if s.FastPath != nil {
		text.add("fast path", "%s", s.fastPath(now, process))
	}
	if lost == "" {
		text.addEach("in flight", s.InFlight...)
	} else {
		for _, step := range s.InFlight {
			text.add("was in flight", "%s, when it was last heard of (%s)", step, describeAge(age))
		}
	}
	text.addEach("left out", s.LeftOut...)
	text.addEach("unused", s.Unused...)
	if n := s.Addresses.Lost; n > 0 {
		text.add("lost", "%s that pods use and the cloud took away", countAddresses(n))
	}
	if n := s.Addresses.HeldByOthers(); n > 0 {
		text.add("held", "%s that others have: see below; pool check says what to do", countAddresses(n))
	}
	if n, claimed := s.Addresses.Reserved, s.Addresses.Claimed; n+claimed > 0 {
		text.add("reserved", "%s for pods that are to come, %d more that pods have", countAddresses(n), claimed)
	}
	if n := s.Addresses.Unlinked; n > 0 {
		text.add("no link", "%s on ENIs that have no link on this node: no pod gets them until it is back", countAddresses(n))
	}
	text.addEach("claimed", s.Shared...)
	text.addEach("undone", s.undoneLines()...)
	text.addEach("host ports", s.PortConflicts...)
	if s.AskedBack > 0 {
		text.add("operator", "asks this node to do without %d slots: pods of other nodes wait, and the subnets that could serve them have no addresses left", s.AskedBack)
	}
	if s.StaleAllocations > 0 {
		text.add("stale", "%s whose sandboxes are gone, about to be freed", countAddresses(s.StaleAllocations))
	}
	return text
}

// UndoneLines tells the first repairs that don't last and counts the others: who flushes a
// table undoes the routes of all pods.
func (s Status) UndoneLines() (list []string) {
	const few = 3
	for i, u := range s.Undone[:min(few, len(s.Undone))] {
		if i == 0 {
			list = append(list, u.String())
			continue
		}
		list = append(list, u.countText()) // the same sentence again is not read
	}
	if more := len(s.Undone) - few; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return list
}

// undoneLines are UndoneLines without the one that stands there as the cause.
func (s Status) undoneLines() []string {
	list := s.UndoneLines()
	if len(list) > 0 && strings.Contains(s.mainCause(), list[0]) {
		return list[1:]
	}
	return list
}

// describeMode is the mode, with the strategy where the mode has one.
func (s Status) describeMode() string {
	if s.Strategy == "" || s.Mode != "batch" {
		return s.Mode
	}
	return s.Mode + " by " + s.Strategy
}

// describeSizing is how the demand became the target.
func (s Status) describeSizing() string {
	text := fmt.Sprintf("%d", s.Demand)
	switch {
	case s.Synced && s.PendingADDs > 0:
		text += fmt.Sprintf(" (%d pods, %d wait)", s.Pods, s.PendingADDs)
	case s.Synced:
		text += fmt.Sprintf(" (%d pods)", s.Pods)
	case s.PendingADDs > 0:
		text += fmt.Sprintf(" (%d wait)", s.PendingADDs)
	}
	switch {
	case s.Limited():
		text += fmt.Sprintf(", need %d, target %d", s.Need, s.Target)
	case s.Target > 0:
		text += fmt.Sprintf(", target %d by the agent before", s.Target)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// Limited tells whether the cloud has told the node's limits since the agent was started.
func (s Status) Limited() bool { return s.ENILimit > 0 }

// describeLimits are how much the node can hold.
func (s Status) describeLimits() string {
	if s.Limited() {
		return fmt.Sprintf("%d slots, %d of %d ENIs, %s", s.Most, s.ENIs, s.ENILimit, s.describePods())
	}
	why, enis := "before the cloud has answered", ""
	if s.Ready {
		why = "yet: the cloud was not asked since the agent was started, nothing needs it"
	}
	switch {
	case s.ENIs == 1:
		enis = "1 ENI, "
	case s.ENIs > 1:
		enis = fmt.Sprintf("%d ENIs, ", s.ENIs)
	}
	return "not known " + why + "; " + enis + s.describePods()
}

// describePods is how many pods the node may run, and who says so.
func (s Status) describePods() string {
	if s.MaxPodsSource == "" {
		return fmt.Sprintf("%d pods", s.MaxPods)
	}
	return fmt.Sprintf("%d pods (%s)", s.MaxPods, s.MaxPodsSource)
}

func countAddresses(n int) string {
	if n == 1 {
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}

// describeAge is in whole seconds. A clock that was set back makes it "now".
func describeAge(d time.Duration) string {
	if d < time.Second {
		return "now"
	}
	return wholeSeconds(d) + " ago"
}

// wholeSeconds is in whole seconds and never below 0.
func wholeSeconds(d time.Duration) string { return max(d, 0).Truncate(time.Second).String() }

type lines []string

// add adds a line. What comes from the cloud must not move the cursor or the
// columns of who prints it.
func (l *lines) add(label, format string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	*l = append(*l, label+":\t"+text)
}

// addEach adds a line for each text that is not empty.
func (l *lines) addEach(label string, texts ...string) {
	for _, t := range texts {
		if t != "" {
			l.add(label, "%s", t)
		}
	}
}
