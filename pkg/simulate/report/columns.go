package report

import (
	"math"

	"github.com/enipool/enipool/pkg/simulate"
)

// column is a number that settings are compared by. Of each, less is better.
type column struct {
	group, name string
	means       string // in plain language
	of          func(simulate.Result) float64
	text        func(float64) string
}

// secondsOf makes a time a number for a column, and spanOf its text.
func secondsOf(s simulate.Seconds) float64 { return float64(s) }
func spanOf(n float64) string              { return durationText(simulate.Seconds(n)) }

// The groups of columns.
const (
	waits = "waits"
	idle  = "idle"
	calls = "calls"
)

// sheet is a table: a row for each setting, and columns.
type sheet []column

// sheetsOf returns the tables in which settings are compared.
func sheetsOf(results []simulate.Result) []sheet {
	list := []sheet{usualColumns()}
	for _, r := range results {
		if r.Served != nil {
			return append(list, servedColumns())
		}
	}
	return list
}

// usualColumns returns what settings are compared by, whatever was played.
func usualColumns() sheet {
	return sheet{
		{waits, "p50", "Half of the pods waited at most this long for their address.",
			func(r simulate.Result) float64 { return secondsOf(r.Waits.P50) }, spanOf},
		{waits, "p99", "99 of 100 pods waited at most this long.",
			func(r simulate.Result) float64 { return secondsOf(r.Waits.P99) }, spanOf},
		{waits, "max", "The pod that waited longest.",
			func(r simulate.Result) float64 { return secondsOf(r.Waits.Max) }, spanOf},
		{waits, "failed", "ADDs that ended without an address. Their pods tried again, as the kubelet does.",
			func(r simulate.Result) float64 { return float64(r.Waits.Failed) }, countText},
		{waits, "never", "Pods that got no address as long as they lived.",
			func(r simulate.Result) float64 { return float64(r.Waits.Never) }, countText},
		{idle, "mean", "Addresses on nodes that no pod had, on average over the time played.",
			func(r simulate.Result) float64 { return r.Idle.Mean }, meanText},
		{idle, "max", "The most idle addresses at any time.",
			func(r simulate.Result) float64 { return float64(r.Idle.Max) }, countText},
		{idle, "addr-hours", "Address-hours: an address that is idle for an hour is one.",
			func(r simulate.Result) float64 { return r.Idle.AddressHours }, meanText},
		{calls, "total", "Requests to the cloud.",
			func(r simulate.Result) float64 { return float64(r.Calls.Total) }, countText},
		{calls, "changes", "Requests that change something; the others only look.",
			func(r simulate.Result) float64 { return float64(r.Calls.Changes()) }, countText},
		{calls, "attached", "Requests to make an ENI and attach it to a node, those that were refused among them.",
			func(r simulate.Result) float64 { return float64(r.Calls.Attachments) }, countText},
		{calls, "flaps", "How often a node asked for addresses within " + durationText(simulate.Seconds(simulate.FlapTime)) + " of releasing some.",
			func(r simulate.Result) float64 { return float64(r.Calls.Flaps) }, countText},
		{calls, "throttled", "Requests that the cloud refused because there were too many.",
			func(r simulate.Result) float64 { return float64(r.Calls.Throttled) }, countText},
	}
}

// cell is a number of a result as people read it.
type cell struct {
	Text   string
	Lowest bool // of its column, where that says something
}

// cellRows returns the cells of each result.
func (s sheet) cellRows(results []simulate.Result) [][]cell {
	list := make([][]cell, len(results))
	for _, c := range s {
		lowest, differ := c.lowestText(results)
		for i, r := range results {
			text := c.cellOf(r)
			list[i] = append(list[i], cell{text, differ && text == lowest})
		}
	}
	return list
}

// none is the text of a number that does not exist.
const none = "-"

// cellOf returns the column's number of a result; where no pod came, none waited.
func (c column) cellOf(r simulate.Result) string {
	if r.Pods == 0 && c.group == waits || r.Served == nil && (c.group == allServed || c.group == changes) {
		return none
	}
	return c.text(c.of(r))
}

// lowestText returns the text of the column's lowest number and whether the texts
// differ: what looks the same to people is no better.
func (c column) lowestText(results []simulate.Result) (text string, differ bool) {
	least, seen := math.Inf(1), map[string]bool{}
	for _, r := range results {
		one := c.cellOf(r)
		if one == none {
			continue
		}
		seen[one] = true
		if n := c.of(r); n < least {
			least, text = n, one
		}
	}
	return text, len(seen) > 1
}
