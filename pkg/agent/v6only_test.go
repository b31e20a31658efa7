package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// withoutIPv4 is a node whose pods have IPv6 alone, in a subnet of both families that has no IPv4 address
// left: that is why its people chose IPv6.
func withoutIPv4(t *testing.T, limits eni.Limits) (*world, *testNode) {
	w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.1.0/27"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: limits, Subnet: "subnet-a"})
	n.conf.Settings.Families = []eni.Family{eni.IPv6}
	n.options = func(o engine.Options) engine.Options {
		o.NoIPv4 = true
		return o
	}
	other := w.addNode(testConfig("n2"), sim.NodeSpec{Limits: eni.Limits{ENIs: 1, V4: 50}, Subnet: "subnet-a"})
	other.conf.Pool.PreAllocate, other.conf.Pool.MinAllocate = 50, 50
	other.start(-1, false)
	other.addMany(40)
	sleep(time.Minute)
	return w, n
}

// Where pods have IPv6 alone the subnet's IPv4 addresses say nothing of theirs.
func TestPodsWithIPv6AloneNeedNoIPv4AddressOfTheSubnet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := withoutIPv4(t, eni.Limits{ENIs: 1, V4: 50, V6: 50})
		defer w.nodes[1].stop()
		n.start(-1, false)
		defer n.stop()
		n.addMany(30)
		n.all(t, time.Minute)
		sleep(time.Hour)
		if st := n.status(); st.Exhausted != "" || st.Problem != "" || n.total() < 32 {
			t.Errorf("%d addresses for 30 pods, full %q, problem %q", n.total(), st.Exhausted, st.Problem)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// A new ENI needs an IPv4 address for itself. That the subnet has none is no reason to do without
// addresses of the ENIs that are there, or to give any back.
func TestAnENIThatGetsNoIPv4AddressHoldsUpNoIPv6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := withoutIPv4(t, eni.Limits{ENIs: 2, V4: 20, V6: 20})
		defer w.nodes[1].stop()
		n.start(-1, false)
		defer n.stop()
		n.addMany(30)
		for range 3600 {
			sleep(time.Second)
			n.retry()
		}
		if has := n.total(); has < 19 || len(n.keys()) != has {
			t.Errorf("%d addresses and %d pods that have one, want all that the ENI can have", has, len(n.keys()))
		}
		if made := w.calls()["CreateInterface"]; made == 0 || made > 60 {
			t.Errorf("it has asked %d times for an ENI in an hour", made)
		}
		if p := n.status().Problem; !strings.Contains(p, "subnet-a") {
			t.Errorf("people are told %q", p)
		}
		for _, k := range n.keys()[:min(15, n.total())] {
			n.del(k)
		}
		n.mu.Lock()
		clear(n.waiting)
		n.mu.Unlock()
		sleep(time.Minute)
		if st := n.status(); st.Exhausted != "" {
			t.Errorf("it spares addresses of %q, of which there are plenty", st.Exhausted)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}
