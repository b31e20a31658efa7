package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// checkLoad wants what every load promises.
func checkLoad(t interface {
	Helper()
	Fatalf(string, ...any)
}, l Load) {
	t.Helper()
	for k, pods := range l.Nodes {
		for i, p := range pods {
			if p.Start < 0 || p.Start >= p.End || p.End > l.Duration {
				t.Fatalf("node %d: pod %d is %v to %v of %v", k, i, p.Start, p.End, l.Duration)
			}
			if i > 0 && p.Start < pods[i-1].Start {
				t.Fatalf("node %d: pod %d starts at %v, before the one before", k, i, p.Start)
			}
		}
	}
}

func drawShape(t *rapid.T) Shape {
	return Shape{
		Nodes:    rapid.IntRange(1, 3).Draw(t, "nodes"),
		Pods:     rapid.IntRange(1, 60).Draw(t, "pods"),
		Duration: time.Duration(rapid.Int64Range(int64(shortestLoad), int64(30*time.Hour)).Draw(t, "duration")),
		Seed:     rapid.Uint64().Draw(t, "seed"),
	}
}

func TestGeneratedLoads(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := drawShape(t)
				l, err := Generate(kind, s)
				if err != nil {
					t.Fatal(err)
				}
				checkLoad(t, l)
				if l.Name != kind || l.Duration != s.Duration || len(l.Nodes) != s.Nodes {
					t.Fatalf("%s, %v, %d nodes", l.Name, l.Duration, len(l.Nodes))
				}
				if peak := l.Peak(); peak > 2*s.Pods {
					t.Fatalf("%d pods at once of usually %d", peak, s.Pods)
				}
				if again, _ := Generate(kind, s); !cmp.Equal(l, again) {
					t.Fatal("the same seed gave two loads")
				}
				more := s
				more.Nodes++
				if larger, _ := Generate(kind, more); !cmp.Equal(l.Nodes, larger.Nodes[:s.Nodes]) {
					t.Fatal("more nodes changed those before")
				}
			})
		})
	}
}

func TestAPodLivesAMomentAtLeastAndNoLongerThanTheLoad(t *testing.T) {
	g := &generator{rng: rand.New(rand.NewPCG(1, 1)), end: 10 * time.Second}
	g.addPod(5*time.Second, 5*time.Second)
	g.addPod(9*time.Second, 11*time.Second)
	g.addPod(10*time.Second, 11*time.Second)
	g.startPod(6 * time.Second)
	g.stopPod(6 * time.Second)
	g.startPod(7 * time.Second)
	g.stopPod(11 * time.Second)
	g.startPod(8 * time.Second)
	g.startPod(10 * time.Second)
	want := "10s\n5s-5.001s 9s-10s 6s-6.001s 7s-10s 8s-10s\n"
	if diff := cmp.Diff(want, dump(Load{Duration: g.end, Nodes: [][]Pod{g.pods}})); diff != "" {
		t.Error(diff)
	}
}

// day is a day of ten nodes with 30 pods each.
func day(t *testing.T, kind string) Load {
	t.Helper()
	l, err := Generate(kind, Shape{Nodes: 10, Pods: 30, Duration: 24 * time.Hour, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lived is how many pods a node has, on average over its load.
func lived(l Load) float64 {
	var sum time.Duration
	for _, pods := range l.Nodes {
		for _, p := range pods {
			sum += p.End - p.Start
		}
	}
	return sum.Hours() / l.Duration.Hours() / float64(len(l.Nodes))
}

func TestLoadsAreAsBusyAsTheirKind(t *testing.T) {
	for _, tt := range []struct {
		kind        string
		least, most int     // pods of a node and day
		peak        int     // of all nodes
		mean        float64 // at once
	}{
		{"steady", 30, 50, 30, 30},
		{"burst", 70, 350, 45, 16.3},
		{"rolling-update", 180, 300, 38, 30},
		{"cron", 2300, 2700, 46, 18.9},
		{"diurnal", 120, 250, 30, 18},
		{"churn", 3400, 3900, 57, 30},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			l := day(t, tt.kind)
			for _, pods := range l.Nodes {
				if len(pods) < tt.least || len(pods) > tt.most {
					t.Errorf("%d pods of a node, want %d to %d", len(pods), tt.least, tt.most)
				}
			}
			if l.Peak() != tt.peak {
				t.Errorf("%d pods at once, want %d", l.Peak(), tt.peak)
			}
			if got := lived(l); math.Abs(got-tt.mean) > 0.2 {
				t.Errorf("%.2f pods at once on average, want %.1f", got, tt.mean)
			}
		})
	}
}

// each calls f with the pods of each node and a time of every minute but the first.
func each(l Load, f func(pods []Pod, at time.Duration)) {
	for _, pods := range l.Nodes {
		for at := time.Minute; at < l.Duration; at += time.Minute {
			f(pods, at)
		}
	}
}

func TestASteadyNodeLacksAPodForSecondsOnly(t *testing.T) {
	each(day(t, "steady"), func(pods []Pod, at time.Duration) {
		if got := present(pods, at); got < 28 {
			t.Errorf("%d pods at %v", got, at)
		}
	})
}

func TestABurstComesWithinSeconds(t *testing.T) {
	for k, pods := range day(t, "burst").Nodes {
		bursts := 0
		for at := time.Minute; at < 24*time.Hour; at += 15 * time.Minute {
			come := 0 // pods that start within 30 s of the first after at
			first := slices.IndexFunc(pods, func(p Pod) bool { return p.Start >= at })
			for i := first; i >= 0 && i < len(pods) && pods[i].Start < pods[first].Start+30*time.Second; i++ {
				if p := pods[i]; p.End-p.Start <= 15*time.Minute {
					come++
				}
			}
			if first >= 0 && come >= 15 && pods[first].Start < at+15*time.Minute {
				bursts++
			}
		}
		if bursts < 3 || bursts > 16 {
			t.Errorf("node %d has %d bursts", k, bursts)
		}
	}
}

func TestARollingUpdateNeverLacksAPod(t *testing.T) {
	l := day(t, "rolling-update")
	for k, pods := range l.Nodes {
		for _, p := range pods {
			if got := present(pods, p.End); p.End < l.Duration && got < 30 {
				t.Errorf("node %d: %d pods at %v", k, got, p.End)
			}
			if p.Start < 10*time.Second && p.End > 3*time.Hour {
				t.Errorf("node %d: a first pod runs until %v", k, p.End)
			}
		}
	}
}

func TestJobsStartAtTheirMarks(t *testing.T) {
	hours, others := 0, 0
	for _, pods := range day(t, "cron").Nodes {
		for _, p := range pods {
			if p.End-p.Start > 4*time.Minute || p.Start < 10*time.Second || p.End == 24*time.Hour {
				continue // always there
			}
			switch late := p.Start % (5 * time.Minute); {
			case late >= 3*time.Second || p.End-p.Start < 30*time.Second:
				t.Errorf("a job runs from %v to %v", p.Start, p.End)
			case p.Start%time.Hour < 3*time.Second:
				hours++
			default:
				others++
			}
		}
	}
	if a, b := float64(hours)/230, float64(others)/2640; a < 21 || a > 24 || b < 7 || b > 8 {
		t.Errorf("%.1f jobs every hour, %.1f at other marks", a, b)
	}
}

func TestADayHasANightAndANoon(t *testing.T) {
	l := day(t, "diurnal")
	for k, pods := range l.Nodes {
		for at, want := range map[time.Duration]int{30 * time.Second: 6, 6 * time.Hour: 18, 12 * time.Hour: 29, 18 * time.Hour: 18, 24*time.Hour - 1: 6} {
			if got := present(pods, at); got < want-3 || got > want+3 {
				t.Errorf("node %d: %d pods at %v, want about %d", k, got, at, want)
			}
		}
		for i := 7; i < len(pods); i++ {
			if pods[i].Start/(15*time.Second) == pods[i-1].Start/(15*time.Second) {
				t.Errorf("node %d: two pods start at %v", k, pods[i].Start)
			}
		}
	}
}

func TestAKindOfLoadIsDescribedInALine(t *testing.T) {
	want := []string{"steady", "burst", "rolling-update", "cron", "diurnal", "churn", "start", "surge"}
	if diff := cmp.Diff(want, Kinds()); diff != "" {
		t.Error(diff)
	}
	for _, kind := range want {
		if text := Describe(kind); text == "" || strings.Contains(text, "\n") {
			t.Errorf("%s: %q", kind, text)
		}
	}
	if text := Describe("sunny"); text != "" {
		t.Errorf("sunny: %q", text)
	}
}

func TestALoadThatCannotBeGeneratedIsRefused(t *testing.T) {
	for _, tt := range []struct {
		kind string
		s    Shape
		want string
	}{
		{"sunny", Shape{1, 1, time.Hour, 0}, `load: "sunny": must be one of steady, burst, rolling-update, cron, diurnal, churn, start, surge`},
		{"burst", Shape{0, 1, time.Hour, 0}, "nodes: 0: must be 1 to 10000"},
		{"burst", Shape{10001, 1, time.Hour, 0}, "nodes: 10001: must be 1 to 10000"},
		{"burst", Shape{1, 0, time.Hour, 0}, "pods: 0: must be 1 to 1000"},
		{"burst", Shape{1, 1001, time.Hour, 0}, "pods: 1001: must be 1 to 1000"},
		{"burst", Shape{1, 1, time.Minute - 1, 0}, "duration: 59.999999999s: must be 1m to 744h"},
		{"burst", Shape{1, 1, longestLoad + 1, 0}, "duration: 744h0m0.000000001s: must be 1m to 744h"},
		{"churn", Shape{10000, 30, longestLoad, 0}, "nodes: 10000: must be at most 268, as a node has 111920 pods in 744h0m0s of this load"},
	} {
		l, err := Generate(tt.kind, tt.s)
		if fmt.Sprint(err) != tt.want || l.Nodes != nil {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	for _, s := range []Shape{{10000, 1, time.Minute, 0}, {1, 1000, longestLoad, 0}} {
		if _, err := Generate("diurnal", s); err != nil {
			t.Error(err)
		}
	}
}

func TestThePeakIsTheMostPodsOfANodeAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Load{Duration: 20, Nodes: make([][]Pod, 2)}
		want, pods := 0, 0
		for k := range l.Nodes {
			for range rapid.IntRange(0, 8).Draw(t, "pods") {
				start := rapid.Int64Range(0, 18).Draw(t, "start")
				end := rapid.Int64Range(start+1, 20).Draw(t, "end")
				l.Nodes[k] = append(l.Nodes[k], Pod{time.Duration(start), time.Duration(end)})
				pods++
			}
			slices.SortFunc(l.Nodes[k], func(a, b Pod) int { return int(a.Start - b.Start) })
			for at := range l.Duration {
				want = max(want, present(l.Nodes[k], at))
			}
		}
		if l.Peak() != want || l.Pods() != pods {
			t.Fatalf("peak %d of %d pods, want %d of %d", l.Peak(), l.Pods(), want, pods)
		}
	})
}
