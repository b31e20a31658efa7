package operator

import (
	"fmt"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// Lines returns what is known of a node for people: first what it comes to, then the rest.
func (w Why) Lines(now time.Time) []string {
	lines := []string{w.verdict(now)}
	say := func(format string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(format, args...)) }
	if w.Wrong != "" {
		say("nothing is done for it: %s", w.Wrong)
	}
	if awaits := w.Awaits; awaits != "" {
		if len(w.Causes) > 0 { // they are said below
			awaits = strings.TrimSuffix(awaits, ": "+w.Causes[0].Message)
		}
		say("that waits for %s", awaits)
	}
	for _, c := range w.Causes {
		text := c.Reason + ": " + c.Message
		if c.Next != nil {
			text += "; tried again " + until(now, *c.Next)
		}
		say("%s", text)
	}
	for _, q := range w.Queue {
		say("waits for a token of %s%s, class %s, behind %d others; expected %s", q.Action, about(q.Object), q.Class, q.Before, until(now, q.Expected))
	}
	for _, c := range w.Calls {
		place := c.Object
		if place == "" && c.Subnet != "" {
			place = "in " + c.Subnet
		}
		say("under way since %s: %s%s", c.Since.Format(time.TimeOnly), c.What, about(place))
	}
	if w.Releasing > 0 {
		say("%d addresses go back to the cloud", w.Releasing)
	}
	if w.Quarantined > 0 {
		say("%d addresses are quarantined: a late call may still take them away", w.Quarantined)
	}
	if w.Reclaim > 0 {
		say("it is asked for %d idle slots: pods of other nodes wait", w.Reclaim)
	}
	if c := w.Cloud; c != nil {
		say("the cloud shows %d ENIs with %d addresses (%s ago), of %s%s", c.ENIs, c.Addresses, now.Sub(c.At).Truncate(time.Second), orUnknown(c.Limits), c.odd())
		say("subnets for a new ENI: %s", orNone(strings.Join(c.Subnets, ", ")))
	}
	if w.Next != nil {
		say("looked at again %s", until(now, *w.Next))
	}
	return lines
}

// verdict says in one line how a node is.
func (w Why) verdict(now time.Time) string {
	mode := crd.Mode(w.Mode)
	switch {
	case mode == crd.Self && crd.Mode(w.Asked) == crd.Operator:
		return fmt.Sprintf("%s: its agent has asked the operator to take its calls over, and has no answer yet", w.Node)
	case mode == "":
		return fmt.Sprintf("%s: no agent has asked for anything here: the node's agent calls the cloud itself, does not run, or can't write its NodeNetwork, which its log would say", w.Node)
	case mode == crd.Self:
		return fmt.Sprintf("%s: its agent calls the cloud itself", w.Node)
	case mode == crd.Joining:
		return fmt.Sprintf("%s: the operator takes its calls over; nobody makes new ones", w.Node)
	case mode == crd.Leaving:
		return fmt.Sprintf("%s: its agent takes its calls over; the operator makes no new ones", w.Node)
	}
	text := fmt.Sprintf("%s: %d of %d slots", w.Node, w.Have, w.Want)
	if w.Waiting > 0 {
		text += fmt.Sprintf(", %d pods wait", w.Waiting)
	}
	if w.Since != nil {
		text += " for " + now.Sub(*w.Since).Truncate(time.Second).String()
	}
	if w.Class != "" {
		text += ", class " + w.Class
	}
	return text
}

// odd says what of the node's ENIs is not as it should be.
func (c InCloud) odd() (text string) {
	if c.Others > 0 {
		text += fmt.Sprintf("; %d ENIs of others are attached", c.Others)
	}
	if c.Loose > 0 {
		text += fmt.Sprintf("; %d ENIs that were made for it are attached nowhere", c.Loose)
	}
	if c.Error != "" {
		text += "; " + c.Error
	}
	return text
}

func until(now, at time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + max(time.Second, at.Sub(now).Round(time.Second)).String()
}

func about(object string) string {
	if object == "" {
		return ""
	}
	return " " + object
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func orUnknown(text string) string {
	if text == "" {
		return "limits that are not known yet"
	}
	return text
}
