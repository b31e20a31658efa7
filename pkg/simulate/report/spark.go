package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/simulate"
)

// levels are the heights of a sparkline.
var levels = []rune("▁▂▃▄▅▆▇█")

// spark is a kind of sparkline: a number of bins, and how high the highest is.
// Sparks of one scale compare with each other.
type spark struct {
	name, scale string
	of          func(simulate.Bin) int
	sum         bool // characters show the sum of their bins, not the most
	rare        bool // left out where it is always 0
}

// allSparks returns the kinds of sparklines. Calls that change nothing have none: they are so many
// that the others could not be seen beside them.
func allSparks() []spark {
	return []spark{
		{name: "demand", scale: "addresses", of: func(b simulate.Bin) int { return b.Demand }},
		{name: "owned", scale: "addresses", of: func(b simulate.Bin) int { return b.Owned }},
		{name: "waiting", scale: "pods", of: func(b simulate.Bin) int { return b.Waiting }, rare: true},
		{name: "changes", scale: "calls", of: func(b simulate.Bin) int { return b.Calls }, sum: true},
	}
}

// pointsOf returns the numbers of a sparkline's characters, each of which stands for that number
// of bins.
func (s spark) pointsOf(series []simulate.Bin, bins int) []int {
	points := make([]int, (len(series)+bins-1)/bins)
	for i, b := range series {
		if at := i / bins; s.sum {
			points[at] += s.of(b)
		} else {
			points[at] = max(points[at], s.of(b))
		}
	}
	return points
}

// drawLine draws points: the lowest level is 0 or less, and only that.
func drawLine(points []int, most int) string {
	var line strings.Builder
	for _, n := range points {
		level := 0
		if n > 0 {
			level = (n*(len(levels)-1) + most - 1) / most
		}
		line.WriteRune(levels[level])
	}
	return line.String()
}

// printSparks prints the sparklines of all results on the same scales.
func (r Report) printSparks(out *bytes.Buffer, width int) {
	longest := 0
	most := map[string]int{}
	for _, one := range r.Results {
		longest = max(longest, len(one.Series))
	}
	if longest == 0 {
		return
	}
	bins := (longest + width - 1) / width
	for _, one := range r.Results {
		for _, s := range allSparks() {
			most[s.scale] = max(most[s.scale], highestOf(s.pointsOf(one.Series, bins)))
		}
	}
	step := r.binLength()
	whole := step * simulate.Seconds(longest)
	if d := r.Load.Duration; d > 0 {
		whole = min(whole, d) // the last bin may be shorter
	}
	out.WriteString("\n")
	if line := timeMarks((longest+bins-1)/bins, whole); line != "" {
		fmt.Fprintf(out, "%-9s %s\n", "", line)
	}
	for _, one := range r.Results {
		fmt.Fprintln(out, printable(one.Name))
		for _, s := range allSparks() {
			points := s.pointsOf(one.Series, bins)
			high := highestOf(points)
			if len(points) == 0 || s.rare && high == 0 {
				continue
			}
			each := ""
			if s.sum {
				each = " in " + durationText(step*simulate.Seconds(bins))
			}
			fmt.Fprintf(out, "  %-7s %s up to %s%s\n", s.name, drawLine(points, most[s.scale]), countText(float64(high)), each)
		}
	}
}

func highestOf(points []int) int {
	high := 0
	for _, n := range points {
		high = max(high, n)
	}
	return high
}

// binLength returns the length of the bins.
func (r Report) binLength() simulate.Seconds {
	for _, one := range r.Results {
		if len(one.Series) > 1 {
			return one.Series[1].Start - one.Series[0].Start
		}
	}
	return r.Load.Duration
}

// timeMarks marks the begin, the middle and the end of the time played.
func timeMarks(width int, whole simulate.Seconds) string {
	line := []rune(strings.Repeat(" ", width))
	marks := []string{"0s", durationText(whole / 2), durationText(whole)}
	if width < 4*len(marks[1])+4 {
		return ""
	}
	copy(line, []rune(marks[0]))
	copy(line[(width-len(marks[1]))/2:], []rune(marks[1]))
	copy(line[width-len(marks[2]):], []rune(marks[2]))
	return string(line)
}
