package scale

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestExplainWritesTheStepsOfTheDocument(t *testing.T) {
	for _, tt := range []struct {
		name                            string
		batch, minFree, used, primaries int
		form                            Form
		request, free                   int
		want                            string
	}{
		{"the document's example", 16, 50, 25, 0, Safe, 48, 23, `
Request = 16 x ceil(0.5 + 25/16)
Request = 16 x ceil(0.5 + 1.5625)
Request = 16 x ceil(2.0625)
Request = 16 x 3
Request = 48
Free = 48 - 25 = 23, at least 8 (0.5 of the batch) and less than 24
32 is too few, as 32 - 25 = 7 < 8`},
		{"an endless decimal stays a fraction", 3, 14, 1, 0, Safe, 3, 2, `
Request = 3 x ceil(0.14 + 1/3)
Request = 3 x ceil(71/150)
Request = 3 x 1
Request = 3
Free = 3 - 1 = 2, at least 0.42 (0.14 of the batch) and less than 3.42
0 is too few, as 0 - 1 = -1 < 0.42`},
		{"primaries, safe", 16, 50, 24, 2, Safe, 46, 22, `
Request = 16 x ceil(0.5 + (24 + 2)/16) - 2
Request = 16 x ceil(0.5 + 1.625) - 2
Request = 16 x ceil(2.125) - 2
Request = 16 x 3 - 2
Request = 48 - 2
Request = 46
Free = 46 - 24 = 22, at least 8 (0.5 of the batch) and less than 24
30 is too few, as 30 - 24 = 6 < 8`},
		{"primaries as in the document", 16, 50, 24, 2, Document, 30, 6, `
Request = 16 x ceil(0.5 + 24/16) - 2
Request = 16 x ceil(0.5 + 1.5) - 2
Request = 16 x ceil(2) - 2
Request = 16 x 2 - 2
Request = 32 - 2
Request = 30
Free = 30 - 24 = 6, fewer than 8 (0.5 of the batch): the safe form asks for 46`},
		{"nothing, as in the document", 16, 0, 0, 1, Document, 0, 0, `
Request = 16 x ceil(0 + 0/16) - 1
Request = 16 x ceil(0 + 0) - 1
Request = 16 x ceil(0) - 1
Request = 16 x 0 - 1
Request = 0 - 1
Request = -1
Request = 0, as there are no fewer
Free = 0 - 0 = 0, at least 0 (0 of the batch) and less than 16`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := plain(tt.batch, tt.minFree)
			c.CountPrimaries, c.Form = true, tt.form
			want := Explanation{tt.request, tt.free, strings.Split(strings.TrimPrefix(tt.want, "\n"), "\n")}
			if diff := cmp.Diff(want, c.Explain(tt.used, tt.primaries)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainComesToWhatNeedSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := plain(rapid.IntRange(1, 300).Draw(t, "batch"), rapid.IntRange(0, 1000).Draw(t, "minFree"))
		c.CountPrimaries = rapid.Bool().Draw(t, "count primaries")
		c.Form = rapid.SampledFrom([]Form{Safe, Document}).Draw(t, "form")
		used, primaries := rapid.IntRange(0, 9000).Draw(t, "used"), rapid.IntRange(0, 30).Draw(t, "primaries")
		e := c.Explain(used, primaries)
		if want := c.Need(used, primaries, manyAddresses); e.Request != want || e.Free != want-used {
			t.Fatalf("request %d with %d free, want %d with %d", e.Request, e.Free, want, want-used)
		}
	})
}

func TestFractionsAreReadExactly(t *testing.T) {
	const number = ": must be a decimal number or percent, like 0.5 or 50%"
	for _, tt := range []struct {
		text    string
		percent int
		err     string
	}{
		{"0.5", 50, ""}, {"0.50", 50, ""}, {"0.07", 7, ""}, {"1", 100, ""}, {"2.5", 250, ""}, {"0", 0, ""},
		{"50%", 50, ""}, {"0%", 0, ""}, {"250%", 250, ""},
		{"0.505", 0, "0.505: must have at most two decimals, as the smallest step is 0.01, a percent of a batch"},
		{"0.33333333333333333333", 0,
			"0.33333333333333333333: must have at most two decimals, as the smallest step is 0.01, a percent of a batch"},
		{"0.500", 0, "0.500: must have at most two decimals, as the smallest step is 0.01, a percent of a batch"},
		{"12.5%", 0, "12.5%: must be a whole number of percent, like 50%"},
		{"%", 0, "%: must be a whole number of percent, like 50%"},
		{"", 0, number}, {"half", 0, "half" + number}, {"-0.5", 0, "-0.5" + number}, {"+1", 0, "+1" + number},
		{".5", 0, ".5" + number}, {"1.", 0, "1." + number}, {"5e-1", 0, "5e-1" + number}, {"0.-5", 0, "0.-5" + number},
		{"NaN", 0, "NaN" + number}, {"1_0", 0, "1_0" + number}, {"99999999999999999999", 0, "99999999999999999999" + number},
	} {
		got, err := ParseFraction(tt.text)
		if text := errorText(err); got != tt.percent || text != tt.err {
			t.Errorf("%q: %d, %q; want %d, %q", tt.text, got, text, tt.percent, tt.err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
