package agent

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// show lets the kubelet show an address of the pod.
func (n *testNode) show(p eni.Pod, addr string) {
	n.mu.Lock()
	if n.api.ips == nil {
		n.api.ips = map[eni.Pod]netip.Addr{}
	}
	n.api.ips[p] = netip.MustParseAddr(addr)
	n.mu.Unlock()
	n.hear()
}

// Forty pods run on the node when enipool comes, with an overlay's addresses. After a while none is kept for
// them, however long they last; a pod that is bound then has its own.
func TestPodsThatAnotherPluginServesFromOutsideTheVPCNeedNoAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, inCluster)
		defer n.stop()
		for k := range 40 {
			n.show(n.bind(fmt.Sprint("old-", k)), fmt.Sprint("10.244.0.", k+2))
		}
		sleep(5 * time.Minute)
		if d := n.status().Demand; d != 40 {
			t.Errorf("demand %d: after a reboot they would need the addresses of new sandboxes", d)
		}
		sleep(time.Hour)
		if st := n.status(); st.Demand != 0 || n.total() != 16 {
			t.Errorf("demand %d and %d addresses for pods that another plugin serves", st.Demand, n.total())
		}
		fresh := n.bind("new")
		sleep(time.Second)
		if d := n.status().Demand; d != 1 {
			t.Errorf("demand %d, want that of the new pod", d)
		}
		must(t, n.sandbox(fresh))
	})
}

// A pod in a second network of ours has a record; one whose ADD is pending counts as soon as that is.
func TestAPodOfAnotherPluginCountsForWhatItHasOrAsksOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, inCluster)
		defer n.stop()
		var pods []eni.Pod
		for k := range 30 {
			p := n.bind(fmt.Sprint("pod-", k))
			n.show(p, fmt.Sprint("10.244.0.", k+2))
			pods = append(pods, p)
		}
		sleep(time.Hour)
		for _, p := range pods {
			_ = n.sandbox(p)
		}
		sleep(time.Second)
		if d := n.status().Demand; d != 30 {
			t.Errorf("demand %d for 30 sandboxes", d)
		}
		n.all(t, time.Minute)
	})
}

// The runtime is away for an hour after it has ended all sandboxes. What a kubelet still shows of its pods was
// ours: they get the same number again.
func TestPodsThatShowAnAddressOfTheVPCGoOnCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, inCluster)
		defer n.stop()
		for k := range 40 {
			n.show(n.bind(fmt.Sprint("pod-", k)), fmt.Sprint("10.0.3.", k+2))
		}
		none := n.bind("without")
		v6 := n.bind("v6")
		n.show(v6, "fd00::7") // which ranges of IPv6 the VPC has nobody has told
		sleep(time.Hour)
		if d := n.status().Demand; d != 42 {
			t.Errorf("demand %d for 42 pods, %v among them", d, none)
		}
	})
}

// Another plugin has an ENI at the node, in the same VPC: its pods need no addresses of ours either.
func TestPodsOnAnENIOfOthersNeedNoAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
		inCluster(n)
		must(t, w.account.Update(func(tx *sim.Tx) error {
			theirs, err := tx.Create(sim.Create{Subnet: "subnet-a", AddressRequest: sim.AddressRequest{CountV4: 3}})
			if err == nil {
				_, err = tx.Attach(sim.Attach{Interface: theirs.ID, Instance: "n1", Index: 1})
			}
			return err
		}))
		n.start(-1, false)
		defer n.stop()
		sleep(time.Minute)
		for _, nic := range n.attached() {
			if nic.Index == 1 {
				for k, addr := range nic.Addresses {
					n.show(n.bind(fmt.Sprint("theirs-", k)), addr.String())
				}
			}
		}
		n.bind("ours")
		sleep(time.Hour)
		if st := n.status(); st.Demand != 1 || st.Pods != 1 {
			t.Errorf("demand %d of %d pods, want that of ours", st.Demand, st.Pods)
		}
	})
}
