package simulate

import (
	"strconv"
	"strings"
	"time"
)

// traceClock is the time of a trace, which its lines move on.
type traceClock struct {
	now   time.Duration
	going bool      // there was a line
	dated bool      // times are RFC 3339
	start time.Time // of a dated one
}

// moveTo goes on to the time of a line. If it can't it tells what is right.
func (c *traceClock) moveTo(text string) (want string) {
	const seconds, date = "seconds with at most three decimals like 12.5", "RFC 3339 like 2026-01-02T15:04:05Z"
	first := !c.going
	at, ok := parseSeconds(text)
	if first && !ok || c.dated {
		var point time.Time
		var err error
		point, err = time.Parse(time.RFC3339, text)
		ok = err == nil
		if first {
			c.dated, c.start = ok, point
		}
		at = point.Sub(c.start).Truncate(time.Millisecond)
	}
	switch {
	case !ok && first:
		return seconds + ", or " + date
	case !ok && c.dated:
		return date + ", as on the lines before"
	case !ok:
		return seconds + ", as on the lines before"
	case at < c.now:
		return "no earlier than on the line before: sort the lines by time"
	case at > longestTrace:
		return "at most a year after the start; dates are written in RFC 3339"
	}
	c.now, c.going = at, true
	return ""
}

// parseSeconds reads a number without sign and exponent to the millisecond.
func parseSeconds(text string) (time.Duration, bool) {
	whole, part, dotted := strings.Cut(text, ".")
	if dotted && (part == "" || len(part) > 3) {
		return 0, false
	}
	s, err := strconv.ParseUint(whole, 10, 64)
	ms, errPart := strconv.ParseUint((part + "000")[:3], 10, 64)
	if err != nil || errPart != nil {
		return 0, false
	}
	s = min(s, uint64(2*longestTrace/time.Second)) // too long it stays, but must not overflow
	return time.Duration(s)*time.Second + time.Duration(ms)*time.Millisecond, true
}
