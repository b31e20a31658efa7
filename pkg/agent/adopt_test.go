package agent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// hasAll fails the test if an ENI of the node is not in its cache.
func (n *testNode) hasAll(t *testing.T) {
	t.Helper()
	for _, nic := range n.attached() {
		if !hasENI(n.cached, nic.ID) {
			t.Errorf("ENI %s at index %d is not in the cache: %+v", nic.ID, nic.Index, n.cached.ENIs)
		}
	}
}

// A person detaches an ENI with pods and attaches it again at another index: the next one of
// ours gets the index that is free, under which the cache has the first.
func TestAnENIThatCameBackAtAnotherIndexHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, _, first := withOneENI(t, sim.NodeSpec{Limits: smallENIs})
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
		w, n, _, first := withOneENI(t, sim.NodeSpec{Limits: smallENIs, LikeBCE: true})
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

// An ENI that the cache can't take is told, and holds up no other.
func TestAnENIThatTheCacheRefusesHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
		n.start(-1, false)
		sleep(time.Minute)
		n.stop()
		a, own := n.life.agent, n.cached.ENIs[0]
		bad := eni.Interface{ID: "eni-bad", Index: 2, Device: own.Device, MTU: own.MTU, V4: own.V4}
		good := eni.Interface{ID: "eni-good", Index: 3, Device: "eth3", MTU: own.MTU, V4: own.V4}
		grown, err := a.growCache(t.Context(), n.cached.Clone(), facts{enis: []eni.Interface{bad, good}}, w.now())
		if !grown || err == nil || hasENI(n.cached, bad.ID) || !hasENI(n.cached, good.ID) || !a.backoffs.active(adoptionOf(bad.ID), w.now()) {
			t.Errorf("grown %t, %v: the cache has %+v, held are %v", grown, err, n.cached.ENIs, a.backoffs.lines(w.now()))
		}
	})
}

// An ENI that the node could not take in is gone: that it could not is no reason any more why the node
// can't have more addresses.
func TestAnENIThatIsGoneIsNoCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		n.stop()
		a, shown := n.life.agent, n.attached()[0].ID
		for _, id := range []string{"eni-gone", shown} {
			a.backOff(adoptionOf(id), errors.New("its index is taken"), w.now())
		}
		a.applyDescribe(described{start: w.now(), limits: a.view.limits, subnets: a.view.subnets})
		if list := a.reasons(w.now()).failureCauses(); len(list) != 1 || list[0].Object != shown {
			t.Errorf("in the way are %+v, want what is the matter with %s alone", list, shown)
		}
		a.backoffs.clear(adoptionOf(shown))
		a.backOff(of(adopts), errors.New("its link is gone"), w.now())
		if _, err := a.learn(t.Context(), n.cached, w.now()); err != nil || len(a.reasons(w.now()).failureCauses()) > 0 {
			t.Errorf("with nothing to take in: %v, in the way are %+v", err, a.reasons(w.now()).failureCauses())
		}
	})
}
