package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// fullNode is a node that runs as many pods as it may, with room for 202 more addresses.
func fullNode(t *testing.T) (*world, *testNode) {
	w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}, sim.ActAttach: {Base: 5 * time.Second}}},
		subnet("subnet-a", "10.0.0.0/22"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 8, V4: 40}, Subnet: "subnet-a"})
	inCluster(n)
	n.start(-1, false)
	sleep(30 * time.Second)
	n.crowd(110)
	for left := 1; left > 0; left = n.retry() {
		sleep(time.Second)
	}
	sleep(10 * time.Minute)
	if got := n.total(); got != 110 {
		t.Fatalf("%d addresses for the 110 pods that there may be", got)
	}
	return w, n
}

// replace lets pods go, and others come in their place at once. It returns how long those waited.
func (n *testNode) replace(count int) (waited time.Duration) {
	for _, k := range n.keys()[:count] {
		n.unbind(eni.Pod{UID: n.pods[k].owner.UID, Namespace: "default", Name: n.pods[k].owner.Pod})
		n.del(k)
	}
	n.crowd(count)
	for ; n.retry() > 0 && waited < time.Hour; waited += 100 * time.Millisecond {
		sleep(100 * time.Millisecond)
	}
	return waited
}

// moves is how many calls moved addresses.
func (w *world) moves() int {
	c := w.calls()
	return c["AssignAddresses"] + c["UnassignAddresses"] + c["CreateInterface"] + c["DeleteInterface"]
}

// What cools down serves no pod, so it takes no room of the pods that the node may run.
func TestAReplacedPodOfAFullNodeWaitsForNoCoolDown(t *testing.T) {
	for _, every := range []time.Duration{2 * time.Second, 5 * time.Second, 20 * time.Second, 60 * time.Second, 110 * time.Second} {
		t.Run(fmt.Sprint("one every ", every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := fullNode(t)
				defer n.stop()
				before, start := 0, w.now()
				for w.now()-start < max(3*time.Minute, 10*every) {
					// Within a minute as many cool down as ever do, for which an ENI is made.
					began, most := w.now()-start, time.Second
					if began < time.Minute {
						most = 8 * time.Second
					}
					if waited := n.replace(1); waited > most {
						t.Errorf("a pod waited %s, %s after the first was replaced", waited, began)
					}
					if sleep(every); began < time.Minute {
						before = w.moves()
					}
				}
				if moved := w.moves() - before; moved > 1 {
					t.Errorf("%d calls moved addresses while pods were replaced one by one", moved)
				}
				sleep(10 * time.Minute)
				if got, moved := n.total(), w.moves()-before; got != 110 || moved > 4 {
					t.Errorf("%d addresses after %d calls once no pod is replaced any more", got, moved)
				}
				if st := n.status(); st.Most != 110 {
					t.Errorf("the node can have %d pods, want 110", st.Most)
				}
			})
		})
	}
}

func TestAllPodsOfAFullNodeAreReplacedWithoutACoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := fullNode(t)
		defer n.stop()
		if waited := n.replace(110); waited > 20*time.Second {
			t.Errorf("they waited %s", waited)
		}
		full := n.total()
		sleep(n.conf.Pool.Scale.Delay - 15*time.Second)
		if got := n.total(); got < full {
			t.Errorf("%d of %d addresses are left before the delay is over", got, full)
		}
		sleep(10 * time.Minute)
		if got := n.total(); got != 110 {
			t.Errorf("%d addresses in the end", got)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}
