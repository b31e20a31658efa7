package agent

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// knowing is a Cloud that only knows.
type knowing struct {
	noting
	enis []cloud.Interface
}

func (k *knowing) Known() []cloud.Interface { return k.enis }

// An address that was given back comes again: its release has not begun any more, unless
// that is the release from another ENI whose answer is still to come.
func TestAnAddressThatComesAgainIsNotOnItsWayBack(t *testing.T) {
	addr := netip.MustParseAddr("10.0.1.20")
	here := []cloud.Interface{{ID: "eni-1", Index: 1}, {ID: "eni-2", Index: 2, Addresses: []netip.Addr{addr}}}
	for name, r := range map[string]result{
		"assigned": {call: &call{op: "AssignAddresses", id: "eni-2"}, addrs: []netip.Addr{addr}},
		"made":     {call: &call{op: "CreateInterface"}, nic: here[1]},
	} {
		for _, moves := range []bool{false, true} {
			w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
			a := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
			a.Cloud = &knowing{enis: here}
			a.view = view{known: true, enis: []cloud.Interface{{ID: "eni-1", Index: 1}, {ID: "eni-2", Index: 2}}}
			a.mem.Begun[addr] = true
			if moves {
				a.view.enis[0].Addresses = []netip.Addr{addr}
				a.calls[eniKey("eni-1")] = &call{op: "UnassignAddresses", id: "eni-1", addrs: []netip.Addr{addr}}
			}
			a.applyResult(r, 1)
			if a.mem.Begun[addr] != moves {
				t.Errorf("%s, from another ENI %v: its release has begun: %v", name, moves, a.mem.Begun[addr])
			}
			if nic, _ := a.view.eni("eni-2"); len(nic.Addresses) != 1 {
				t.Errorf("%s: the ENI is known with %v", name, nic.Addresses)
			}
		}
	}
}

// The cloud took the address from a pod's ENI, the pod ended, and another ENI has it by now: of that
// no agent has asked anything.
func TestAnAddressThatAnotherENIHasIsNotOnItsWayBackThere(t *testing.T) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	a := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
	moved, goes, gone := netip.MustParseAddr("10.0.1.20"), netip.MustParseAddr("10.0.1.21"), netip.MustParseAddr("10.0.1.22")
	cached := &ipam.State{ENIs: []eni.Interface{{ID: "eni-1", Index: 1}, {ID: "eni-2", Index: 2}}}
	for _, addr := range []netip.Addr{moved, goes, gone} {
		cached.Addresses = append(cached.Addresses, eni.Address{Addr: addr, ENI: 2, State: eni.Releasing})
	}
	a.view.enis = []cloud.Interface{{ID: "eni-1", Index: 1, Addresses: []netip.Addr{moved}}, {ID: "eni-2", Index: 2, Addresses: []netip.Addr{goes}}}
	a.assumeBegun(cached, 1)
	if a.mem.Begun[moved] || !a.mem.Begun[goes] || !a.mem.Begun[gone] {
		t.Errorf("begun are the releases %v, want those of %s and %s", a.mem.Begun, goes, gone)
	}
}

// The plan asks an ENI that can't grow for addresses again and again; what it has to give
// back must not wait for that.
func TestAnENIThatGetsNoAddressesMayGiveSomeBack(t *testing.T) {
	for _, kind := range []error{cloud.ErrForbidden, cloud.ErrUnavailable, cloud.ErrLimit, cloud.ErrNotFound} {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
		a := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
		a.Cloud = &knowing{}
		a.applyResult(result{call: &call{key: eniKey("eni-1"), op: "AssignAddresses", id: "eni-1"}, err: &cloud.Error{Kind: kind}}, 1)
		if a.backoffs.active(releasesOf("eni-1"), 2) || !a.backoffs.active(assignsTo("eni-1"), 2) {
			t.Errorf("after %v these are left alone: %v", kind, a.backoffs)
		}
		a.applyResult(result{call: &call{key: eniKey("eni-1"), op: "AssignAddresses", id: "eni-1"}}, 3)
		if a.backoffs.active(assignsTo("eni-1"), 4) {
			t.Errorf("after %v and a call that worked these are left alone: %v", kind, a.backoffs)
		}
	}
}

// A call still takes other addresses from an ENI, whose view is as before it, and another call
// has put on the next ENI what went first. It is there alone.
func TestAnAddressThatHasMovedIsTakenInOnce(t *testing.T) {
	addr := netip.MustParseAddr("10.0.1.20")
	on := func(id string, index int) cloud.Interface {
		return cloud.Interface{ID: id, Index: index, Ours: true, Addresses: []netip.Addr{addr}}
	}
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	a := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
	a.Cloud = &knowing{}
	a.view = view{known: true, enis: []cloud.Interface{on("eni-1", 1), on("eni-2", 2)}}
	cached := &ipam.State{ENIs: []eni.Interface{{ID: "eni-1", Index: 1}, {ID: "eni-2", Index: 2}}}
	if f := a.belief(1).compare(cached, nil, 1); len(f.addrs[1]) != 0 || len(f.addrs[2]) != 1 {
		t.Errorf("taken in are %v", f.addrs)
	}
}

// A release goes in parts, the first of which the cloud has answered. What it took leaves the
// node cache when it is written down that it went, although the call has not returned.
func TestWhatACallUnderWayHasTakenIsWrittenDownBeforeItLeavesTheCache(t *testing.T) {
	addr := netip.MustParseAddr("10.0.1.20")
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
	n.cached, n.cacheErr = &ipam.State{}, nil
	a := n.agent(&life{killAt: -1}, w.log)
	a.Cloud = &knowing{noting: noting{notes: cloud.Notes{Gone: map[string][]netip.Addr{"eni-1": {addr}}}}}
	a.unsaved = false
	_ = a.shrinkCache(t.Context(), facts{drop: []netip.Addr{addr}})
	if !strings.Contains(string(n.memory), addr.String()) {
		t.Errorf("it left the cache, and written down is %q", n.memory)
	}
}
