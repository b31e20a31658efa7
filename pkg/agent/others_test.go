package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// inCloud returns the addresses that the node has by what the cloud says.
func (n *testNode) inCloud() (addrs []netip.Addr) {
	for _, nic := range n.attached() {
		addrs = append(addrs, nic.Addresses...)
	}
	return addrs
}

func (n *testNode) mustStillHave(t *testing.T, addrs []netip.Addr) {
	t.Helper()
	left := n.inCloud()
	for _, a := range addrs {
		if !slices.Contains(left, a) {
			t.Errorf("%s went back to the cloud", a)
		}
	}
}

// foreignPods lets another plugin have pods with the first k addresses of the node.
func (n *testNode) foreignPods(k int) []netip.Addr {
	addrs := n.inCloud()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.foreign = map[netip.Addr]string{}
	for _, a := range addrs[:k] {
		n.foreign[a] = "eni5f8c1a2b3c4"
	}
	return addrs[:k]
}

// countStates counts the node's addresses.
func (n *testNode) countStates() ipam.Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cached.Count(n.w.now(), nil)
}

func (n *testNode) heldAddrs() []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	var addrs []netip.Addr
	for _, line := range n.cached.HeldAddresses() {
		addrs = append(addrs, line.Addr)
	}
	return addrs
}

// A node on which another plugin's pods live when the agent first comes: it serves the
// rest, asks the cloud for as many more, and gives none of theirs back.
func TestAddressesOfAnotherPluginsPodsAreNeitherServedNorGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		n.stop()
		theirs := n.foreignPods(6)
		n.mu.Lock()
		n.cached, n.cacheErr, n.memory, n.routed = nil, nodecache.ErrMissing, nil, map[netip.Addr]bool{}
		n.mu.Unlock()
		n.start(-1, false)
		defer n.stop()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if held := n.heldAddrs(); !slices.Equal(held, theirs) {
			t.Errorf("held %v, want %v", held, theirs)
		}
		if c := n.countStates(); c.Free != 16 || c.Held != 6 {
			t.Errorf("%+v, want a whole batch beside the 6 that others hold", c)
		}
		for range 16 {
			if err := n.add(); err != nil {
				t.Fatal(err)
			}
		}
		n.mu.Lock()
		for _, pod := range n.pods {
			if slices.Contains(theirs, pod.addrs[0]) {
				t.Errorf("%s went to a pod", pod.addrs[0])
			}
		}
		s := n.told
		n.mu.Unlock()
		if s.Addresses.Held != 6 || len(s.Held) != 6 || !strings.Contains(s.Held[0], "is held by others: route "+theirs[0].String()+" dev eni5f8c1a2b3c4") {
			t.Errorf("status: %+v, %q", s.Addresses, s.Held)
		}
		for _, k := range n.keys() {
			n.del(k)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		n.mustStillHave(t, theirs)
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// The kernel announces what others change; without that the agent sees it with the next
// resync.
func TestAnAddressIsThePoolsAgainWhenOthersLetItGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		defer n.stop()
		theirs := n.foreignPods(2)
		n.occupied <- struct{}{}
		sleep(SettleWakes)
		if held := n.heldAddrs(); !slices.Equal(held, theirs) {
			t.Fatalf("held %v, want %v", held, theirs)
		}
		n.mu.Lock()
		delete(n.foreign, theirs[0])
		n.mu.Unlock()
		n.occupied <- struct{}{}
		sleep(SettleWakes)
		if held := n.heldAddrs(); !slices.Equal(held, theirs[1:]) {
			t.Errorf("held %v, want %v", held, theirs[1:])
		}
		if c := n.countStates(); c.Cooling != 1 {
			t.Errorf("%+v: it was a pod's until now and must cool", c)
		}
		time.Sleep(time.Minute)
		n.mu.Lock()
		clear(n.foreign)
		n.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if c := n.countStates(); c.Held != 0 || c.Free != c.Total || c.Total < 16 {
			t.Errorf("%+v, want all free", c)
		}
		for range 16 { // all of them routed, or the test fails
			if err := n.add(); err != nil {
				t.Error(err)
			}
		}
	})
}

// What was free when the plan was made may be another's when it is carried out.
func TestAReleaseLooksAgainForWhatOthersHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		defer n.stop()
		for range 30 {
			_ = n.add()
		}
		for range 10 {
			time.Sleep(time.Second)
			n.retry()
		}
		for _, k := range n.keys() {
			n.del(k)
		}
		time.Sleep(31 * time.Second) // all have cooled down, and none goes back yet
		synctest.Wait()
		before := n.total()
		theirs := n.foreignPods(before)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		n.mustStillHave(t, theirs)
	})
}

func TestAPodThatOthersServeNeedsNoAddressOfOurs(t *testing.T) {
	cached := &ipam.State{Settings: ipam.Settings{Families: []eni.Family{eni.IPv4}}}
	for i, cause := range []string{"route 10.0.0.1 dev eni5f", "rule 1536: from 10.0.0.2", "address 10.0.0.3/24 dev eth1"} {
		cached.Addresses = append(cached.Addresses, eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), State: eni.Held, HeldBy: cause})
	}
	if got := servedByOthers(cached); got != 2 {
		t.Errorf("%d pods served by others, want 2: the node's own address is no pod's", got)
	}
}

// Three pods of another plugin end, and hold their addresses until they are gone; three new pods
// come in their place, and each of them needs an address. One of ours that ends serves nobody else.
func TestAddressesOfOthersPodsThatEndServeNoNewOnes(t *testing.T) {
	pods := func(name string) (list []eni.Pod) {
		for k := range 3 {
			list = append(list, eni.Pod{UID: fmt.Sprint(name, k), Namespace: "default", Name: fmt.Sprint(name, k)})
		}
		return list
	}
	cached := &ipam.State{Settings: testConfig("n1").Settings, ENIs: []eni.Interface{carryENI("eni-own", 0, "eth0", "10.0.1.2")}}
	for k := range 3 {
		cached.Addresses = append(cached.Addresses, eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, 1, byte(10 + k)}), State: eni.Held, HeldBy: "10.0.1.10 dev veth1 in table main"})
	}
	ours := carryLine("10.0.1.20", 0, "ours")
	ours.Owner.UID = "ours"
	cached.Addresses = append(cached.Addresses, ours)
	for _, tt := range []struct {
		ending []eni.Pod
		bound  int
	}{
		{nil, 0}, // the pods are those that others serve
		{pods("old-")[:2], 2},
		{append(pods("old-")[:2], eni.Pod{UID: "ours"}), 2},
		{pods("old-"), 3},
	} {
		h := heard{pods: pods("new-"), ending: tt.ending, watched: true, synced: true}
		if d, _ := demandOf(cached, h, 0, time.Hour, newPodSet()); d.bound != tt.bound {
			t.Errorf("while %d pods end, three that were bound to the node order %d addresses, want %d", len(tt.ending), d.bound, tt.bound)
		}
	}
}

// The cloud took a pod's address and gave it to an ENI of the node, on whose link it is now. The
// pod goes after the tick has learned what is lost: nothing of it is left to be held, or the cache
// has the address twice.
func TestWhatTheCloudTookIsNotHeldForOthersWhenItsPodGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		must(t, n.add())
		pod := n.keys()[0]
		lost := n.pods[pod].addrs[0]
		w.taken[lost] = true
		must(t, w.account.TakeAway(lost))
		sleep(20 * time.Minute)
		n.stop()
		if at := slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.Addr == lost }); at < 0 || !n.cached.Addresses[at].Lost {
			t.Fatalf("%s is not lost under its pod: the test shows nothing", lost)
		}
		n.foreign = map[netip.Addr]string{lost: "eth1"}
		a := n.agent(&life{killAt: -1}, n.w.log)
		a.view.known, a.view.enis = true, n.attached()
		n.del(pod)
		sleep(time.Millisecond)
		cached, err := a.read(t.Context())
		must(t, err)
		must(t, a.lookForOthers(t.Context(), cached, n.w.now()))
		if held := n.heldAddrs(); len(held) > 0 {
			t.Errorf("held %v, which the node does not have any more", held)
		}
	})
}

// Something of the account has an ENI at the node, with addresses of its own: they are no leftovers.
func TestPeopleAreNotToldToEmptyTheENIsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
		n.conf.Pool.FirstENI = 2
		if err := w.account.Update(func(tx *sim.Tx) error {
			theirs, err := tx.Create(sim.Create{Subnet: "subnet-a", AddressRequest: sim.AddressRequest{CountV4: 3}})
			if err == nil {
				_, err = tx.Attach(sim.Attach{Interface: theirs.ID, Instance: "n1", Index: 1})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		n.start(-1, false)
		defer n.stop()
		_ = n.add()
		n.all(t, 5*time.Minute)
		if lines := n.status().Unused; len(lines) > 0 {
			t.Errorf("the status says %q", lines)
		}
	})
}
