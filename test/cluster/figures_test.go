package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// figures are what is told of a burst, as numbers of which less is better.
var figures = []struct {
	what string
	of   func(burst) float64
}{
	{"pool complete, s", func(b burst) float64 { return b.complete.Seconds() }},
	{"ADDs that waited", func(b burst) float64 { return float64(len(b.waited)) }},
	{"longest wait, s", func(b burst) float64 { return longest(b.waited).Seconds() }},
	{"half Ready, s", func(b burst) float64 { return b.ready[len(b.ready)/2].Seconds() }},
	{"all Ready, s", func(b burst) float64 { return longest(b.ready).Seconds() }},
}

func longest(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Max(all)
}

// table shows each contender's bursts: the middle one, least and most.
func table(all []*contender) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d pods bound at once, by burst: median (least .. most)\tbursts\t", burstPods)
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t", f.what)
	}
	fmt.Fprintln(w)
	for _, k := range all {
		fmt.Fprintf(w, "%s\t%d\t", k.name, len(k.took))
		for i, f := range figures {
			if k.ptp && i < 3 {
				fmt.Fprint(w, "-\t")
				continue
			}
			v := sorted(k.took, f.of)
			fmt.Fprintf(w, "%.2f (%.2f .. %.2f)\t", median(v), v[0], v[len(v)-1])
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return out.String()
}

// saved tells by how much one contender is better than another, each burst compared with the
// other's of the same round.
func saved(with, without *contender) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "what the watch saves, by round\tmedian\tleast\tmost\trounds in which it does\t\n")
	for _, f := range figures {
		var less []float64
		better := 0
		for i := range with.took {
			d := f.of(without.took[i]) - f.of(with.took[i])
			less = append(less, d)
			if d > 0 {
				better++
			}
		}
		slices.Sort(less)
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%d of %d\t\n", f.what, median(less), less[0], less[len(less)-1], better, len(less))
	}
	w.Flush()
	return out.String()
}

func sorted(all []burst, of func(burst) float64) (values []float64) {
	for _, b := range all {
		values = append(values, of(b))
	}
	slices.Sort(values)
	return values
}

// median is of sorted values.
func median(v []float64) float64 { return (v[(len(v)-1)/2] + v[len(v)/2]) / 2 }

func TestBurstsAreComparedRoundByRound(t *testing.T) {
	made := func(complete ...time.Duration) *contender {
		k := &contender{name: "x"}
		for _, d := range complete {
			k.took = append(k.took, burst{complete: d * time.Second, waited: make([]time.Duration, d), ready: []time.Duration{time.Second, d * time.Second}})
		}
		return k
	}
	got := strings.Join(strings.Fields(saved(made(3, 1, 5), made(4, 3, 5))), " ")
	for _, want := range []string{"pool complete, s 1.00 0.00 2.00 2 of 3", "ADDs that waited 1.00 0.00 2.00 2 of 3", "longest wait, s 0.00 0.00 0.00 0 of 3"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if got := table([]*contender{made(3, 1)}); !strings.Contains(got, "2.00 (1.00 .. 3.00)") {
		t.Error(got)
	}
}
