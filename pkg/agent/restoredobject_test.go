package agent

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/order"
)

// leftOperator runs a test of a node whose agent calls the cloud itself since its operator was left; backup is the object of before that.
func leftOperator(t *testing.T, pods int, test func(t *testing.T, n *testNode, op *testOperator, backup order.Object)) {
	operatedWith(t, pods, func(t *testing.T, n *testNode, op *testOperator) {
		sleep(time.Minute)
		backup := op.object()
		n.stop()
		n.callsBy(agentconf.Sim)
		n.start(-1, false)
		sleep(5 * time.Minute)
		if is := op.object(); is.Spec.Mode != order.Self || is.Status.Mode != order.Self {
			t.Fatalf("%+v", is)
		}
		test(t, n, op, backup)
	})
}

// putBack puts the object back to what it was, with the version that comes next.
func (op *testOperator) putBack(backup order.Object) {
	op.set(func(op *testOperator) {
		backup.Generation = op.is.Generation
		op.put(backup)
	})
}

// The object of a node whose agent calls the cloud itself is put back to when an operator called: with its next describe the agent
// learns of it, calls no more, and asks for the calls.
func TestAnAgentThatCallsFindsAnObjectThatWasPutBack(t *testing.T) {
	leftOperator(t, 20, func(t *testing.T, n *testNode, op *testOperator, backup order.Object) {
		op.set(func(op *testOperator) { op.away = true })
		op.putBack(backup)
		sleep(20 * time.Minute)
		if is := op.object(); is.Spec.Mode != order.Self || is.Status.Mode != order.Operator {
			t.Errorf("the operator is not told: %+v", is)
		}
		calls := n.w.calls()
		for range 20 {
			_ = n.add()
		}
		sleep(time.Hour)
		if got := n.w.calls(); !sameCounts(got, calls) {
			t.Errorf("the agent calls beside the operator: %v, before %v", got, calls)
		}
		op.set(func(op *testOperator) { op.away = false })
		sleep(5 * time.Minute)
		n.retry()
		if got := n.w.calls(); got["Interfaces"] == calls["Interfaces"] {
			t.Error("nobody calls the cloud")
		}
		n.fillWith(t, 3)
	})
}

// With the object its agent.yaml is put back, too: what the node had when the operator called last is not what it has.
func TestAnAgentThatHasCalledDoesNotAdoptAnObjectThatWasPutBack(t *testing.T) {
	leftOperator(t, 40, func(t *testing.T, n *testNode, op *testOperator, backup order.Object) {
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(40 * time.Minute)
		if had := order.Have(backup.Spec, backup.Status); len(n.inCloud()) > had-16 {
			t.Fatalf("the cloud shows %d addresses; the status of before has %d", len(n.inCloud()), had)
		}
		n.stop()
		op.succeed()
		op.set(func(op *testOperator) { op.away = true })
		op.putBack(backup)
		n.callsBy(agentconf.Operator)
		n.start(-1, false)
		sleep(time.Minute)
		for range 40 {
			_ = n.add()
		}
		sleep(10 * time.Minute)
		n.retry()
		n.must(t)
		op.set(func(op *testOperator) { op.away = false })
		sleep(20 * time.Minute)
		n.retry()
		n.must(t)
		n.fillWith(t, 3)
		if is := op.object(); is.Status.Mode != order.Operator || is.Spec.SeenRevision != 0 {
			t.Errorf("%+v", is)
		}
	})
}
