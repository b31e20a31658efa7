package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// entry is a line of an agent's log.
type entry struct {
	time   time.Time
	level  string
	msg    string
	fields map[string]any
}

// parseEntry never fails: what is no JSON is a message, from a crash for one.
func parseEntry(line []byte) entry {
	e := entry{time: time.Now(), level: "ERROR"}
	if json.Unmarshal(line, &e.fields) != nil {
		e.msg, e.fields = string(line), nil
		return e
	}
	e.level, e.msg = e.fieldText("level"), e.fieldText("msg")
	if t, err := time.Parse(time.RFC3339Nano, e.fieldText("time")); err == nil {
		e.time = t
	}
	for _, key := range []string{"time", "level", "msg"} {
		delete(e.fields, key)
	}
	return e
}

// fieldText returns a field as text, "" if it is not there.
func (e entry) fieldText(key string) string {
	if v, ok := e.fields[key]; ok {
		return fmt.Sprint(v)
	}
	return ""
}

// quiet are messages of no interest as long as all goes well.
var quiet = []string{"started", "stopped", "kernel updated", "serving metrics and health"}

// isWorthShowing tells whether people want to see the entry.
func (e entry) isWorthShowing() bool { return e.level != "INFO" || !slices.Contains(quiet, e.msg) }

// line is the entry in columns: what is done, to what, how many, why.
func (e entry) line() string {
	what, shown := e.object()
	count := e.fieldText("count")
	text := []string{fmt.Sprintf("%-7s %-18s %2s ", e.msg, what, count)}
	if what+count == "" {
		text = []string{e.msg + ":"}
	}
	if reason := e.fieldText("reason"); reason != "" {
		text = append(text, reason)
	}
	for _, key := range slices.Sorted(maps.Keys(e.fields)) {
		if !slices.Contains(shown, key) {
			text = append(text, fmt.Sprintf("%s=%v", key, e.fields[key]))
		}
	}
	return strings.TrimSuffix(strings.Join(text, " "), ":") // with nothing behind it
}

// object is what the entry is about, and which fields need not be shown any more.
func (e entry) object() (what string, shown []string) {
	shown = []string{"eni", "device", "addresses", "count", "reason"}
	if what = e.fieldText("eni"); what != "" {
		return strings.TrimSpace(what + " " + e.fieldText("device")), shown
	}
	if what = e.fieldText("subnet"); what != "" {
		return what, append(shown, "subnet")
	}
	what, more, _ := strings.Cut(e.fieldText("addresses"), " ")
	if more != "" {
		what += " ..."
	}
	return what, shown
}
