package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
)

// setTopologyPods says which pods of topologies the cluster shows on the node.
func (n *testNode) setTopologyPods(pods ...eni.TopologyPod) {
	n.mu.Lock()
	n.ofTopologies = pods
	n.mu.Unlock()
	n.wake()
}

func podOf(name string) eni.TopologyPod {
	return eni.TopologyPod{Pod: eni.Pod{UID: "u-" + name, Namespace: "db", Name: name}, Topology: "db"}
}

// ready keeps addresses for the next pods of the topology db.
func (op *testOperator) ready(t *testing.T, count int) []order.Reserved {
	t.Helper()
	list := op.keep(t, count)
	for i := range list {
		list[i].Namespace, list[i].Pod = "", ""
	}
	op.reserve(list...)
	slices.SortFunc(list, func(a, b order.Reserved) int { return a.Addr.Compare(b.Addr) })
	sleep(time.Minute)
	return list
}

// A pod of a topology gets what is ready on the node as soon as its agent sees it, with the operator away. The operator says afterwards whose it is.
func TestAPodGetsWhatIsReadyWithoutTheOperator(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		list := op.ready(t, 2)
		n.is(t, list[0].Addr, "reserved -")
		op.set(func(op *testOperator) { op.away = true })
		other := podOf("web-0")
		other.Topology = "web"
		n.setTopologyPods(other, podOf("db-7"))
		sleep(time.Second)
		n.is(t, list[0].Addr, "reserved db/db-7")
		n.is(t, list[1].Addr, "reserved -")
		mine := list[0]
		mine.Namespace, mine.Pod, mine.UID = "db", "db-7", "u-db-7"
		k := n.claim(t, mine, "a")
		sleep(10 * time.Minute)
		n.is(t, list[0].Addr, "claimed db/db-7")
		n.is(t, list[1].Addr, "reserved -")

		op.reserve(mine, list[1])
		n.is(t, list[0].Addr, "claimed db/db-7")
		op.reserve(list...) // its pod has ended, as the operator sees it first
		n.setTopologyPods()
		n.del(k)
		sleep(time.Second)
		n.is(t, list[0].Addr, "reserved -")
		n.setTopologyPods(podOf("db-8"))
		sleep(time.Second)
		n.is(t, list[0].Addr, "reserved -") // it cools
		n.is(t, list[1].Addr, "reserved db/db-8")
		op.set(func(op *testOperator) { op.away = false })
		n.fillWith(t, 20)
		n.must(t)
		n.noCalls(t)
	})
}

// A pod that was given what is ready and is gone before it started leaves it to the next one.
func TestWhatIsReadyIsAnotherPodsWhereTheFirstIsGone(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		list := op.ready(t, 1)
		n.setTopologyPods(podOf("db-1"))
		sleep(time.Second)
		n.is(t, list[0].Addr, "reserved db/db-1")
		n.setTopologyPods(podOf("db-2"))
		sleep(2 * time.Second)
		n.is(t, list[0].Addr, "reserved db/db-2")
		n.must(t)
	})
}

// What is ready is chosen for both families on one ENI, and as the operator does.
func TestWhatIsReadyIsChosenOnOneENI(t *testing.T) {
	cached := freeCache(4)
	cached.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6}
	list := []order.Reserved{{Addr: cached.Addresses[0].Addr, Topology: "db"}, {Addr: cached.Addresses[1].Addr, Topology: "db"}}
	cached.Reserve(order.Reservations(list), time.Hour)
	o := &ordered{Agent: &Agent{}}
	o.newest.Status.Reserved = list
	o.TopologyPods = func() []eni.TopologyPod { return []eni.TopologyPod{podOf("db-0")} }
	if got := o.nameKept(cached, nil, 2*time.Hour); len(got) != 0 {
		t.Errorf("of one family alone %v", got)
	}
	cached.Settings.Families = cached.Settings.Families[:1]
	got := o.nameKept(cached, nil, 2*time.Hour)
	if len(got) != 1 || got[0].Pod != "db-0" || got[0].UID != "u-db-0" || got[0].Addr != slices.MinFunc(list, func(a, b order.Reserved) int { return a.Addr.Compare(b.Addr) }).Addr {
		t.Fatalf("%v", got)
	}
	cached.Reserve(order.Reservations(got), 2*time.Hour)
	if again := o.nameKept(cached, nil, 2*time.Hour); len(again) != 0 {
		t.Errorf("a second one: %v", again)
	}
	if left := o.withoutNamed(list, cached); len(left) != 1 || left[0].Addr == got[0].Addr {
		t.Errorf("taken from its pod: %v", left)
	}
}

// What another topology keeps for the name of a pod is not the pod's: it gets what its own has ready.
func TestWhatAnotherTopologyKeepsForAPodServesItNot(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		list := op.ready(t, 2)
		other := list[1]
		other.Topology, other.Namespace, other.Pod = "web", "db", "db-7"
		op.reserve(list[0], other)
		sleep(time.Second)
		op.set(func(op *testOperator) { op.away = true })
		n.setTopologyPods(podOf("db-7"))
		sleep(time.Second)
		n.is(t, list[0].Addr, "reserved db/db-7")
		n.is(t, other.Addr, "reserved db/db-7")
	})
}
