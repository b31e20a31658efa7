package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// The cloud refuses to delete an ENI while pods come that need its addresses. Wherever
// the agent is killed from then on, the next one leaves the kernel alone under pods that
// took addresses of the ENI meanwhile: the agent's memory must not say any more that the
// ENI is being deleted when the node cache hands its addresses out again.
func TestAKillAfterARefusedDeletionTakesNoENIFromUnderPods(t *testing.T) {
	taken, killed := 0, true
	for at := 1; killed; at++ {
		synctest.Test(t, func(t *testing.T) {
			var n int
			n, killed = killAfterRefusedDeletion(t, at)
			taken += n
		})
		if t.Failed() {
			t.Fatalf("the agent was killed after effect %d", at)
		}
	}
	if taken == 0 {
		t.Error("no pod took an address of the ENI while no agent ran: the test shows nothing")
	}
}

// killAfterRefusedDeletion kills the agent right after its effect number at, counted from
// a deletion under way that is going to be refused, and starts another one. It returns how
// many pods took an address of that ENI between the two, and false if the agent did not
// get so far.
func killAfterRefusedDeletion(t *testing.T, at int) (taken int, killed bool) {
	w, n := one(t, eni.Limits{ENIs: 4, V4: 17, V6: 17}, nil)
	for range 60 {
		_ = n.add()
	}
	for left := 1; left > 0; left = n.retry() {
		sleep(time.Second)
	}
	w.account.FailNext(sim.ActDetach, sim.Fault{Err: cloud.ErrForbidden, Delay: 10 * time.Second})
	for _, key := range n.keys() {
		n.del(key)
	}
	for len(n.savedLeaving(t)) == 0 {
		sleep(100 * time.Millisecond)
	}
	leaving := n.savedLeaving(t)
	for range 60 {
		_ = n.add()
	}
	n.mu.Lock()
	n.life.killAt = at
	n.mu.Unlock()
	sleep(20 * time.Second)
	n.mu.Lock()
	killed = n.life.dead
	n.mu.Unlock()
	if !killed {
		n.stop()
		return 0, false
	}
	n.kill()
	before := n.usedOn(leaving)
	n.retry()
	taken = n.usedOn(leaving) - before
	n.serial++
	n.start(-1, false)
	sleep(time.Minute)
	if err := w.check(); err != nil {
		t.Error(err)
	}
	n.stop()
	return taken, true
}

// An agent is killed while the cloud carries out its deletion of an ENI. The next one's is
// refused, which proves nothing of the first: the ENI's addresses are nobody's until looks
// show that it stays.
func TestARefusalAfterARestartDoesNotUndoAnEarlierDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 2, V4: 33, V6: 33}, nil)
		for range 40 {
			_ = n.add()
		}
		for left := 1; left > 0; left = n.retry() {
			sleep(time.Second)
		}
		w.account.FailNext(sim.ActDetach, sim.Fault{Delay: 20 * time.Second}, sim.Fault{Err: cloud.ErrThrottled})
		for _, key := range n.keys() {
			n.del(key)
		}
		for w.account.Calls()[sim.ActDetach] == 0 {
			sleep(100 * time.Millisecond)
		}
		n.mu.Lock()
		killed := n.life
		killed.dead = true
		n.mu.Unlock()
		defer func() { killed.cancel(); <-killed.ended }()
		n.serial++
		for range 44 {
			_ = n.add()
		}
		n.start(-1, false)
		defer n.stop()
		for range 10 {
			sleep(time.Second)
			n.retry()
		}
		sleep(time.Minute)
		n.retry()
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// What an earlier agent began may have been refused before it ended, and its answer be lost.
func TestAnENIThatStaysAfterARestartIsUsedAgain(t *testing.T) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
	n.memory = []byte(`{"leaving":{"eni-1":false}}`)
	a := n.agent(&life{killAt: -1}, w.log)
	refused := result{call: &call{key: eniKey("eni-1"), op: "DeleteInterface", id: "eni-1"}, err: cloud.ErrForbidden}
	began := a.Now()
	for after, leaves := range map[time.Duration]bool{a.conf.Settle: true, a.conf.Settle + a.conf.Cloud.Timeout + time.Second: false} {
		a.mem.Leaving["eni-1"], a.doubts.unheard["eni-1"] = true, began
		a.applyDescribe(described{start: began + after, enis: []cloud.Interface{{ID: "eni-1", Index: 1, Ours: true}}})
		if a.applyResult(refused, a.Now()); a.mem.isLeaving("eni-1") != leaves {
			t.Errorf("it was shown %s after the start, and after a refusal it is leaving: %v", after, !leaves)
		}
	}
}

// savedLeaving returns the ENIs that are being deleted as the saved memory has it.
func (n *testNode) savedLeaving(t *testing.T) (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var m memory
	if err := json.Unmarshal(n.memory, &m); err != nil {
		t.Fatal(err)
	}
	for id := range m.Leaving {
		list = append(list, id)
	}
	return list
}

// usedOn counts the addresses of the ENIs that pods have.
func (n *testNode) usedOn(enis []string) (used int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := ids(n.cached)
	for _, line := range n.cached.Used() {
		if slices.Contains(enis, id[line.ENI]) {
			used++
		}
	}
	return used
}

// brokenStore is a memory that can't be written while it has an error.
type brokenStore struct {
	err  error
	text []byte
}

func (s *brokenStore) Load() ([]byte, error) { return s.text, nil }

func (s *brokenStore) Save(text []byte) error {
	if s.err == nil {
		s.text = text
	}
	return s.err
}

// While the memory can't be written it says that the ENI is being deleted, and so must
// the agent: what it planned with else would not outlive it.
func TestARefusedDeletionGoesOnWhileTheMemoryCannotBeWritten(t *testing.T) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
	n.memory = []byte(`{"leaving":{"eni-1":false}}`)
	a := n.agent(&life{killAt: -1}, w.log)
	a.mem.Leaving["eni-1"] = false // looks have shown it since
	store := &brokenStore{err: errors.New("no space left on device"), text: n.memory}
	a.Memory = store
	refused := result{call: &call{key: eniKey("eni-1"), op: "DeleteInterface", id: "eni-1"}, err: cloud.ErrForbidden}
	a.applyResult(refused, w.now())
	if !a.mem.isLeaving("eni-1") {
		t.Error("the agent uses an ENI again that the next agent will delete")
	}
	store.err = nil
	a.applyResult(refused, w.now())
	var saved memory
	if err := json.Unmarshal(store.text, &saved); err != nil {
		t.Fatal(err)
	}
	if len(saved.Leaving) != 0 || a.mem.isLeaving("eni-1") {
		t.Errorf("saved as being deleted: %v, the agent deletes it: %v; the cloud refused to", saved.Leaving, a.mem.isLeaving("eni-1"))
	}
}
