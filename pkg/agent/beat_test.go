package agent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/status"
)

// Without it nobody could tell an agent that has nothing to do from one that hangs.
func TestALoopWithNothingToDoSaysThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var beats atomic.Int32
		_, n := one(t, large, func(n *testNode) {
			rarely(&n.conf)
			n.beat = func() { beats.Add(1) }
		})
		defer n.stop()
		sleep(5 * time.Second)
		before, compared := beats.Load(), n.compared()
		sleep(20 * time.Minute)
		if got := beats.Load() - before; got < 119 || got > 121 || n.compared() != compared {
			t.Errorf("%d signs of life and %d comparisons in 20 minutes, want 120 and none", got, n.compared()-compared)
		}
		if st := n.status(); st.Beat != status.BeatEvery {
			t.Errorf("the status says every %s", st.Beat)
		}
	})
}
