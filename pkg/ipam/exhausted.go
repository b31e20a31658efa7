package ipam

import (
	"fmt"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Exhausted is returned by AssignPod when no ENI can serve the pod. Its numbers tell people
// the cause; they are right only where the state has everybody's addresses (see State).
type Exhausted struct {
	Device  string  // the only ENI that was asked, "" for all
	ENIs    int     // that were asked
	Tallies []Tally // of each family that a pod gets an address of
	Damaged int
	Ahead   int // pending ADDs that came before and get what is free
	Count       // of all families
}

// Tally is how many addresses of a family there are, state by state, with what keeps pods from those that
// are held.
type Tally struct {
	Family eni.Family
	Count
	Examples string   // some of those that others hold with what holds each, "" if none is
	Unlinked int      // of the held addresses: their ENIs have no link on the node
	NoLinks  []string // why, one for each of those ENIs
}

// Exhaust says that there is no free address on the device, or on all ENIs, in the numbers of now.
func (s *State) Exhaust(device string, now time.Duration) *Exhausted {
	only := map[int]bool{}
	for _, nic := range s.ENIs {
		if device == "" || nic.Device == device {
			only[nic.Index] = true
		}
	}
	asked := func(a eni.Address) bool { return only[a.ENI] }
	e := &Exhausted{Device: device, ENIs: len(only), Damaged: len(s.Damaged), Count: s.Count(now, asked)}
	for _, f := range s.Settings.Families {
		keep := func(a eni.Address) bool { return asked(a) && a.Family() == f }
		t := Tally{Family: f, Count: s.Count(now, keep), Examples: s.heldExamples(keep)}
		t.Unlinked, t.NoLinks = s.countUnlinked(keep)
		e.Tallies = append(e.Tallies, t)
	}
	return e
}

// HeldByOthers is how many addresses another program has. What an ENI without a link has is nobody's.
func (t Tally) HeldByOthers() int { return t.Held - t.Unlinked }

// Error names every number, because this is what ends up in the pod's events.
func (e *Exhausted) Error() string {
	var text strings.Builder
	text.WriteString(e.lack())
	if e.Device != "" {
		fmt.Fprintf(&text, " on %s", e.Device)
	}
	total := 0
	for _, t := range e.Tallies {
		total += t.Total
	}
	fmt.Fprintf(&text, ": %d addresses on %d ENIs", total, e.ENIs)
	for i, t := range e.Tallies {
		switch {
		case len(e.Tallies) == 1:
			text.WriteString(", ")
		case i == 0:
			fmt.Fprintf(&text, ": %s ", t.Family)
		default:
			fmt.Fprintf(&text, "; %s ", t.Family)
		}
		text.WriteString(t.String())
	}
	if e.Damaged > 0 {
		fmt.Fprintf(&text, ", %d with a damaged record", e.Damaged)
	}
	if e.Ahead > 0 {
		pods := "pods"
		if e.Ahead == 1 {
			pods = "pod"
		}
		fmt.Fprintf(&text, "; %d %s waited before this one", e.Ahead, pods)
	}
	return text.String()
}

// lack says which family has no free address. A pod gets one of each from the same ENI: where all
// have some, no ENI has them together, or pods that came before take them.
func (e *Exhausted) lack() string {
	var all, none []string
	for _, t := range e.Tallies {
		all = append(all, t.Family.String())
		if t.Free == 0 {
			none = append(none, t.Family.String())
		}
	}
	switch {
	case len(none) > 0:
		return fmt.Sprintf("no free %s address", strings.Join(none, "+"))
	case len(all) > 1 && e.Ahead == 0:
		return fmt.Sprintf("no ENI with a free address of each of %s", strings.Join(all, "+"))
	}
	return fmt.Sprintf("no free %s address", strings.Join(all, "+"))
}

// String tells people the states of a family's addresses.
func (t Tally) String() string {
	text := fmt.Sprintf("%d used, %d cooling", t.Used, t.Cooling)
	if t.Cooling > 0 {
		text += fmt.Sprintf(" (next free in %s)", t.NextFree.Round(100*time.Millisecond))
	}
	if t.Releasing > 0 {
		text += fmt.Sprintf(", %d releasing", t.Releasing)
	}
	if t.Reserved > 0 {
		text += fmt.Sprintf(", %d reserved for other pods", t.Reserved)
	}
	if others := t.HeldByOthers(); others > 0 {
		text += fmt.Sprintf(", %d held by others", others)
		if t.Examples != "" {
			text += " (" + t.Examples + ")"
		}
	}
	if t.Unlinked > 0 {
		where := "an ENI without a link"
		if len(t.NoLinks) > 1 {
			where = "ENIs without a link"
		}
		text += fmt.Sprintf(", %d on %s (%s)", t.Unlinked, where, strings.Join(t.NoLinks, "; "))
	}
	if t.Free > 0 {
		text += fmt.Sprintf(", %d free", t.Free)
	}
	return text
}
