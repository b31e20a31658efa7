package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/simulate"
)

// count writes a number exactly while it is short, else as 12.3k or 4.56M.
func count(n float64) string {
	switch {
	case n < 10_000:
		return strconv.FormatFloat(math.Round(n), 'f', -1, 64)
	case n < 999_950:
		return three(n/1000) + "k"
	case n < 999_950_000:
		return three(n/1e6) + "M"
	}
	return three(n/1e9) + "G"
}

// mean writes an average: with a decimal where that says something.
func mean(n float64) string {
	if n < 99.95 {
		return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
	}
	return count(n)
}

// three writes a number from 1 on with three digits.
func three(n float64) string {
	switch {
	case n < 9.995:
		return strconv.FormatFloat(n, 'f', 2, 64)
	case n < 99.95:
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// span writes a time in at most two units, as exact as people want it.
func span(s simulate.Seconds) string {
	d := time.Duration(s)
	switch {
	case d <= 0:
		return "0s"
	case d < time.Millisecond:
		return "<1ms"
	case d.Round(time.Millisecond) < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Round(100*time.Millisecond) < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d.Round(time.Second) < time.Minute:
		return d.Round(time.Second).String()
	case d.Round(time.Second) < time.Hour:
		return units(d.Round(time.Second), time.Minute, "m", time.Second, "s")
	case d.Round(time.Minute) < 48*time.Hour:
		return units(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	}
	return units(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
}

// units writes a time in two units, the small one if there is some of it.
func units(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprint(int(d/large), largeName)
	if rest := d % large; rest > 0 {
		text += fmt.Sprint(int(rest/small), smallName)
	}
	return text
}

// numberOf writes n of something, exactly.
func numberOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits + " " + many
}
