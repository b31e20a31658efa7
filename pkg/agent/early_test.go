package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An agent that is stopped right after its start, as where its port is taken, has made no plan:
// it must not tell that the instance can carry no pods.
func TestAnAgentThatEndsAtOnceTellsNothingOfTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		n.stop()
		n.start(-1, false)
		time.Sleep(time.Millisecond) // the describe is under way, and takes 300
		n.stop()
		if p := n.status().Problem; strings.Contains(p, "carries no") {
			t.Errorf("problem %q", p)
		}
	})
}
