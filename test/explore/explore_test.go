// Package explore walks through all that can happen to one node, up to a bound: the real
// agent with the real engine over a simulated account, of which each half-operation may
// come out in each of its ways and each effect be the last before the agent is killed.
package explore

import (
	"cmp"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

var (
	mostFaults = flag.Int("explore.faults", 0, "faults, kills and untimely pods of a run; 0 for those of CI")
	mostSteps  = flag.Int("explore.steps", 0, "pods that come or go in a run; 0 for those of CI")
)

// fewSteps is how many pods come or go in a run of CI that has all of its faults.
const fewSteps = 2

// scenarios are clouds as they are.
var scenarios = []scenario{
	{name: "like EC2", traits: sim.LikeEC2()},
	{name: "like BCE", traits: sim.LikeBCE()},
	{name: "like EC2, slow", traits: sim.LikeEC2(), slow: 2 * time.Second},
}

func TestAllThatCanHappen(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			explore(t, sc, bound{cmp.Or(*mostFaults, fewFaults), cmp.Or(*mostSteps, fewSteps)})
		})
	}
}

// More pods come and go where less goes wrong.
func TestAllThatCanHappenToMorePods(t *testing.T) {
	b := bound{cmp.Or(*mostFaults, fewFaults) - 1, cmp.Or(*mostSteps, fewSteps) + 2}
	explore(t, scenarios[0], b)
}

// An ENI that was made without an answer must not be given up, whatever is said of it later.
func TestAllThatCanHappenToACreate(t *testing.T) {
	sc := scenarios[0]
	sc.only = func(choice string) bool {
		return strings.HasPrefix(choice, "create an ENI") || strings.HasPrefix(choice, "describe ENI by token")
	}
	explore(t, sc, bound{fewFaults + 2, fewSteps})
}

func explore(t *testing.T, sc scenario, b bound) {
	s := &search{scenario: sc, bound: b}
	if v := s.run(); v != nil {
		t.Error(s.story(v))
	}
	t.Log(s)
}
