package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// inCluster is one with a cluster whose API server has answered.
func inCluster(n *testNode) { n.api = &testAPI{synced: true} }

// sleep lets that much time pass and everything come to rest.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// The timeline of sources/cns-watch-pods.md: 35 pods are bound to a node with one,
// and their sandboxes come one after the other.
func TestThirtyFivePodsThatAreBoundHaveTheirAddressesBeforeTheyAskForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, inCluster)
		defer n.stop()
		if err := n.sandbox(n.bind("pod-0")); err != nil {
			t.Fatal(err)
		}
		sleep(10 * time.Second)
		before := w.calls()["AssignAddresses"]
		var pods []eni.Pod
		for i := range 35 {
			pods = append(pods, n.bind(fmt.Sprintf("pod-%d", i+1)))
		}
		sleep(500 * time.Millisecond) // the first sandbox takes the kubelet longer
		for _, p := range pods {
			if err := n.sandbox(p); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		sleep(time.Minute)
		if calls := w.calls()["AssignAddresses"] - before; calls != 1 || n.total() != 48 {
			t.Errorf("%d calls and %d addresses, want 1 and 48", calls, n.total())
		}
		if st := n.status(); st.Demand != 36 || st.Pods != 36 || !st.Watched || !st.Synced {
			t.Errorf("status %+v", st)
		}
	})
}

func TestUntilTheClusterHasAnsweredNothingGoesBackAndADDsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) { n.api = &testAPI{away: true} })
		defer n.stop()
		for range 40 {
			_ = n.add()
		}
		for left := 1; left > 0; left = n.retry() {
			if sleep(time.Second); w.now() > 2*time.Hour {
				t.Fatalf("%d ADDs wait", left)
			}
		}
		sleep(time.Minute)
		full := n.total()
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(time.Hour)
		if st := n.status(); n.total() != full || full < 48 || st.Synced || !st.Watched {
			t.Errorf("%d addresses of %d, status %+v: want all of them held", n.total(), full, st)
		}
		n.mu.Lock()
		n.api.away = false
		n.mu.Unlock()
		n.hear()
		sleep(15 * time.Minute)
		if got := n.total(); got != 16 {
			t.Errorf("%d addresses a quarter of an hour after the cluster answered, want 16", got)
		}
	})
}

// An agent that starts anew knows the pods' records before it knows the pods.
func TestARestartWithoutTheAPIServerTearsNothingDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, inCluster)
		for i := range 30 {
			n.bind(fmt.Sprintf("pod-%d", i))
		}
		sleep(time.Minute)
		if got := n.total(); got != 48 {
			t.Fatalf("%d addresses for 30 pods, want 48", got)
		}
		n.kill()
		n.api.away, n.api.synced, n.api.seen = true, false, nil
		n.start(-1, false)
		sleep(time.Hour)
		if got := n.total(); got != 48 {
			t.Errorf("%d addresses after an hour without the API server, want 48", got)
		}
		n.stop()
	})
}

func TestAPodCountsUntilItsAddressIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, inCluster)
		defer n.stop()
		demand := func(want int, when string) {
			t.Helper()
			if sleep(time.Second); n.status().Demand != want {
				t.Errorf("demand %d %s, want %d", n.status().Demand, when, want)
			}
		}
		p := n.bind("web-0")
		demand(1, "when it is bound")
		if err := n.sandbox(p); err != nil {
			t.Fatal(err)
		}
		demand(1, "with its address")
		n.unbind(p)
		demand(1, "when its pod is gone and its sandbox is not")
		again := n.bind("web-0")
		demand(2, "when it was made anew under its name")
		n.del(n.keys()[0])
		demand(2, "while the old address rests")
		if err := n.sandbox(again); err != nil {
			t.Fatal(err)
		}
		demand(2, "when the new one has its address")
		sleep(30 * time.Second)
		demand(1, "when the old address has rested")
		if err := n.sandbox(again); err != nil {
			t.Fatal(err)
		}
		demand(2, "with two sandboxes")
	})
}
