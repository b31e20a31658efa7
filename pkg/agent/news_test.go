package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nodecache"
	"pgregory.net/rapid"
)

// The people of a pod hear that it got no address when an ADD of it has failed, and not again while it
// goes on lacking one, nor within ten minutes of that, unless all has been well.
func TestTheOwnersOfAPodAreWarnedOnceWhileItLacksAnAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := news{warned: map[eni.Pod]time.Duration{}}
		lacked := map[string]time.Duration{} // told, and when it last lacked one
		now := time.Hour
		for range rapid.IntRange(1, 12).Draw(t, "ticks") {
			now += time.Duration(rapid.IntRange(1, 900).Draw(t, "later")) * time.Second
			well := rapid.IntRange(0, 9).Draw(t, "well") == 0
			var waiting []nodecache.PendingADD
			for i := range 3 {
				if rapid.Bool().Draw(t, "waits") {
					waiting = append(waiting, nodecache.PendingADD{Owner: sandboxOf(fmt.Sprint(i), "default", fmt.Sprint("p", i), fmt.Sprint(i)), Failed: rapid.Bool().Draw(t, "failed")})
				}
			}
			if well {
				clear(lacked)
			}
			for name, at := range lacked {
				if now-at >= warnedFor {
					delete(lacked, name)
				}
			}
			told := map[string]bool{}
			for _, p := range n.toWarn(waiting, well, now) {
				if _, was := lacked[p.Name]; was || told[p.Name] {
					t.Fatalf("%s is told twice", p.Name)
				}
				told[p.Name] = true
			}
			for _, w := range waiting {
				_, was := lacked[w.Owner.Pod]
				if w.Failed && !was && !told[w.Owner.Pod] {
					t.Fatalf("nobody is told of %s", w.Owner.Pod)
				}
				if told[w.Owner.Pod] && !w.Failed {
					t.Fatalf("%s is told, and its ADD did not fail", w.Owner.Pod)
				}
				if was || told[w.Owner.Pod] {
					lacked[w.Owner.Pod] = now
				}
			}
		}
	})
}
