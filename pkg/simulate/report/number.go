package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/simulate"
)

// countText writes a number exactly while it is short, else as 12.3k or 4.56M.
func countText(n float64) string {
	switch {
	case n < 10_000:
		return strconv.FormatFloat(math.Round(n), 'f', -1, 64)
	case n < 999_950:
		return threeDigits(n/1000) + "k"
	case n < 999_950_000:
		return threeDigits(n/1e6) + "M"
	}
	return threeDigits(n/1e9) + "G"
}

// meanText writes an average: with a decimal where that says something.
func meanText(n float64) string {
	if n < 99.95 {
		return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
	}
	return countText(n)
}

// threeDigits writes a number from 1 on with three digits.
func threeDigits(n float64) string {
	switch {
	case n < 9.995:
		return strconv.FormatFloat(n, 'f', 2, 64)
	case n < 99.95:
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// durationText writes a time in at most two units, as exact as people want it.
func durationText(s simulate.Seconds) string {
	// Rounded before it is compared, or 999.7ms would be written as 1000ms and 59.6s as 60s.
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
		return inTwoUnits(d.Round(time.Second), time.Minute, "m", time.Second, "s")
	case d.Round(time.Minute) < 48*time.Hour:
		return inTwoUnits(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	}
	return inTwoUnits(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
}

// inTwoUnits writes a time in two units, the small one if there is some of it.
func inTwoUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
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
