package scale

import (
	"fmt"
	"strconv"
	"strings"
)

// Explanation is the scaling equation worked out for a person.
type Explanation struct {
	Request int      `json:"request"` // addresses to ask for
	Free    int      `json:"free"`    // of them, with used ones taken
	Steps   []string `json:"steps"`   // as sources/cns-scaling-equation.md writes them
}

// Explain works the equation out for used addresses and, where they count, that
// many primary ones: what Need computes, without MinPool and most.
func (c Config) Explain(used, primaries int) Explanation {
	p := c.counted(primaries)
	inside, minus := fmt.Sprint(used), ""
	if p > 0 {
		minus = fmt.Sprintf(" - %d", p)
	}
	rounded := used
	if p > 0 && c.Form == Safe {
		rounded, inside = used+p, fmt.Sprintf("(%d + %d)", used, p)
	}
	request := Request(c.Batch, c.MinFree, rounded)
	minFree := formatQuotient(c.MinFree, 100)
	e := Explanation{Request: c.unbounded(used, p)}
	e.addRequest("%d x ceil(%s + %s/%d)%s", c.Batch, minFree, inside, c.Batch, minus)
	// A quotient without exact decimals stays the fraction that the line before has.
	if share := formatQuotient(rounded, c.Batch); !strings.Contains(share, "/") {
		e.addRequest("%d x ceil(%s + %s)%s", c.Batch, minFree, share, minus)
	}
	e.addRequest("%d x ceil(%s)%s", c.Batch, formatQuotient(c.MinFree*c.Batch+100*rounded, 100*c.Batch), minus)
	e.addRequest("%d x %d%s", c.Batch, request/c.Batch, minus)
	if p > 0 {
		e.addRequest("%d%s", request, minus)
	}
	e.addRequest("%d", e.Request)
	if e.Request < 0 {
		e.Request = 0
		e.addRequest("0, as there are no fewer")
	}
	e.Free = e.Request - used
	c.explainFree(&e, used, p)
	return e
}

// explainFree says what is free, against what the equation promises: at least m and less
// than m+B, and one batch less would be too few.
func (c Config) explainFree(e *Explanation, used, primaries int) {
	m, most := c.MinFree*c.Batch, (c.MinFree+100)*c.Batch // hundredths
	free := fmt.Sprintf("Free = %d - %d = %d", e.Request, used, e.Free)
	least := fmt.Sprintf("%s (%s of the batch)", formatQuotient(m, 100), formatQuotient(c.MinFree, 100))
	if 100*e.Free < m {
		c.Form = Safe
		e.add("%s, fewer than %s: the safe form asks for %d", free, least, c.unbounded(used, primaries))
		return
	}
	e.add("%s, at least %s and less than %s", free, least, formatQuotient(most, 100))
	if less := e.Request - c.Batch; less >= 0 {
		e.add("%d is too few, as %d - %d = %d < %s", less, less, used, less-used, formatQuotient(m, 100))
	}
}

func (e *Explanation) addRequest(format string, args ...any) { e.add("Request = "+format, args...) }

func (e *Explanation) add(format string, args ...any) {
	e.Steps = append(e.Steps, fmt.Sprintf(format, args...))
}

// formatQuotient writes a quotient exactly: 1.5625, or as the fraction 1/3 where no short
// row of digits is exact. Both numbers are positive or a is 0.
func formatQuotient(dividend, divisor int) string {
	const digits, scale = 8, 100_000_000
	whole, rest := dividend/divisor, dividend%divisor
	if rest*scale%divisor == 0 {
		text := fmt.Sprintf("%d.%0*d", whole, digits, rest*scale/divisor)
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	x, y := dividend, divisor
	for y != 0 {
		x, y = y, x%y
	}
	return fmt.Sprintf("%d/%d", dividend/x, divisor/x)
}

// ParseFraction reads a share of a batch as people write it, 0.5 or 50%, into whole
// percent. It is read exactly: what is no whole percent is refused.
func ParseFraction(text string) (percent int, err error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		if percent, err = parseDigits(number); err != nil {
			return 0, fmt.Errorf("%s: must be a whole number of percent, like 50%%", text)
		}
		return percent, nil
	}
	whole, decimals, point := strings.Cut(text, ".")
	hundreds, err := parseDigits(whole)
	if err != nil || point && decimals == "" || strings.Trim(decimals, "0123456789") != "" {
		return 0, fmt.Errorf("%s: must be a decimal number or percent, like 0.5 or 50%%", text)
	}
	if len(decimals) > 2 {
		return 0, fmt.Errorf("%s: must have at most two decimals, as the smallest step is 0.01, a percent of a batch", text)
	}
	rest, err := parseDigits((decimals + "00")[:2])
	return 100*hundreds + rest, err
}

// parseDigits reads a number of plain digits.
func parseDigits(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}
