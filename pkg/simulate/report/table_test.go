package report

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/enipool/enipool/pkg/simulate"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s, -want +got; -update writes it:\n%s", name, diff)
	}
}

func table(t *testing.T, r Report, width int) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.Table(&out, width); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTableOfADay(t *testing.T) {
	golden(t, "day.txt", []byte(table(t, sample(4, 720), 0)))
}

func TestTableOfOneSettingMarksNothing(t *testing.T) {
	golden(t, "one.txt", []byte(table(t, sample(1, 720), 40)))
}

func TestTableOfNothing(t *testing.T) {
	golden(t, "nothing.txt", []byte(table(t, Report{}, 0)))
}

func TestTableOfALoadWithoutPods(t *testing.T) {
	r := sample(2, 1)
	for i := range r.Results {
		r.Results[i] = simulate.Result{Name: r.Results[i].Name, Series: make([]simulate.Bin, 1)}
	}
	golden(t, "nopods.txt", []byte(table(t, r, 0)))
}

func TestLowestIsMarkedWherePeopleSeeADifference(t *testing.T) {
	result := func(p99 time.Duration, pods int) simulate.Result {
		return simulate.Result{Pods: pods, Waits: simulate.Waits{P99: simulate.Seconds(p99)}}
	}
	const p99 = 1 // its column
	for _, tt := range []struct {
		name    string
		results []simulate.Result
		want    []bool
	}{
		{"one setting", []simulate.Result{result(1, 1)}, []bool{false}},
		{"all the same", []simulate.Result{result(time.Second, 1), result(time.Second, 1)}, []bool{false, false}},
		{"the same to people", []simulate.Result{result(2000*time.Millisecond, 1), result(2010*time.Millisecond, 1)}, []bool{false, false}},
		{"one is lowest", []simulate.Result{result(2*time.Second, 1), result(time.Second, 1)}, []bool{false, true}},
		{"two are lowest", []simulate.Result{result(2010*time.Millisecond, 1), result(2*time.Second, 1), result(3*time.Second, 1)}, []bool{true, true, false}},
		{"no pods came to one", []simulate.Result{result(0, 0), result(2*time.Second, 1), result(time.Second, 1)}, []bool{false, false, true}},
		{"no pods came to all but one", []simulate.Result{result(0, 0), result(2*time.Second, 1)}, []bool{false, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []bool
			for _, row := range usualColumns().cellRows(tt.results) {
				got = append(got, row[p99].Lowest)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSparklinesCompare(t *testing.T) {
	at := func(owned, waiting, calls int) simulate.Bin {
		return simulate.Bin{Demand: 10, Owned: owned, Waiting: waiting, Calls: calls}
	}
	r := Report{Load: Load{Duration: simulate.Seconds(time.Hour)}, Results: []simulate.Result{
		{Name: "a", Series: []simulate.Bin{at(0, 0, 1), at(1, 0, 1), at(35, 0, 1), at(70, 0, 1)}},
		{Name: "b", Series: []simulate.Bin{at(10, 1, 0), at(10, 0, 4), at(10, 0, 1), at(10, 2, 0)}},
	}}
	for i := range 4 {
		r.Results[0].Series[i].Start = simulate.Seconds(15 * time.Minute * time.Duration(i))
	}
	_, lines, _ := strings.Cut(table(t, r, 2), "\n\na\n")
	want := `  demand  ▂▂ up to 10
  owned   ▂█ up to 70
  changes ▅▅ up to 2 in 30m
b
  demand  ▂▂ up to 10
  owned   ▂▂ up to 10
  waiting ▅█ up to 2
  changes █▃ up to 4 in 30m
`
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTableKeepsToLinesWhateverNamesHold(t *testing.T) {
	r := sample(1, 3)
	r.Load.Name, r.Instance.Name, r.Results[0].Name = "a\nb", "c\rd", "\x1b[31mred\x07\tend"
	got := table(t, r, 0)
	for _, want := range []string{"a b: 24h", "c d: 8 ENIs", " [31mred  end"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b\x07\r\t") {
		t.Errorf("control characters are left in %q", got)
	}
}

func TestTableFailsAsItsWriterDoes(t *testing.T) {
	if err := sample(1, 3).Table(full{}, 0); !errors.Is(err, errFull) {
		t.Errorf("Table = %v", err)
	}
}

var errFull = errors.New("full")

// full is a writer that nothing fits in.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestSparklinesKeepToTheWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 150).Draw(t, "width")
		r := sample(rapid.IntRange(0, 9).Draw(t, "settings"), rapid.IntRange(0, 800).Draw(t, "bins"))
		var out bytes.Buffer
		if err := r.Table(&out, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			spark := strings.Trim(line, " abcdefghijklmnopqrstuvwxyz\n0123456789.")
			if strings.ContainsAny(line, string(levels)) && utf8.RuneCountInString(spark) > width {
				t.Fatalf("longer than %d: %s", width, line)
			}
			if strings.TrimRight(line, " \n")+"\n" != line {
				t.Fatalf("ends in spaces: %q", line)
			}
		}
	})
}
