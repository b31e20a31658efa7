package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// hasAll fails the test if an ENI of the node is not in its book.
func (n *testNode) hasAll(t *testing.T) {
	t.Helper()
	for _, nic := range n.attached() {
		if !hasENI(n.book, nic.ID) {
			t.Errorf("ENI %s at index %d is not in the book: %+v", nic.ID, nic.Index, n.book.ENIs)
		}
	}
}

// A person detaches an ENI with pods and attaches it again at another index: the next one of
// ours gets the index that is free, under which the book has the first.
func TestAnENIThatCameBackAtAnotherIndexHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, _, first := withOneENI(t, sim.Machine{Limits: smallENIs})
		defer n.stop()
		if err := w.account.Detach(first); err != nil {
			t.Fatal(err)
		}
		if err := w.account.Update(func(tx *sim.Tx) error {
			_, err := tx.Attach(sim.Attach{Interface: first, Instance: "n1", Index: 5})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		sleep(2 * time.Minute)
		for range 8 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
		n.hasAll(t)
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// A person edits the description of an ENI that pods use, where that is what keeps its index,
// and the agent that made it is no more.
func TestAnENIThatLostItsIndexHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, _, first := withOneENI(t, sim.Machine{Limits: smallENIs, LikeBCE: true})
		n.stop()
		n.start(-1, false)
		defer n.stop()
		sleep(time.Minute)
		if err := w.account.Update(func(tx *sim.Tx) error { return tx.Untag([]string{first}, nil) }); err != nil {
			t.Fatal(err)
		}
		sleep(2 * time.Minute)
		for range 8 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
	})
}

// An ENI that the book can't take is told, and holds up no other.
func TestAnENIThatTheBookRefusesHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
		n := w.addNode(testConfig("n1"), sim.Machine{Limits: large, Subnet: "subnet-a"})
		n.start(-1, false)
		sleep(time.Minute)
		n.stop()
		a, own := n.life.agent, n.book.ENIs[0]
		bad := eni.Interface{ID: "eni-bad", Index: 2, Device: own.Device, MTU: own.MTU, V4: own.V4}
		good := eni.Interface{ID: "eni-good", Index: 3, Device: "eth3", MTU: own.MTU, V4: own.V4}
		grown, err := a.grow(t.Context(), n.book.Clone(), facts{enis: []eni.Interface{bad, good}}, w.now())
		if !grown || err == nil || hasENI(n.book, bad.ID) || !hasENI(n.book, good.ID) || !a.backoffs.active(adoptionOf(bad.ID), w.now()) {
			t.Errorf("grown %t, %v: the book has %+v, held are %v", grown, err, n.book.ENIs, a.backoffs.lines(w.now()))
		}
	})
}
