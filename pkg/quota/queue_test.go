package quota

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plenty is a budget that holds nothing up.
func plenty() *Budget { return NewBudget(nil, Limit{Burst: 1e6, PerSecond: 1e6}, 0) }

// put puts nodes of a class into the queue, the first the oldest.
func put(q *Queue, class Class, n int) {
	for i := range n {
		node := fmt.Sprintf("%s-%03d", class, i)
		q.Set(node, []Request{{Node: node, Action: action, Class: class, Since: time.Duration(i)}})
	}
}

// order takes what goes at once, each request done before the next, and returns the classes in
// runs, as in "starving x8, empty".
func order(q *Queue) string {
	var runs []string
	last, n := Class(-1), 0
	flush := func() {
		if n > 0 {
			runs = append(runs, fmt.Sprintf("%sx%d", last, n))
		}
	}
	for {
		w, found := q.Take(0)
		if !found {
			flush()
			return strings.Join(runs, " ")
		}
		q.Done(w)
		if w.Class != last {
			flush()
			last, n = w.Class, 0
		}
		n++
	}
}

func TestClassesTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		put  map[Class]int
		want string
	}{
		{map[Class]int{Starving: 20, Empty: 3, Giving: 2},
			"starvingx8 emptyx1 starvingx8 emptyx1 starvingx4 emptyx1 givingx2"},
		{map[Class]int{Starving: 3, Short: 2}, "starvingx3 shortx2"},
		{map[Class]int{Short: 10, Giving: 1}, "shortx8 givingx1 shortx2"},
		{map[Class]int{Starving: 9}, "starvingx9"},
	} {
		q := NewQueue(plenty())
		for class, n := range tt.put {
			put(q, class, n)
		}
		if got := order(q); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.put, got, tt.want)
		}
	}
}

// A class whose more urgent ones always have requests goes in the end: of nine grants one is for
// the classes behind the first, of nine of those one for the classes behind the second, and so on.
func TestEachClassGoesInTheEnd(t *testing.T) {
	q := NewQueue(plenty())
	for c := range classes {
		put(q, c, 1)
	}
	last, longest := [classes]int{}, [classes]int{}
	for i := 1; i <= 3*729; i++ {
		w, found := q.Take(0)
		if !found {
			t.Fatal("nothing may go")
		}
		q.Done(w)
		longest[w.Class] = max(longest[w.Class], i-last[w.Class])
		last[w.Class] = i
		w.Since += classesApart
		q.Set(w.Node, []Request{w})
	}
	if want := [classes]int{2, 2 * 9, 2 * 81, 729}; longest != want {
		t.Errorf("classes waited for %v grants, want %v", longest, want)
	}
}

const classesApart = time.Second

func TestTheOldestGoesFirstAndWhatHasBegunBeforeAll(t *testing.T) {
	q := NewQueue(plenty())
	q.Set("b", []Request{{Node: "b", Action: action, Class: Short, Since: 5}})
	q.Set("a", []Request{{Node: "a", Action: action, Class: Short, Since: 5}})
	q.Set("c", []Request{{Node: "c", Action: action, Class: Short, Since: 4}})
	q.Set("d", []Request{{Node: "d", Action: action, Class: Starving, Since: 9}})
	q.Set("e", []Request{{Node: "e", Action: "AttachNetworkInterface", Class: Giving, Since: 9, Begun: true}})
	var got []string
	for {
		w, found := q.Take(0)
		if !found {
			break
		}
		got = append(got, w.Node)
	}
	if want := []string{"e", "d", "c", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// The steps of jobs have names that are alike on all nodes.
func TestNoNodeWaitsForWhatAnotherOneChanges(t *testing.T) {
	q := NewQueue(plenty())
	for _, node := range []string{"a", "b"} {
		q.Set(node, []Request{{Node: node, Action: action, Object: "step 1", Begun: true}})
	}
	first, _ := q.Take(0)
	if second, found := q.Take(0); !found || first.Node == second.Node {
		t.Errorf("after %+v comes %+v", first, second)
	}
}

func TestANodeHasTwoRequestsUnderWayAndAnENIOne(t *testing.T) {
	q := NewQueue(plenty())
	q.Set("n", []Request{
		{Node: "n", Action: action, Object: "eni-1", Class: Starving},
		{Node: "n", Action: "UnassignPrivateIpAddresses", Object: "eni-1", Class: Giving},
		{Node: "n", Action: "CreateNetworkInterface", Class: Short},
		{Node: "n", Action: "AttachNetworkInterface", Class: Short},
	})
	first, _ := q.Take(0)
	second, _ := q.Take(0)
	if first.Object != "eni-1" || second.Object != "" {
		t.Errorf("took %+v and %+v: the second of one ENI must wait", first, second)
	}
	if w, found := q.Take(0); found {
		t.Errorf("a third request of the node is under way: %+v", w)
	}
	if _, waits := q.Next(0); waits {
		t.Error("Next waits for a token, not for a request to end")
	}
	q.Done(first)
	if w, found := q.Take(0); !found {
		t.Error("nothing goes after one has ended")
	} else {
		q.Done(w)
	}
}

func TestNoMoreThan32RequestsAreUnderWay(t *testing.T) {
	q := NewQueue(plenty())
	put(q, Starving, 100)
	for range 100 {
		q.Take(0)
	}
	if q.UnderWay() != 32 || q.Waiting()[Starving] != 68 {
		t.Errorf("%d under way, %d wait", q.UnderWay(), q.Waiting()[Starving])
	}
}

// An action without tokens holds up no other one, whatever its class.
func TestAnActionWithoutTokensHoldsUpNoOther(t *testing.T) {
	b := NewBudget(map[string]Limit{"Create": {Burst: 1, PerSecond: 1}}, Limit{Burst: 10, PerSecond: 1}, 0)
	q := NewQueue(b)
	for _, n := range []string{"a", "b"} {
		q.Set(n, []Request{{Node: n, Action: "Create", Class: Starving}})
	}
	q.Set("c", []Request{{Node: "c", Action: "Unassign", Class: Giving}})
	var got []string
	for now := time.Duration(0); len(got) < 3; {
		if w, found := q.Take(now); found {
			got = append(got, fmt.Sprint(w.Node, " ", now))
			continue
		}
		due, waits := q.Next(now)
		if !waits {
			t.Fatalf("nothing waits after %v", got)
		}
		now = due
	}
	if want := []string{"a 0s", "c 0s", "b 1s"}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// A request that is set again in the same words keeps its place, and one that is taken back is
// never served.
func TestTheQueueServesWhatIsAskedForAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewQueue(NewBudget(nil, Limit{Burst: 3, PerSecond: 2}, 0))
		requests := map[string][]Request{}
		var under []Request
		now := time.Duration(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			node := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(t, "node"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				var list []Request
				for i, a := range []string{"Create", "Assign"} {
					if rapid.Bool().Draw(t, a) {
						list = append(list, Request{Node: node, Action: a, Object: strings.Repeat("-eni", i), Begun: rapid.Bool().Draw(t, "begun"),
							Class: Class(rapid.IntRange(0, int(classes)-1).Draw(t, "class")), Since: time.Duration(rapid.IntRange(0, 3).Draw(t, "since"))})
					}
				}
				q.Set(node, list)
				requests[node] = list
			case 1:
				now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
			case 2:
				if len(under) > 0 {
					q.Done(under[0])
					under = under[1:]
				}
			default:
				w, found := q.Take(now)
				if !found {
					continue
				}
				at := slices.Index(requests[w.Node], w)
				if at < 0 {
					t.Fatalf("served %+v, which nobody asked for: %v", w, requests)
				}
				requests[w.Node] = slices.Delete(slices.Clone(requests[w.Node]), at, at+1)
				if w.Object != "" && slices.ContainsFunc(under, func(u Request) bool { return u.Node == w.Node && u.Object == w.Object }) {
					t.Fatalf("two requests on %s", w.Object)
				}
				under = append(under, w)
			}
			n := 0
			for _, list := range requests {
				n += len(list)
			}
			sum := 0
			for _, c := range q.Waiting() {
				sum += c
			}
			if n != sum || q.UnderWay() != len(under) {
				t.Fatalf("%d wait and %d are under way, want %d and %d", sum, q.UnderWay(), n, len(under))
			}
		}
	})
}

// The queue of a cluster that starts: a thousand nodes at once, with the budget that an operator
// has of EC2, are served one after the other without a gap, the oldest first.
func TestAThousandNodesAreServedWithoutAGap(t *testing.T) {
	b := NewBudget(map[string]Limit{action: Limit{Burst: 100, PerSecond: 5}.Share(80)}, Limit{}, 0)
	q := NewQueue(b)
	put(q, Starving, 1000)
	now := time.Duration(0)
	for i := 1; i <= 1000; i++ {
		w, found := q.Take(now)
		for !found {
			due, waits := q.Next(now)
			if !waits || due <= now {
				t.Fatalf("after %d nodes nothing waits at %s (due %s)", i-1, now, due)
			}
			now = due
			w, found = q.Take(now)
		}
		q.Done(w)
		if want := time.Duration(max(0, i-80)) * 250 * time.Millisecond; now != want || w.Since != time.Duration(i-1) {
			t.Fatalf("node %d (%s) is served at %s, want %s", i, w.Node, now, want)
		}
	}
}
