package status

import (
	"fmt"
	"strings"
	"time"
)

// Cause says in one line what is wrong now, "" if nothing is. An agent of the previous release
// tells no causes: then it is the first of what it tells in their place.
func (s Status) Cause(now time.Time) string {
	text := s.mainCause()
	if s.Health.Faulty {
		text = s.withFault(text, now)
	}
	if more := len(s.Causes) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more: -o json has all)", more)
	}
	return text
}

// mainCause is what is wrong now, as the agent has it.
func (s Status) mainCause() string {
	if s.Problem == "" && len(s.Causes) == 0 && len(s.TargetCauses) > 0 {
		return s.TargetCauses[0]
	}
	return s.Problem
}

// withFault adds the fault that the cluster is told of to what is wrong now. The fault lags behind: it
// is told for a while after it is over, and takes over another cause only once that has lasted.
func (s Status) withFault(text string, now time.Time) string {
	report, age := s.Health, wholeSeconds(now.Sub(s.FaultSince))
	switch {
	case len(s.Causes) > 0 && (s.Causes[0].Reason == "" || s.Causes[0].Reason == report.Reason):
		return fmt.Sprintf("%s for %s: %s", report.Reason, age, text)
	case len(s.Causes) == 0 && !s.FaultOver.IsZero():
		over := fmt.Sprintf("over for %s: %s, which lasted %s; it is reported until all has been well for a while",
			wholeSeconds(now.Sub(s.FaultOver)), report.Reason, wholeSeconds(s.FaultOver.Sub(s.FaultSince)))
		if text == "" {
			return over
		}
		return fmt.Sprintf("%s (%s)", text, over)
	case text == "": // pods lack addresses, and nothing failed
		return fmt.Sprintf("%s for %s: %s", report.Reason, age, report.Message)
	}
	return fmt.Sprintf("%s (reported as %s for %s)", text, report.Reason, age)
}

// NextTry says in one line when what Cause tells is tried again, "" if that is not known.
func (s Status) NextTry(now time.Time) string {
	var next time.Time
	switch {
	case len(s.Causes) > 0:
		next = s.Causes[0].Next
	case s.Problem == "" && len(s.TargetCauses) > 0 && !s.TargetNext.IsZero():
		next = s.TargetNext
	default:
		next = s.backoffEnd()
	}
	if !next.After(now) {
		return ""
	}
	return "in " + max(next.Sub(now).Round(time.Second), time.Second).String()
}

// backoffEnd returns when the first back-off from what is told as wrong ends, the zero time where
// there is none. Others are about something else: a release that is tried again helps no pod.
func (s Status) backoffEnd() (first time.Time) {
	for _, line := range s.Backoff { // "releases for 20s: throttled"
		before, why, _ := strings.Cut(line, ": ")
		if why == "" || !strings.HasSuffix(s.mainCause(), why) {
			continue
		}
		wait, err := time.ParseDuration(before[strings.LastIndexByte(before, ' ')+1:])
		if end := s.Written.Add(wait); err == nil && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}
