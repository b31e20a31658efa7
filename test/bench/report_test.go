package main

import (
	"testing"

	"github.com/enipool/enipool/test/bench/table"
	"github.com/google/go-cmp/cmp"
)

func TestMedianIsTheMiddleOrTheMeanOfTheMiddleTwo(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 100, 2}, 3}} {
		m := measure{values: tt.values}
		if got := m.median(); got != tt.want {
			t.Errorf("median of %v = %g, want %g", tt.values, got, tt.want)
		}
	}
	m := measure{values: []float64{3, 1, 2}}
	m.median()
	if diff := cmp.Diff([]float64{3, 1, 2}, m.values); diff != "" {
		t.Errorf("the order of the measurements changed:\n%s", diff)
	}
}

func TestTargetIsReachedOnItsLimitAndNotBeyond(t *testing.T) {
	of := func(v float64) measure { return measure{unit: "ms", values: []float64{v}} }
	ref := of(10)
	for _, tt := range []struct {
		name    string
		target  target
		want    string
		reached string
	}{
		{"on the upper limit", target{of: of(5), ref: &ref, want: 0.5}, "≤ 0.5x", "yes"},
		{"above the upper limit", target{of: of(5.1), ref: &ref, want: 0.5}, "≤ 0.5x", "NO"},
		{"on the lower limit", target{of: of(25), ref: &ref, want: 2.5, atLeast: true}, "≥ 2.5x", "yes"},
		{"below the lower limit", target{of: of(24), ref: &ref, want: 2.5, atLeast: true}, "≥ 2.5x", "NO"},
		{"without a reference the unit counts", target{of: of(3), want: 2}, "≤ 2 ms", "NO"},
		{"nothing asked", target{of: of(3), ref: &ref, shown: true}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want, reached := tt.target.verdict()
			if want != tt.want || reached != tt.reached {
				t.Errorf("verdict = %q, %q, want %q, %q", want, reached, tt.want, tt.reached)
			}
		})
	}
}

func TestReportPrintsTargetsAndMeasures(t *testing.T) {
	a := measure{what: "ADD", command: "a < conf", unit: "ms", values: []float64{2, 1, 3}}
	b := measure{what: "floor", command: "b", unit: "ms", values: []float64{400, 1200}}
	var r report
	r.add([]measure{a, b}, target{of: a, ref: &b, want: 0.5}, target{of: b, shown: true})
	want := `| what  | median  | against | its median | ratio | wanted | reached |
| ----- | ------- | ------- | ---------- | ----- | ------ | ------- |
| ADD   | 2.00 ms | floor   | 800 ms     | 0.00x | ≤ 0.5x | yes     |
| floor | 800 ms  | -       | -          | -     | -      | -       |
`
	if diff := cmp.Diff(want, table.Markdown(r.targetTable())); diff != "" {
		t.Error(diff)
	}
	want = "| what  | median  | min .. max      | n | command    |\n" +
		"| ----- | ------- | --------------- | - | ---------- |\n" +
		"| ADD   | 2.00 ms | 1.00 .. 3.00 ms | 3 | `a < conf` |\n" +
		"| floor | 800 ms  | 400 .. 1200 ms  | 2 | `b`        |\n"
	if diff := cmp.Diff(want, table.Markdown(r.measureTable())); diff != "" {
		t.Error(diff)
	}
}

func TestTheWritesOfAnHourAreFound(t *testing.T) {
	out := "=== RUN   TestPatchesOfAnHour\n=== RUN   TestPatchesOfAnHour/nobody_asks\n    writes_test.go:110: 9 patches\n" +
		"=== RUN   TestPatchesOfAnHour/all_ask\n    writes_test.go:110: 0 patches\n--- PASS: TestPatchesOfAnHour (1s)\n" +
		"=== RUN   TestAnIdleNodeIsNotWritten\n    writes_test.go:145: 3 patches\n--- PASS: TestAnIdleNodeIsNotWritten (0.1s)\n"
	var got [][]string
	for _, found := range hourLine.FindAllStringSubmatch(out, -1) {
		got = append(got, found[2:])
	}
	if diff := cmp.Diff([][]string{{"nobody_asks", "9"}, {"all_ask", "0"}, {"", "3"}}, got); diff != "" {
		t.Error(diff)
	}
}
