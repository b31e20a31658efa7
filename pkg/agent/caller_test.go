package agent

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/order"
)

// A node boots and has no memory of an operator. Its agent, which is to call the cloud itself by its configuration, goes by the node's object.
func TestAnAgentWithoutMemoryGoesByTheObject(t *testing.T) {
	operated(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.start(-1, false)
		defer func() { n.stop() }()
		sleep(10 * time.Second)
		n.fillWith(t, 10)
		op.set(func(op *testOperator) { op.away = true })
		n.stop()
		n.reboot()
		n.callsBy(agentconf.Sim)
		n.start(-1, false)
		sleep(time.Hour)
		n.noCalls(t)
		if is := op.object(); is.Spec.Mode != order.Self || is.Status.Mode != order.Operator {
			t.Errorf("the operator is not told: %+v", is)
		}
		op.set(func(op *testOperator) { op.away = false })
		sleep(5 * time.Minute)
		if n.w.calls()["Interfaces"] == 0 {
			t.Error("nobody calls the cloud")
		}
		n.fillWith(t, 5)
	})
}

// An agent that has lost its memory does not know that it calls the cloud itself while the API server does not answer. It serves pods of what
// the node has, says so, and calls once it has read that there is no object.
func TestAnAgentDoesNotCallBeforeItHasReadTheObject(t *testing.T) {
	changesOver(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.start(-1, false)
		defer func() { n.stop() }()
		n.fillWith(t, 4)
		n.stop()
		n.loseMemory()
		calls := n.w.calls()
		op.set(func(op *testOperator) { op.deaf = true })
		n.start(-1, false)
		_ = n.add()
		sleep(time.Hour)
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(time.Hour)
		_ = n.add()
		if left := n.retry(); left > 0 {
			t.Errorf("%d pods got nothing of the pool", left)
		}
		for range 60 {
			_ = n.add()
		}
		sleep(time.Minute)
		n.retry()
		if got := n.w.calls(); !sameCounts(got, calls) {
			t.Errorf("the agent called the cloud: %v, before %v", got, calls)
		}
		if c := n.status().Causes; len(c) == 0 || c[0].Kind != "operator-silent" || !strings.Contains(c[0].What, "NodeNetwork yet") || !strings.Contains(c[0].What, "connection refused") {
			t.Errorf("%+v", c)
		}
		op.set(func(op *testOperator) { op.deaf = false })
		for range 20 {
			sleep(time.Minute)
			n.retry()
		}
		if got := n.w.calls(); got["CreateInterface"] <= calls["CreateInterface"] {
			t.Errorf("the agent does not call: %v, before %v", got, calls)
		}
		n.must(t)
	})
}

// An agent that remembers that it calls the cloud needs no API server for that.
func TestAnAgentThatRemembersCallsWithoutTheAPIServer(t *testing.T) {
	changesOver(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.start(-1, false)
		defer func() { n.stop() }()
		n.fillWith(t, 4)
		n.stop()
		calls := n.w.calls()
		op.set(func(op *testOperator) { op.deaf = true })
		n.start(-1, false)
		n.fillWith(t, 30)
		if got := n.w.calls(); got["Interfaces"] <= calls["Interfaces"] {
			t.Errorf("the agent does not call: %v, before %v", got, calls)
		}
	})
}

func sameCounts(x, y map[string]int) bool {
	for k := range y {
		if x[k] != y[k] {
			return false
		}
	}
	return len(x) == len(y)
}

// An agent that is to call itself is started again without its memory while the operator takes over: nobody calls until that has ended.
func TestNobodyCallsBetweenTheTwo(t *testing.T) {
	changesOver(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.start(-1, false)
		defer func() { n.stop() }()
		n.fillWith(t, 4)
		n.stop()
		n.loseMemory()
		calls := n.w.calls()
		op.set(func(op *testOperator) {
			op.away = true
			op.put(order.Object{UID: "uid", Generation: 1, View: order.View{Spec: order.Spec{Mode: order.Operator}, Status: order.Status{Mode: order.Joining}}})
		})
		n.start(-1, false)
		sleep(time.Hour)
		if got := n.w.calls(); !sameCounts(got, calls) {
			t.Errorf("the agent called the cloud: %v, before %v", got, calls)
		}
	})
}

// The spec is put back to what it was before a withdrawal, with the same status: the agent tells what it wants now, though nothing else has
// changed, and what serves pods goes back no more.
func TestASpecOfBeforeIsWrittenAgain(t *testing.T) {
	operated(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.start(-1, false)
		defer func() { n.stop() }()
		sleep(10 * time.Second)
		n.fillWith(t, 30)
		op.set(func(op *testOperator) {
			op.away = true
			for _, line := range n.lines()[:5] {
				op.is.Spec.Release = append(op.is.Spec.Release, hostPrefixes([]netip.Addr{line.Addr})...)
			}
			op.is.PutBack++
			op.put(op.is)
		})
		before, told := n.lines(), false
		for range 100 {
			sleep(100 * time.Millisecond)
			is := op.object()
			told = told || is.Spec.SeenRevision > 0 && len(is.Spec.Release) == 0
		}
		if is := op.object(); !told || len(is.Spec.Release) > 0 || is.Spec.SeenRevision != 0 {
			t.Errorf("told %v, then %+v", told, is.Spec)
		}
		op.set(func(op *testOperator) { op.away = false })
		sleep(time.Minute)
		if !sameLines(before, n.lines()) {
			t.Errorf("pods' addresses changed from %v to %v", before, n.lines())
		}
		n.fillWith(t, 10)
	})
}

// loseMemory loses the agent's memory.
func (n *testNode) loseMemory() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory = nil
}
