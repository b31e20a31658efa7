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
	minFree := decimal(c.MinFree, 100)
	e := Explanation{Request: c.unbounded(used, p)}
	e.request("%d x ceil(%s + %s/%d)%s", c.Batch, minFree, inside, c.Batch, minus)
	if share := decimal(rounded, c.Batch); !strings.Contains(share, "/") {
		e.request("%d x ceil(%s + %s)%s", c.Batch, minFree, share, minus)
	}
	e.request("%d x ceil(%s)%s", c.Batch, decimal(c.MinFree*c.Batch+100*rounded, 100*c.Batch), minus)
	e.request("%d x %d%s", c.Batch, request/c.Batch, minus)
	if p > 0 {
		e.request("%d%s", request, minus)
	}
	e.request("%d", e.Request)
	if e.Request < 0 {
		e.Request = 0
		e.request("0, as there are no fewer")
	}
	e.Free = e.Request - used
	c.check(&e, used, p)
	return e
}

// check says what is free, against what the equation promises: at least m and less
// than m+B, and one batch less would be too few.
func (c Config) check(e *Explanation, used, primaries int) {
	m, most := c.MinFree*c.Batch, (c.MinFree+100)*c.Batch // hundredths
	free := fmt.Sprintf("Free = %d - %d = %d", e.Request, used, e.Free)
	least := fmt.Sprintf("%s (%s of the batch)", decimal(m, 100), decimal(c.MinFree, 100))
	if 100*e.Free < m {
		c.Form = Safe
		e.add("%s, fewer than %s: the safe form asks for %d", free, least, c.unbounded(used, primaries))
		return
	}
	e.add("%s, at least %s and less than %s", free, least, decimal(most, 100))
	if less := e.Request - c.Batch; less >= 0 {
		e.add("%d is too few, as %d - %d = %d < %s", less, less, used, less-used, decimal(m, 100))
	}
}

func (e *Explanation) request(format string, args ...any) { e.add("Request = "+format, args...) }

func (e *Explanation) add(format string, args ...any) {
	e.Steps = append(e.Steps, fmt.Sprintf(format, args...))
}

// decimal writes a quotient exactly: 1.5625, or as the fraction 1/3 where no short
// row of digits is exact. Both numbers are positive or a is 0.
func decimal(a, b int) string {
	const digits, scale = 8, 100_000_000
	whole, rest := a/b, a%b
	if rest*scale%b == 0 {
		text := fmt.Sprintf("%d.%0*d", whole, digits, rest*scale/b)
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return fmt.Sprintf("%d/%d", a/x, b/x)
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
