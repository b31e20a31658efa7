package agent

import (
	"testing"
	"time"
)

// A new node whose operator does not answer has no node cache, and no pod yet. That the operator is silent is what people are told:
// the disk of a node of which the cache is "missing" is fine.
func TestANewNodeTellsThatItsOperatorIsSilent(t *testing.T) {
	operated(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.api = &testAPI{}
		n.hearLater()
		op.set(func(op *testOperator) { op.away = true })
		n.start(-1, false)
		defer func() { n.stop() }()
		n.hear()
		for range 5 {
			sleep(time.Minute)
			for _, c := range n.status().Causes {
				if c.Kind == "cache-unusable" {
					t.Fatalf("after %s: %+v", n.w.now(), c)
				}
			}
		}
		if c := n.status().Causes; len(c) == 0 || c[0].Kind != "operator-silent" {
			t.Errorf("%+v, want operator-silent", c)
		}
		if r := n.last(); !r.Faulty || r.Reason != "OperatorSilent" {
			t.Errorf("%+v", r)
		}
		op.set(func(op *testOperator) { op.away = false })
		n.fillWith(t, 4)
		sleep(5 * time.Minute)
		if r := n.last(); r.Faulty {
			t.Errorf("%+v", r)
		}
	})
}
