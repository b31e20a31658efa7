package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// gatedIn has the pods of the cluster be in a namespace in which they get only what is reserved.
func gatedIn(n *testNode) {
	inCluster(n)
	n.conf.Settings.Gated = []string{"default"}
}

// gatedADD is an ADD for a pod as the plugin does it, which waits for nothing. It returns the pod's address.
func (n *testNode) gatedADD(p eni.Pod, topology string) (k eni.Key, at netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serial++
	o := eni.Owner{Key: eni.Key{Network: "pods", Container: fmt.Sprintf("%s-%d", n.name, n.serial), IfName: "eth0"}, Namespace: p.Namespace, Pod: p.Name, UID: p.UID,
		Netns: fmt.Sprintf("/run/netns/%d", n.serial)}
	err = n.update(func(s *ipam.State) error {
		l, err := s.AssignReserved(o, topology, "", n.w.now())
		if err == nil && len(l.Addresses) != 1 {
			err = fmt.Errorf("%s got %v", p.Name, l.Addresses)
		}
		if err == nil {
			at = l.Addresses[0].Addr
		}
		return err
	})
	if err != nil {
		return k, at, err
	}
	if !n.routed[at] {
		n.w.t.Errorf("%s was handed out and the kernel does not route it", at)
	}
	n.pods[o.Key] = &testPod{owner: o, addrs: []netip.Addr{at}}
	n.wake()
	return o.Key, at, nil
}

// countSetAside returns for how many pods something is set aside that they have not taken yet.
func (n *testNode) countSetAside() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.cached.Addresses {
		if line.State == eni.Reserved && line.IsSetAside() {
			count++
		}
	}
	return count
}

// A runtime does not say which pods are of a topology. In the namespaces that people name each pod waits, and the agent reserves for those that are of none what
// any pod may have: a pod starts there as elsewhere, and the pool is as large as it would be.
func TestPodsWithoutATopologyStartInAGatedNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, gatedIn)
		defer func() { n.stop() }()
		var pods []eni.Pod
		for i := range 20 {
			pods = append(pods, n.bind(fmt.Sprint("pod-", i)))
		}
		sleep(30 * time.Second)
		if got := n.countSetAside(); got != 20 {
			t.Fatalf("set aside for %d pods", got)
		}
		if st := n.status(); st.Demand != 20 || n.total() != 32 {
			t.Errorf("demand %d, %d addresses, want 20 and 32", st.Demand, n.total())
		}
		if _, at, err := n.gatedADD(eni.Pod{UID: "uid-db", Namespace: "default", Name: "db-0"}, "db"); !isAwaited(err) {
			t.Errorf("a pod of a topology has %s, %v", at, err)
		}
		var keys []eni.Key
		for _, p := range pods[:10] {
			k, _, err := n.gatedADD(p, "")
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, k)
		}
		sleep(time.Minute)
		if st := n.status(); st.Demand != 20 || n.total() != 32 || n.countSetAside() != 10 {
			t.Errorf("with half of them: demand %d, %d addresses, %d set aside", st.Demand, n.total(), n.countSetAside())
		}
		for _, p := range pods[10:] { // they end before they have begun
			n.unbind(p)
		}
		n.del(keys[0]) // and a sandbox is made again
		sleep(5 * time.Second)
		if got := n.countSetAside(); got != 1 {
			t.Errorf("set aside for %d pods, want 1", got)
		}
		if _, _, err := n.gatedADD(pods[0], ""); err != nil {
			t.Errorf("in its second sandbox: %v", err)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

func isAwaited(err error) bool {
	_, is := errors.AsType[*ipam.Awaited](err)
	return is
}

// As long as nobody knows which pods there are nothing is set aside, and nothing freed.
func TestNothingIsSetAsideForPodsThatNobodyHasToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) {
			gatedIn(n)
			n.api.away, n.api.synced = true, false
		})
		defer func() { n.stop() }()
		p := n.bind("pod")
		sleep(time.Minute)
		if _, at, err := n.gatedADD(p, ""); !isAwaited(err) {
			t.Errorf("%s, %v", at, err)
		}
		n.mu.Lock()
		n.api.away = false
		n.mu.Unlock()
		n.hear()
		sleep(time.Second)
		if n.countSetAside() != 1 {
			t.Fatal("nothing is set aside")
		}
		n.mu.Lock()
		n.api.away, n.api.synced = true, false
		n.api.seen = nil
		n.mu.Unlock()
		n.kill()
		n.start(-1, false)
		sleep(10 * time.Minute)
		if _, _, err := n.gatedADD(p, ""); err != nil {
			t.Errorf("after the agent was started again, without the API server: %v", err)
		}
	})
}

// A namespace that is named no more has nothing set aside.
func TestANamespaceIsGatedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, gatedIn)
		defer func() { n.stop() }()
		p := n.bind("pod")
		sleep(5 * time.Second)
		if n.countSetAside() != 1 {
			t.Fatal("nothing is set aside")
		}
		next := n.conf
		next.Settings.Gated = nil
		n.life.reload <- next
		sleep(time.Minute)
		if n.countSetAside() != 0 {
			t.Error("it is set aside yet")
		}
		if err := n.sandbox(p); err != nil {
			t.Error(err)
		}
	})
}

// An operator reserves for topologies on the same node: what the agent sets aside is none of that, and goes neither back nor to another one's pod.
func TestWhatIsSetAsideStandsBesideWhatTheOperatorReserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.4.0/22"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 16}, Subnet: "subnet-a"})
		gatedIn(n)
		n.callsBy(agentconf.Operator)
		op := n.operate()
		defer op.end()
		n.start(-1, false)
		defer func() { n.stop() }()
		sleep(10 * time.Second)
		var pods []eni.Pod
		for i := range 5 {
			pods = append(pods, n.bind(fmt.Sprint("pod-", i)))
		}
		sleep(time.Minute)
		db := op.keep(t, 2)
		if got := n.countSetAside(); got != 5 {
			t.Fatalf("set aside for %d pods", got)
		}
		for _, p := range pods {
			if _, _, err := n.gatedADD(p, ""); err != nil {
				t.Fatal(err)
			}
		}
		n.claim(t, db[0], "a")
		op.reserve()
		sleep(5 * time.Minute)
		n.is(t, db[1].Addr, "-")
		if got := n.countSetAside(); got != 0 {
			t.Errorf("set aside for %d pods", got)
		}
		n.must(t)
	})
}

// The agent is killed at each of its effects while pods come, start and go.
func TestAnAgentIsKilledAtEachEffectOfSettingAside(t *testing.T) {
	for at := range 16 {
		for _, before := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, large, gatedIn)
				n.stop()
				n.start(at, before)
				defer func() { n.stop() }()
				settle := func() {
					for range 3 {
						sleep(20 * time.Second)
						if err := w.check(); err != nil {
							t.Fatalf("killed at %d: %v", at, err)
						}
						if n.isDead() {
							n.stop()
							n.start(-1, false)
						}
					}
				}
				var pods []eni.Pod
				for i := range 20 {
					pods = append(pods, n.bind(fmt.Sprint("pod-", i)))
				}
				settle()
				for _, p := range pods[:15] {
					if _, _, err := n.gatedADD(p, ""); err != nil {
						t.Fatalf("killed at %d: %v", at, err)
					}
				}
				for _, p := range pods[15:] {
					n.unbind(p)
				}
				settle()
				if got := n.countSetAside(); got != 0 {
					t.Errorf("killed at %d: set aside for %d pods", at, got)
				}
			})
		}
	}
}
