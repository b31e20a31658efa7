package keys

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAPercentageAndItsFractionAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 10_000).Draw(t, "n")
		zeros := strings.Repeat("0", rapid.IntRange(0, 3).Draw(t, "zeros"))
		for _, text := range []string{fmt.Sprintf("%d%%", n), fmt.Sprintf("%d.%02d", n/100, n%100) + zeros} {
			if got, ok := parsePercent(text); !ok || got != n {
				t.Fatalf("%q is %d, %t; want %d", text, got, ok, n)
			}
		}
	})
}
