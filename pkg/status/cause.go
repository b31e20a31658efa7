package status

import (
	"fmt"
	"time"
)

// Cause says in one line what is wrong now, "" if nothing is. An agent of the previous release
// tells no causes: then it is the first of what it tells in their place.
func (s Status) Cause(now time.Time) string {
	text := s.Problem
	switch {
	case text != "" || len(s.Causes) > 0:
	case len(s.Blockers) > 0:
		text = s.Blockers[0]
	}
	if s.Health.Faulty {
		since := fmt.Sprintf("%s for %s: ", s.Health.Reason, span(now.Sub(s.FaultSince)))
		if text == "" {
			text = s.Health.Message
		}
		text = since + text
	}
	if more := len(s.Causes) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more: -o json has all)", more)
	}
	return text
}

// NextTry says in one line when what the first cause is about is tried again, "" if nothing is
// known of that.
func (s Status) NextTry(now time.Time) string {
	switch {
	case len(s.Causes) > 0 && s.Causes[0].Next.After(now):
		return "in " + max(s.Causes[0].Next.Sub(now).Round(time.Second), time.Second).String()
	case len(s.Causes) == 0 && len(s.Backoff) > 0:
		return s.Backoff[0]
	}
	return ""
}
