package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func parsed(t testing.TB, text string) Trace {
	t.Helper()
	trace, err := ParseTrace("t.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// dump writes a load as people would: a node a line, its pods as start-end.
func dump(l Load) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n", l.Duration)
	for _, pods := range l.Nodes {
		for i, p := range pods {
			fmt.Fprintf(&b, "%s%v-%v", strings.Repeat(" ", min(i, 1)), p.Start, p.End)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestATraceIsWhatItsLinesSay(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"counts", "time,pods\n0,2\n10,3\n20,1\n30,1\n",
			"30s\n0s-20s 0s-20s 10s-30s\n"},
		{"counts that begin late and have gaps", "time,pods\n5,1\n10,0\n20.25,1\n30,0\n",
			"30s\n5s-10s 20.25s-30s\n"},
		{"events", "time,event,pod\n0,add,a\n1,add,b\n2,delete,a\n3,add,a\n3,delete,b\n9,delete,a\n",
			"9s\n0s-2s 1s-3s 3s-9s\n"},
		{"a pod that is deleted at once", "time,event,pod\n1,add,a\n1,delete,a\n1,add,a\n5,delete,a\n",
			"5s\n1s-1.001s 1s-5s\n"},
		{"counts of nodes", "time,pods,node\n0,1,b\n0,2,a\n7,0,b\n8,0,a\n",
			"8s\n0s-8s 0s-8s\n0s-7s\n"},
		{"events of nodes with pods of one name", "time,event,pod,node\n0,add,x,b\n1,add,x,a\n7,delete,x,b\n8,delete,x,a\n",
			"8s\n1s-8s\n0s-7s\n"},
		{"columns in any order", "pod,time,event\na,0,add\na,4,delete\n",
			"4s\n0s-4s\n"},
		{"dates", "time,pods\n2026-03-01T23:59:50Z,1\n2026-03-02T01:00:00.5+01:00,0\n",
			"10.5s\n0s-10.5s\n"},
		{"dates finer than milliseconds", "time,pods\n2026-03-01T00:00:00.0009Z,1\n2026-03-01T00:00:01.0028Z,0\n",
			"1.001s\n0s-1.001s\n"},
		{"BOM, CRLF, comments, blank lines and blanks", "\ufeff# a\r\n\r\n Time , PODS\r\n# b, c\r\n0, 1\r\n  \r\n 4 ,\"0\"\r\n",
			"4s\n0s-4s\n"},
		{"no newline at the end", "time,pods\n0,1\n4,0", "4s\n0s-4s\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := parsed(t, tt.text).Load(0, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, dump(l)); diff != "" {
				t.Error(diff)
			}
			if l.Name != "t.csv" {
				t.Errorf("the load is called %q", l.Name)
			}
		})
	}
}

func TestATraceSaysWhichNodesItIsOf(t *testing.T) {
	trace := parsed(t, "time,pods,node\n0,1,b\n3,2,a\n")
	if diff := cmp.Diff([]string{"a", "b"}, trace.Nodes); diff != "" || trace.End != 3*time.Second {
		t.Errorf("end %v, nodes %s", trace.End, diff)
	}
	if trace = parsed(t, "time,pods\n0,1\n"); trace.Nodes != nil {
		t.Errorf("nodes %q of a trace without", trace.Nodes)
	}
}

func TestAWrongTraceIsNamedWithItsLine(t *testing.T) {
	const formats = "time,pods or time,event,pod, and node where nodes have names"
	const seconds = "seconds with at most three decimals like 12.5"
	const date = "RFC 3339 like 2026-01-02T15:04:05Z"
	for _, tt := range []struct{ name, text, want string }{
		{"no text", "", `1: header "": must be ` + formats},
		{"comments only", "# a\n\n", `1: header "": must be ` + formats},
		{"no header", "0,5\n", `1: column "0": must be one of ` + formats},
		{"an unknown column", "\n# x\ntime,pods,cpu\n", `3: column "cpu": must be one of ` + formats},
		{"a column twice", "time,pods,Time\n", `1: column "time": must be there once`},
		{"no time", "pods\n", `1: header "pods": must be ` + formats},
		{"no pods", "time,node\n", `1: header "time,node": must be ` + formats},
		{"no event", "time,pod\n", `1: header "time,pod": must be ` + formats},
		{"events without a pod", "time,event\n", `1: header "time,event": must be ` + formats},
		{"two formats", "time,event,pod,pods\n", `1: header "time,event,pod,pods": must be ` + formats},
		{"counts with names", "time,pods,pod\n", `1: header "time,pods,pod": must be ` + formats},
		{"no data", "time,pods\n\n# 0,5\n", `1: no data: must be at least one line after the header`},
		{"a field less", "time,pods\n5\n", `2: line "5": must be 2 fields, as in the header`},
		{"a field more", "time,pods\n5,4,3\n", `2: line "5,4,3": must be 2 fields, as in the header`},
		{"a quote", "time,pods\n0,1\n\n5,\"4\"4\n", `4: extraneous or missing " in quoted-field: must be fields between commas, all of a field in quotes or without any`},
		{"time goes back", "time,pods\n5,1\n6,1\n# x\n5.999,1\n", `5: time "5.999": must be no earlier than on the line before: sort the lines by time`},
		{"time goes back across nodes", "time,pods,node\n5,1,a\n4,1,b\n", `3: time "4": must be no earlier than on the line before: sort the lines by time`},
		{"dates go back", "time,pods\n2026-01-02T00:00:00Z,1\n2026-01-02T00:00:00+01:00,1\n", `3: time "2026-01-02T00:00:00+01:00": must be no earlier than on the line before: sort the lines by time`},
		{"time stands still", "time,pods\n5,1\n5.0,2\n", `3: time "5.0": must be later than where the node was counted before`},
		{"a negative time", "time,pods\n-5,1\n", `2: time "-5": must be ` + seconds + ", or " + date},
		{"no time", "time,pods\n,1\n", `2: time "": must be ` + seconds + ", or " + date},
		{"NaN", "time,pods\nNaN,1\n", `2: time "NaN": must be ` + seconds + ", or " + date},
		{"infinity", "time,pods\n0,1\nInf,1\n", `3: time "Inf": must be ` + seconds + ", as on the lines before"},
		{"an exponent", "time,pods\n0,1\n1e3,1\n", `3: time "1e3": must be ` + seconds + ", as on the lines before"},
		{"four decimals", "time,pods\n0,1\n1.0001,1\n", `3: time "1.0001": must be ` + seconds + ", as on the lines before"},
		{"a point without decimals", "time,pods\n0,1\n1.,1\n", `3: time "1.": must be ` + seconds + ", as on the lines before"},
		{"a signed decimal", "time,pods\n0,1\n1.-5,1\n", `3: time "1.-5": must be ` + seconds + ", as on the lines before"},
		{"a date among seconds", "time,pods\n0,1\n2026-01-02T15:04:05Z,1\n", `3: time "2026-01-02T15:04:05Z": must be ` + seconds + ", as on the lines before"},
		{"seconds among dates", "time,pods\n2026-01-02T15:04:05Z,1\n5,1\n", `3: time "5": must be ` + date + ", as on the lines before"},
		{"a date without zone", "time,pods\n2026-01-02 15:04:05,1\n", `2: time "2026-01-02 15:04:05": must be ` + seconds + ", or " + date},
		{"seconds since 1970", "time,pods\n1767366245,1\n", `2: time "1767366245": must be at most a year after the start; dates are written in RFC 3339`},
		{"no clock goes so far", "time,pods\n18446744073709551615,1\n", `2: time "18446744073709551615": must be at most a year after the start; dates are written in RFC 3339`},
		{"dates of ages", "time,pods\n0001-01-02T15:04:05Z,1\n9999-01-02T15:04:05Z,1\n", `3: time "9999-01-02T15:04:05Z": must be at most a year after the start; dates are written in RFC 3339`},
		{"a negative count", "time,pods\n0,-1\n", `2: pods "-1": must be a whole number from 0 to 65536`},
		{"half a pod", "time,pods\n0,1.5\n", `2: pods "1.5": must be a whole number from 0 to 65536`},
		{"no count", "time,pods\n0,\n", `2: pods "": must be a whole number from 0 to 65536`},
		{"a count too high", "time,pods\n0,65536\n1,65537\n", `3: pods "65537": must be a whole number from 0 to 65536`},
		{"an unknown event", "time,event,pod\n0,create,a\n", `2: event "create": must be add or delete`},
		{"a pod twice", "time,event,pod\n0,add,a\n1,add,b\n2,add,a\n", `4: pod "a": must be deleted before it is added again`},
		{"no such pod", "time,event,pod\n0,add,a\n1,delete,b\n", `3: pod "b": must be added before it is deleted`},
		{"a pod deleted twice", "time,event,pod\n0,add,a\n1,delete,a\n2,delete,a\n", `4: pod "a": must be added before it is deleted`},
		{"a pod of another node", "time,event,pod,node\n0,add,a,x\n1,delete,a,y\n", `3: pod "a": must be added before it is deleted`},
		{"a pod without a name", "time,event,pod\n0,add,\n", `2: pod "": must be a name`},
		{"a node without a name", "time,pods,node\n0,1, \n", `2: node "": must be a name`},
		{"a value of two lines", "time,pods\n0,\"1\n2\"\n", `2: pods "1\n2": must be a whole number from 0 to 65536`},
		{"an endless value", "time,pods\n0," + strings.Repeat("9", 1000) + "\n", `2: pods "` + strings.Repeat("9", 80) + `": must be a whole number from 0 to 65536`},
		{"too many nodes", "time,pods,node\n" + lines("0,0,%d\n", mostNodes+1), `10002: node "10000": must be one of the 10000 before: more are not played`},
		{"too many pods", "time,pods,node\n" + lines("0,65536,%d\n", 77), `78: too many pods: must be at most 5000000 in all of the trace`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trace, err := ParseTrace("my.csv", strings.NewReader(tt.text))
			if diff := cmp.Diff("my.csv:"+tt.want, fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
			if trace.pods != nil {
				t.Error("there is a trace beside the error")
			}
		})
	}
}

func lines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestAFileWithoutEndIsRefused(t *testing.T) {
	comments := strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", 1<<10)
	endless := make([]io.Reader, mostTraceBytes/len(comments)+1)
	for i := range endless {
		endless[i] = strings.NewReader(comments)
	}
	_, err := ParseTrace("t.csv", io.MultiReader(append([]io.Reader{strings.NewReader("time,pods\n0,1\n")}, endless...)...))
	if want := "t.csv:2: the file is too large: must be at most 128 MiB"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAFileThatCannotBeReadOnSaysWhere(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := ParseTrace("t.csv", io.MultiReader(strings.NewReader("time,pods\n0,1\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || fmt.Sprint(err) != "t.csv:2: read on: disk on fire" {
		t.Error(err)
	}
}

func TestATraceIsPlayedAsLongAsWanted(t *testing.T) {
	const counts = "time,pods\n0,1\n10,2\n20,1\n30,0\n40,1\n"
	const nodes = "time,pods,node\n0,1,a\n10,2,b\n20,1,a\n"
	for _, tt := range []struct {
		name, text        string
		nodes             int
		duration, stagger time.Duration
		want              string
	}{
		{"to its last line", counts, 1, 0, 0, "40s\n0s-20s 10s-30s\n"},
		{"longer", counts, 1, time.Minute, 0, "1m0s\n0s-20s 10s-30s 40s-1m0s\n"},
		{"shorter", counts, 1, 15 * time.Second, 0, "15s\n0s-15s 10s-15s\n"},
		{"to a pod's start", counts, 1, 10 * time.Second, 0, "10s\n0s-10s\n"},
		{"by two nodes at once", counts, 2, 15 * time.Second, 0, "15s\n0s-15s 10s-15s\n0s-15s 10s-15s\n"},
		{"by nodes one after another", counts, 3, 0, 30 * time.Second, "40s\n0s-20s 10s-30s\n0s-30s 20s-40s\n0s-40s 30s-40s\n"},
		{"longer, by nodes one after another", counts, 2, time.Minute, 10 * time.Second, "1m0s\n0s-20s 10s-30s 40s-1m0s\n0s-25s 15s-35s 45s-1m0s\n"},
		{"by nodes after its end", counts, 2, 20 * time.Second, longestTrace, "20s\n0s-20s 10s-20s\n0s-20s\n"},
		{"by its own nodes", nodes, 0, 0, 0, "20s\n0s-20s\n10s-20s 10s-20s\n"},
		{"by as many as its nodes, whose times are their own", nodes, 2, 30 * time.Second, time.Hour, "30s\n0s-30s\n10s-30s 10s-30s\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := parsed(t, tt.text).Load(tt.nodes, tt.duration, tt.stagger)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, dump(l)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALoadThatATraceCannotBeIsRefused(t *testing.T) {
	const counts, nodes, moment = "time,pods\n0,1\n10,0\n", "time,pods,node\n0,1,a\n10,2,b\n", "time,pods\n0,1\n"
	large := "time,pods\n" + lines("%d1,65536\n", 1) + "2,0\n3,65536\n10,0\n"
	for _, tt := range []struct {
		text              string
		nodes             int
		duration, stagger time.Duration
		want              string
	}{
		{counts, -1, 0, 0, "nodes: -1: must be 1 to 10000"},
		{counts, 10001, 0, 0, "nodes: 10001: must be 1 to 10000"},
		{nodes, 1, 0, 0, "nodes: 1: must be 2 or left out, as t.csv names its nodes"},
		{nodes, 3, 0, 0, "nodes: 3: must be 2 or left out, as t.csv names its nodes"},
		{large, 229, 0, 0, "nodes: 229: must be at most 228, as t.csv has 131072 pods"},
		{moment, 1, 0, 0, "duration: 0s: must be more, as t.csv shows one moment only"},
		{counts, 1, -time.Second, 0, "duration: -1s: must be 1s to 8784h"},
		{counts, 1, time.Millisecond, 0, "duration: 1ms: must be 1s to 8784h"},
		{counts, 1, longestTrace + 1, 0, "duration: 8784h0m0.000000001s: must be 1s to 8784h"},
		{counts, 1, 0, -1, "stagger: -1ns: must be 0s to 8784h"},
		{counts, 1, 0, longestTrace + 1, "stagger: 8784h0m0.000000001s: must be 0s to 8784h"},
	} {
		l, err := parsed(t, tt.text).Load(tt.nodes, tt.duration, tt.stagger)
		if fmt.Sprint(err) != tt.want || l.Nodes != nil {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// present is how many pods there are at a time.
func present(pods []Pod, at time.Duration) int {
	n := 0
	for _, p := range pods {
		if p.Start <= at && at < p.End {
			n++
		}
	}
	return n
}

func TestCountsAreKeptAndTheOldestEndFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(0, 9), 2, 50).Draw(t, "counts")
		text := "time,pods\n"
		for i, n := range counts {
			text += fmt.Sprintf("%d,%d\n", 10*i, n)
		}
		trace, err := ParseTrace("t.csv", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		l, err := trace.Load(1, time.Hour, 0)
		if err != nil {
			t.Fatal(err)
		}
		pods := l.Nodes[0]
		for i, n := range counts {
			for _, at := range []time.Duration{0, 9999 * time.Millisecond} {
				at += time.Duration(10*i) * time.Second
				if got := present(pods, at); got != n {
					t.Fatalf("%d pods at %v, want %d of\n%s", got, at, n, text)
				}
			}
		}
		for i := 1; i < len(pods); i++ {
			if pods[i].Start < pods[i-1].Start || pods[i].End < pods[i-1].End {
				t.Fatalf("%v ends before %v", pods[i], pods[i-1])
			}
		}
		checkLoad(t, l)
	})
}

const alibaba = "../../test/traces/alibaba-gpu-2023.csv"

func TestTheTraceOfAlibabaIsABusyWeek(t *testing.T) {
	text, err := os.ReadFile(alibaba)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte("#")) || !bytes.Contains(text, []byte("github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv")) {
		t.Error("its source is not named")
	}
	trace, err := ParseTrace(filepath.Base(alibaba), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	l, err := trace.Load(1, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	checkLoad(t, l)
	var days []int // pods that start on each
	first := present(l.Nodes[0], 0)
	for _, p := range l.Nodes[0][first:] {
		day := int(p.Start / (24 * time.Hour))
		for len(days) <= day {
			days = append(days, 0)
		}
		days[day]++
	}
	got := fmt.Sprintf("%v: %d pods, at first %d, at most %d, starting a day %d", l.Duration, l.Pods(), first, l.Peak(), days)
	if diff := cmp.Diff("167h58m41s: 1918 pods, at first 41, at most 55, starting a day [100 200 211 195 254 324 593]", got); diff != "" {
		t.Error(diff)
	}
}

func TestTheScriptDerivesTheBusiestDays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "source.csv")
	const day = 86400
	source := "scheduled_s,deleted_s\n"
	for _, pod := range [][2]int{
		{5, 2*day + 1},           // runs when the days begin
		{10, 20},                 // is over by then
		{2 * day, 2*day + 9},     // starts with them
		{3 * day, 3*day + 7},     // one follows
		{3*day + 7, 3*day + 8},   // another at once: no change
		{4 * day, 4*day + 6},     // two at once: one change
		{4 * day, 4*day + 6},     //
		{8*day + 50, 8*day + 60}, // makes these days the busiest
		{8*day + 55, 8*day + 60}, //
		{9*day - 1, 9*day + 5},   // ends after them
		{9*day + 10, 10*day + 1}, // is later
	} {
		source += fmt.Sprintf("%d,%d\n", pod[0], pod[1])
	}
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("../../scripts/trace-alibaba.sh", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, got, _ := strings.Cut(string(out), "time,pods\n")
	if diff := cmp.Diff("0,2\n1,1\n9,0\n86400,1\n86408,0\n172800,2\n172806,0\n518450,1\n518455,2\n518460,0\n604799,1\n", got); diff != "" {
		t.Errorf("%s\n%s", diff, out)
	}
}

// FuzzParseTrace: what is accepted can be played, what is not is one line.
func FuzzParseTrace(f *testing.F) {
	f.Add("time,pods\n0,2\n10,3\n20.125,1\n")
	f.Add("time,event,pod\n0,add,a\n1,add,b\n2,delete,a\n3,add,a\n")
	f.Add("\ufeff# x\r\nnode,time,pods\r\n\"b\",2026-01-02T15:04:05Z,7\r\n\r\na,2026-01-02T15:04:06.5+00:00,65536\r\n")
	f.Add("time,event,pod,node\n0,add,a,x\n0,delete,a,x\n31622400,add,a,y\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ParseTrace("t.csv", strings.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "t.csv:") || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("an error of another form: %q", err)
			}
			return
		}
		nodes := 2
		if len(trace.Nodes) > 0 {
			nodes = 0
		}
		l, err := trace.Load(nodes, trace.End+time.Second, time.Second)
		if trace.End < longestTrace && err != nil {
			t.Fatal(err)
		}
		checkLoad(t, l)
	})
}
