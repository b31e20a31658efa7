package web

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// chart is demand, need and target of the last hour, or of the part of it that is known, as paths of an SVG.
type chart struct {
	Most   int
	Span   string // how long ago it begins
	Lines  []chartLine
	Rows   []chartRow // the same as a table, the newest first
	Height int
	Width  int
}

type chartLine struct{ Name, Path, Now string }

type chartRow struct{ When, Demand, Need, Target string }

const (
	chartWidth  = 1000
	chartHeight = 100
	tableTime   = 10 * time.Minute
	leastSpan   = 5 * time.Minute // less would be one step
)

// chartOf draws the samples.
func chartOf(samples []sizeSample, now time.Time) chart {
	c := chart{Height: chartHeight, Width: chartWidth}
	if len(samples) == 0 {
		return c
	}
	for _, s := range samples {
		c.Most = max(c.Most, s.high.demand, s.high.need, s.high.target)
	}
	span := min(max(now.Sub(samples[0].at), leastSpan), kept).Round(time.Minute)
	c.Span = strings.TrimSuffix(span.String(), "0s")
	// A line of its own for each, in the order in which one is made of the other.
	last := samples[len(samples)-1].end
	for _, line := range []struct {
		name string
		of   func(sizes) int
	}{
		{"demand", func(s sizes) int { return s.demand }},
		{"need", func(s sizes) int { return s.need }},
		{"target", func(s sizes) int { return s.target }},
	} {
		c.Lines = append(c.Lines, chartLine{line.name, pathOf(samples, line.of, now, span, c.Most), known(line.of(last))})
	}
	c.Rows = rowsOf(samples, now)
	return c
}

// pathOf draws a line that stays where it is until something changes, with a gap where nothing is known.
func pathOf(samples []sizeSample, of func(sizes) int, now time.Time, span time.Duration, most int) string {
	var path strings.Builder
	was := math.MinInt
	line := func(at time.Time, value int) {
		x := math.Round(min(max(1-float64(now.Sub(at))/float64(span), 0), 1) * chartWidth)
		y := float64(chartHeight) * (1 - float64(value)/float64(max(most, 1)))
		switch {
		case value < 0: // nobody knows: the line ends
		case was < 0:
			fmt.Fprintf(&path, "M%g %.4g", x, y)
		case value != was:
			fmt.Fprintf(&path, "H%gV%.4g", x, y)
		}
		was = value
	}
	for i, s := range samples {
		line(s.at, of(s.high))
		if ends := s.at.Add(sampleTime); of(s.end) != of(s.high) && (i+1 == len(samples) || samples[i+1].at.After(ends)) {
			line(ends, of(s.end))
		}
	}
	if was >= 0 {
		fmt.Fprintf(&path, "H%d", chartWidth)
	}
	return path.String()
}

// rowsOf returns the highest values of each ten minutes, the newest first.
func rowsOf(samples []sizeSample, now time.Time) (rows []chartRow) {
	for to := now; to.After(now.Add(-kept)); to = to.Add(-tableTime) {
		from := to.Add(-tableTime)
		most, is := heldAt(samples, from) // what it was at first
		for _, s := range samples {
			if s.at.Before(from) || !s.at.Before(to) && to.Before(now) {
				continue // what is at a border is the later row's
			}
			if !is {
				most, is = s.high, true
			}
			most = sizes{max(most.demand, s.high.demand), max(most.need, s.high.need), max(most.target, s.high.target)}
		}
		if is {
			rows = append(rows, chartRow{from.UTC().Format("15:04") + " to " + to.UTC().Format("15:04"), known(most.demand), known(most.need), known(most.target)})
		}
	}
	return rows
}

// heldAt returns what the sizes were then, false before the first sizeSample.
func heldAt(samples []sizeSample, then time.Time) (at sizes, is bool) {
	for _, s := range samples {
		if !s.at.Before(then) {
			break
		}
		at, is = s.end, true
	}
	return at, is
}

// known is a number, and a word where there is none.
func known(n int) string {
	if n < 0 {
		return "not known"
	}
	return fmt.Sprint(n)
}
