package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
)

// keep assigns addresses to an ENI with room, as an operator does for claims, and reserves them: for db-0, db-1 and so on.
func (op *testOperator) keep(t *testing.T, count int) (list []order.Reserved) {
	t.Helper()
	is := op.object().Status
	at := slices.IndexFunc(is.ENIs, func(e order.ENI) bool { return len(e.Addresses)+count < is.Limits.V4 })
	if at < 0 {
		t.Fatalf("no ENI has room: %+v", is.ENIs)
	}
	addrs, err := op.cloud.AssignAddresses(t.Context(), is.ENIs[at].ID, eni.IPv4, count)
	if err != nil || len(addrs) != count {
		t.Fatalf("%v, %v", addrs, err)
	}
	for i, a := range addrs {
		list = append(list, order.Reserved{Addr: a, Topology: "db", Namespace: "db", Pod: fmt.Sprint("db-", i)})
	}
	op.status(func(s *order.Status) {
		*s = op.term.Assigned(order.View{Spec: op.object().Spec, Status: *s}, op.moment(), is.ENIs[at].ID, hostPrefixes(addrs)...)
		s.Reserved = append(slices.Clone(s.Reserved), list...)
		s.Revision++
	})
	sleep(5 * time.Second)
	return list
}

// reserve writes what is reserved from now on.
func (op *testOperator) reserve(list ...order.Reserved) {
	op.status(func(s *order.Status) { s.Reserved, s.Revision = list, s.Revision+1 })
	sleep(5 * time.Second)
}

// status changes the status from the newest copy.
func (op *testOperator) status(change func(*order.Status)) {
	for at := op.object(); ; at = op.object() {
		next := at.Status
		if change(&next); op.writeStatus(at, next) {
			return
		}
	}
}

// line returns the cache's line of an address.
func (n *testNode) line(addr netip.Addr) (line eni.Address, has bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.cached.Addresses, func(a eni.Address) bool { return a.Addr == addr })
	if at < 0 {
		return line, false
	}
	return n.cached.Addresses[at], true
}

// is fails the test unless the line of the address reads so: its state, with the pod that it is kept for.
func (n *testNode) is(t *testing.T, addr netip.Addr, want string) {
	t.Helper()
	line, has := n.line(addr)
	got := "-"
	if has {
		got = line.State.String()
	}
	if line.Lost {
		got = "lost"
	} else if line.IsClaimed() {
		got = "claimed"
	}
	if r := line.Reservation; r != nil {
		got += " " + r.PodName()
	}
	if got != want {
		t.Errorf("%s is %s, want %s", addr, got, want)
	}
}

// claim starts a sandbox of the pod, with what is reserved for it.
func (n *testNode) claim(t *testing.T, r order.Reserved, container string) eni.Key {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	o := eni.Owner{Key: eni.Key{Network: "pods", Container: container, IfName: "eth0"}, Namespace: r.Namespace, Pod: r.Pod, Netns: "/run/netns/" + container}
	err := n.update(func(s *ipam.State) error {
		l, err := s.AssignReserved(o, r.Topology, "", n.w.now())
		if err == nil && (len(l.Addresses) != 1 || l.Addresses[0].Addr != r.Addr) {
			err = fmt.Errorf("%s got %v", r.Pod, l.Addresses)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !n.routed[r.Addr] {
		t.Errorf("%s was handed out and the kernel does not route it", r.Addr)
	}
	n.pods[o.Key] = &testPod{owner: o, addrs: []netip.Addr{r.Addr}}
	n.wake()
	return o.Key
}

// What the operator reserves is reserved, its pod's while that has it, and gone when it is reserved no more. General pods never get any of it,
// however many there are.
func TestWhatTheOperatorReservesIsItsPodsUntilItIsWithdrawn(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		db := op.keep(t, 3)
		for _, r := range db {
			n.is(t, r.Addr, "reserved db/"+r.Pod)
		}
		n.fillWith(t, 30) // beside what is reserved
		first := n.claim(t, db[0], "a")
		n.is(t, db[0].Addr, "claimed db/db-0")
		slots := op.object().Spec.Slots
		sleep(10 * time.Minute)
		if is := op.object(); is.Spec.Slots > slots {
			t.Errorf("a pod that has what is kept for it makes the node ask for %d slots, before %d", is.Spec.Slots, slots)
		}

		other := db[1]
		other.Pod, other.UID = "db-7", "u-7"
		op.reserve(other) // and neither db-0's nor db-2's
		n.is(t, db[0].Addr, "claimed db/db-0")
		n.is(t, db[1].Addr, "reserved db/db-7")
		sleep(time.Minute)
		n.is(t, db[2].Addr, "-")
		n.del(first)
		sleep(time.Second)
		n.is(t, db[0].Addr, "reserved db/db-0") // it cools
		n.fillWith(t, 5)
		sleep(time.Minute)
		n.is(t, db[0].Addr, "-")
		if is := op.object(); len(is.Spec.Release)+len(is.Status.Releasing) > 0 {
			t.Errorf("%v and %v still go back", is.Spec.Release, is.Status.Releasing)
		}
		for _, line := range n.lines() {
			if slices.ContainsFunc(db, func(r order.Reserved) bool { return r.Addr == line.Addr }) {
				t.Errorf("%s is a general pod's", line.Addr)
			}
		}
		n.must(t)
		n.noCalls(t)
	})
}

// A claim comes back before the operator has accepted that it goes: the release is taken back, and nobody has the address in between.
func TestWhatIsReservedAgainBeforeItsReleaseIsAcceptedStays(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		db := op.keep(t, 2)
		op.set(func(op *testOperator) { op.away = true })
		op.reserve()
		sleep(10 * time.Second)
		if going := op.object().Spec.Release; len(going) != 2 {
			t.Fatalf("%v go back", going)
		}
		n.is(t, db[0].Addr, "releasing db/db-0")
		n.addAndRetry(20) // the pods that wait get none of it
		sleep(time.Minute)
		n.is(t, db[0].Addr, "releasing db/db-0")
		op.reserve(db[0])
		sleep(time.Minute)
		n.is(t, db[0].Addr, "reserved db/db-0")
		n.is(t, db[1].Addr, "releasing db/db-1")
		if going := op.object().Spec.Release; len(going) != 1 {
			t.Errorf("%v go back", going)
		}
		n.claim(t, db[0], "a")
		op.set(func(op *testOperator) { op.away = false })
		sleep(time.Minute)
		n.is(t, db[0].Addr, "claimed db/db-0")
		n.is(t, db[1].Addr, "-")
		n.must(t)
	})
}

// The cloud has moved the address to another node: the pod that still runs here has it no more, and at its end it is dropped.
func TestAnAddressThatMovesAwayUnderItsPodIsLost(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		db := op.keep(t, 1)
		k := n.claim(t, db[0], "a")
		before := n.compared()
		on := slices.IndexFunc(op.object().Status.ENIs, func(e order.ENI) bool { return slices.Contains(e.Addresses, hostPrefixes([]netip.Addr{db[0].Addr})[0]) })
		if err := op.cloud.UnassignAddresses(t.Context(), op.object().Status.ENIs[on].ID, []netip.Addr{db[0].Addr}); err != nil {
			t.Fatal(err)
		}
		op.status(func(s *order.Status) {
			s.ENIs = slices.Clone(s.ENIs)
			e := &s.ENIs[on]
			e.Addresses = slices.DeleteFunc(slices.Clone(e.Addresses), func(p netip.Prefix) bool { return p.Addr() == db[0].Addr })
			s.Reserved, s.Revision = nil, s.Revision+1
		})
		sleep(2 * time.Second)
		n.is(t, db[0].Addr, "lost db/db-0")
		if n.compared() == before {
			t.Error("the kernel was not told")
		}
		n.del(k)
		sleep(5 * time.Second)
		n.is(t, db[0].Addr, "-")
	})
}

// A boot takes the cache away, and the pods with it: the object says for whom what is kept.
func TestAfterABootWhatIsReservedIsReserved(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		db := op.keep(t, 2)
		n.claim(t, db[0], "a")
		n.kill()
		n.reboot()
		op.boot = "boot-2"
		n.start(-1, false)
		sleep(time.Minute)
		for _, r := range db {
			n.is(t, r.Addr, "reserved db/"+r.Pod)
		}
		n.fillWith(t, 20)
		n.claim(t, db[0], "b")
		n.must(t)
	})
}

// An ENI on which something is reserved stays, whatever else goes.
func TestAnENIWithWhatIsReservedStays(t *testing.T) {
	operatedWith(t, 40, func(t *testing.T, n *testNode, op *testOperator) {
		is := op.object()
		last := is.Status.ENIs[len(is.Status.ENIs)-1]
		at := slices.IndexFunc(last.Addresses, func(p netip.Prefix) bool { line, _ := n.line(p.Addr()); return line.State == eni.Free })
		if last.Index == 0 || at < 0 {
			t.Fatalf("no address of the last ENI is free: %+v", is.Status.ENIs)
		}
		kept := order.Reserved{Addr: last.Addresses[at].Addr(), Topology: "db"}
		op.reserve(kept)
		n.is(t, kept.Addr, "reserved -")
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(2 * time.Hour)
		n.is(t, kept.Addr, "reserved -")
		if is := op.object(); len(is.Spec.ReleaseInterfaces) > 0 || !slices.ContainsFunc(is.Status.ENIs, func(e order.ENI) bool { return e.ID == last.ID }) {
			t.Errorf("%+v", is)
		}
		n.must(t)
		n.noCalls(t)
	})
}

// An ENI that carries a topology serves its pods alone, and is not the agent's to give back.
func TestAnENIOfATopologyServesNoGeneralPod(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		is := op.object()
		nic, err := op.cloud.CreateInterface(t.Context(), cloud.Create{Token: order.Token(is.UID, is.Status.Created), Subnet: "subnet-a", V4: 3})
		if err != nil {
			t.Fatal(err)
		}
		made := orderENI(nic)
		made.Topology = "db"
		kept := order.Reserved{Addr: nic.Addresses[1], Topology: "db", Namespace: "db", Pod: "db-0"}
		op.status(func(s *order.Status) {
			*s = op.term.Made(order.View{Spec: op.object().Spec, Status: *s}, op.moment(), is.UID, made)
			s.Reserved, s.Revision = []order.Reserved{kept}, s.Revision+1
		})
		sleep(time.Minute)
		n.is(t, kept.Addr, "reserved db/db-0")
		n.addAndRetry(60) // more than the node has without it
		sleep(10 * time.Minute)
		n.retry()
		for _, line := range n.lines() {
			if slices.Contains(nic.Addresses, line.Addr) {
				t.Errorf("%s is a general pod's", line.Addr)
			}
		}
		n.del(n.claim(t, kept, "a"))
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(2 * time.Hour)
		n.is(t, kept.Addr, "reserved db/db-0")
		n.is(t, nic.Addresses[0], "-")
		op.reserve()
		sleep(time.Minute)
		n.is(t, kept.Addr, "-")
		n.must(t)
		n.noCalls(t)
	})
}

// On a node whose agent calls the cloud nobody says any more for whom what is kept: what no pod has goes back, and a general pod gets none of it.
func TestANodeThatLeavesItsOperatorGivesBackWhatIsReserved(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		db := op.keep(t, 2)
		k := n.claim(t, db[0], "a")
		n.stop()
		n.callsBy(agentconf.Sim)
		op.set(func(op *testOperator) { op.away = true })
		n.start(-1, false)
		sleep(time.Minute)
		n.is(t, db[1].Addr, "reserved db/db-1") // the operator has not let go of the node
		op.set(func(op *testOperator) { op.away = false })
		sleep(5 * time.Minute)
		n.is(t, db[0].Addr, "claimed db/db-0")
		n.is(t, db[1].Addr, "-")
		n.fillWith(t, 20)
		n.del(k)
		sleep(time.Second)
		n.is(t, db[0].Addr, "reserved db/db-0")
		sleep(5 * time.Minute)
		n.is(t, db[0].Addr, "-")
		n.must(t)
	})
}

// The agent is killed at each of its effects while what is reserved comes, changes and goes.
func TestAnAgentIsKilledAtEachEffectOfAReservation(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for at := 0; at < 24; at += step {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprint(at, before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { killAtReservation(t, at, before) })
			})
		}
	}
}

func killAtReservation(t *testing.T, at int, before bool) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.4.0/22"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 16}, Subnet: "subnet-a"})
	n.callsBy(agentconf.Operator)
	op := n.operate()
	defer op.end()
	n.start(-1, false)
	sleep(10 * time.Second)
	n.fillWith(t, 8)
	n.stop()
	n.start(at, before)
	defer func() { n.stop() }()
	settle := func() {
		for range 3 {
			sleep(40 * time.Second)
			n.must(t)
			if n.isDead() {
				n.stop()
				n.start(-1, false)
			}
			n.retry()
		}
	}
	db := op.keep(t, 3)
	settle()
	for _, r := range db {
		n.is(t, r.Addr, "reserved db/"+r.Pod)
	}
	first := n.claim(t, db[0], "a")
	other := db[1]
	other.Pod = "db-7"
	op.reserve(other)
	n.addAndRetry(6)
	settle()
	n.is(t, db[0].Addr, "claimed db/db-0")
	n.is(t, db[1].Addr, "reserved db/db-7")
	n.is(t, db[2].Addr, "-")
	n.del(first)
	n.addAndRetry(6)
	settle()
	n.is(t, db[0].Addr, "-")
	for _, line := range n.lines() {
		if slices.ContainsFunc(db, func(r order.Reserved) bool { return r.Addr == line.Addr }) {
			t.Errorf("%s is a general pod's", line.Addr)
		}
	}
	if left := n.retry(); left > 0 {
		t.Errorf("%d pods wait", left)
	}
	n.noCalls(t)
}
