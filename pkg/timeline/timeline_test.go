package timeline

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The plain way is to keep a sorted list.
func TestTheFirstIsThatOfASortedList(t *testing.T) {
	type due struct {
		at   time.Duration
		what int
	}
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var want []due
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(want) > 0 && rapid.IntRange(0, 2).Draw(t, "step") == 0 {
				q.DropFirst()
				want = want[1:]
			} else {
				at := time.Duration(rapid.IntRange(-3, 9).Draw(t, "at"))
				q.Add(at, i)
				want = append(want, due{at, i})
				slices.SortStableFunc(want, func(a, b due) int { return int(a.at - b.at) })
			}
			at, what, is := q.First()
			if is != (len(want) > 0) || is && (due{at, what}) != want[0] {
				t.Fatalf("%d at %s, %t; want the first of %v", what, at, is, want)
			}
		}
	})
}
