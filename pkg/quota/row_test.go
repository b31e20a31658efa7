package quota

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However requests come and go, they are in order.
func TestARowKeepsItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var is row
		var want []Request
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			w := Request{Node: fmt.Sprint("n", rapid.IntRange(0, 30).Draw(t, "node")), Since: time.Duration(rapid.IntRange(0, 2).Draw(t, "since"))}
			if at := slices.Index(want, w); at >= 0 {
				want = slices.Delete(want, at, at+1)
				is.remove(w)
			} else {
				want = append(want, w)
				slices.SortFunc(want, func(a, b Request) int { return a.before(b) })
				is.insert(w)
			}
			if !slices.Equal(is.list(), want) {
				t.Fatalf("%v, want %v", is.list(), want)
			}
		}
		is.remove(Request{Node: "nobody"})
		if len(is.list()) != len(want) {
			t.Fatal("what is not there was removed")
		}
	})
}
