package operated

import (
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// The operator is killed, and then the API server and the agent are too. Pods start and stop from what the node has, and when all are back the pool is
// what it should be.
func TestPodsStartAndStopWhileOperatorAndAPIServerAreAway(t *testing.T) {
	t.Parallel()
	b := newBed(t, "away", sim.ReuseLowest)
	operator, _ := b.operator("operator")
	agent := b.agent()
	b.up("a", "b", "c", "d")
	b.complete("a pool for four pods")

	operator.Kill()
	b.bind("e", "f", "g")
	b.start("e")
	b.end("a")
	b.api.APIServer.Kill()
	b.start("f")
	b.end("b", "c")
	agent.Kill()
	b.agent()
	b.start("g")
	b.podsKeep()

	b.api.APIServer.Start()
	b.remove("a", "b", "c")
	b.operator("second")
	b.up("h", "i", "j", "k", "l", "m", "n")
	b.complete("a pool for eleven pods")
	before := len(b.inAccount())
	gone := []string{"h", "i", "j", "k", "l", "m", "n"}
	b.end(gone...)
	b.remove(gone...)
	b.shrinks(before)
	b.complete("a pool for four pods again")
}
