package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
)

// hideLink takes the link of the ENI with the index away, as a driver that resets its device
// does, and tells the agent as the kernel does.
func (n *testNode) hideLink(index int) {
	n.mu.Lock()
	for _, nic := range n.attached() {
		if nic.Index == index {
			n.hidden[nic.MAC] = true
		}
	}
	n.mu.Unlock()
	n.disturb <- struct{}{}
	synctest.Wait()
}

func (n *testNode) showLinks() {
	n.mu.Lock()
	clear(n.hidden)
	n.mu.Unlock()
}

// An ENI in use whose link goes: its free addresses are no pod's to have, so the agent orders
// others, and says why. When the link is back they are the pool's again, without a restart.
func TestAnENIThatLosesItsLinkIsToldAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 3, V4: 9, V6: 9}, nil)
		defer n.stop()
		if c := n.countStates(); c.Free != 16 {
			t.Fatalf("%+v, want two full ENIs", c)
		}
		n.hideLink(1)
		s := n.status()
		if len(s.Unlinked) != 1 || !strings.Contains(s.Problem, "link eth1 of the ENI ") || !strings.Contains(s.Problem, "is missing") {
			t.Errorf("problem %q, unlinked %q: want the missing link", s.Problem, s.Unlinked)
		}
		sleep(time.Minute)
		if c := n.countStates(); c.Held != 8 || c.Free != 16 {
			t.Errorf("%+v, want 16 free addresses beside the 8 that no pod can use", c)
		}
		if s := n.status(); s.Addresses.HeldByOthers() != 0 || s.Addresses.Unlinked != 8 || len(s.Held) > 0 {
			t.Errorf("%+v are told as held by others: %q", s.Addresses, s.Held)
		}
		for range 16 { // on other ENIs: what is not routed fails the test
			if err := n.add(); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.add(); err == nil || !strings.Contains(err.Error(), "8 on an ENI without a link (no link eth1 on this node: the link of the ENI ") || strings.Contains(err.Error(), "others") {
			t.Errorf("an ADD that gets no address says %v, want the missing link as the cause", err)
		}
		n.showLinks()
		sleep(time.Minute)
		if c := n.countStates(); c.Held != 0 || c.Free+c.Used != 24 {
			t.Errorf("%+v, want all 24 addresses in use again", c)
		}
		if left := n.retry(); left != 0 {
			t.Errorf("%d pods wait, want none: the link is back", left)
		}
		if s := n.status(); len(s.Unlinked) > 0 || s.Problem != "" {
			t.Errorf("problem %q, unlinked %q after the link came back", s.Problem, s.Unlinked)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// Where nothing else can serve the pods the missing link is the cause, and not the limit of
// ENIs that another one would exceed.
func TestAMissingLinkIsTheReasonOfTheFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, eni.Limits{ENIs: 2, V4: 9, V6: 9}, inCluster)
		defer n.stop()
		n.hideLink(1)
		n.crowd(12)
		sleep(45 * time.Second)
		if r := n.last(); r.Reason != health.LinkMissing || !strings.Contains(r.Message, "link eth1 of the ENI ") {
			t.Errorf("report %+v, want %s; status %+v", r, health.LinkMissing, n.status())
		}
		n.showLinks()
		for range 6 {
			sleep(30 * time.Second)
			n.retry()
		}
		if r := n.last(); r.Faulty {
			t.Errorf("report %+v after the link came back", r)
		}
	})
}

// The cloud drops what comes with another MAC than it gave to the ENI.
func TestALinkWithAnotherMACThanTheCloudKnowsIsToldUntilItIsRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Resync = time.Minute })
		defer n.stop()
		mac := n.attached()[0].MAC
		set := func(remade map[string]string) string {
			n.mu.Lock()
			n.remade = remade
			n.mu.Unlock()
			sleep(2 * time.Minute)
			return n.status().Problem
		}
		if p := set(map[string]string{mac: "02:00:00:00:00:99"}); !strings.Contains(p, "has the MAC 02:00:00:00:00:99, and the cloud knows "+mac) {
			t.Errorf("problem %q, want the MAC", p)
		}
		if p := set(nil); p != "" {
			t.Errorf("problem %q when the MAC is right again", p)
		}
	})
}

// A pod on an ENI without a link goes. Its address is no other pod's to have, however soon it has cooled down:
// nobody waits for the next look at what pods can't have.
func TestWhatAPodLeavesOnAnENIWithoutALinkIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 3, V4: 9, V6: 9}, nil)
		defer n.stop()
		for range 16 {
			must(t, n.add())
		}
		sleep(time.Minute)
		for _, addr := range n.attached()[1].Addresses {
			w.taken[addr] = true // nothing reaches its pod
		}
		n.hideLink(1)
		sleep(10 * time.Second)
		n.mu.Lock()
		var there []eni.Key
		for _, line := range n.cached.Used() {
			if line.ENI == 1 {
				there = append(there, line.Owner.Key)
			}
		}
		n.mu.Unlock()
		for _, key := range there {
			n.del(key)
		}
		sleep(time.Second)
		n.mu.Lock()
		for _, line := range n.cached.Addresses {
			if line.ENI == 1 && line.State != eni.Held {
				t.Errorf("%s is %s on an ENI without a link", line.Addr, line.State)
			}
		}
		n.mu.Unlock()
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}
