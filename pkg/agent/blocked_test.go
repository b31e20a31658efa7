package agent

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/status"
)

// A chain of others that drops what pods send is not the agent's to change: it is told,
// as long as it is there.
func TestAChainThatCutsPodsOffIsToldUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Resync = time.Minute })
		defer n.stop()
		set := func(lines ...string) {
			n.mu.Lock()
			n.blocked = lines
			n.mu.Unlock()
			sleep(2 * time.Minute)
		}
		const line = "pods are cut off: nftables table ip filter: chain FORWARD drops what pods send"
		set(line)
		if st := n.status(); !slices.Equal(st.Blocked, []string{line}) || st.Problem != line || !st.Ready {
			t.Errorf("status tells %q, problem %q, ready %v; want the chain, on a node that is ready", st.Blocked, st.Problem, st.Ready)
		}
		set()
		if st := n.status(); len(st.Blocked) > 0 || st.Problem != "" {
			t.Errorf("the chain lets pods pass, and status tells %q, problem %q", st.Blocked, st.Problem)
		}
	})
}

// So is a route of others that pods' packets take, and it is found whenever the kernel is
// compared.
func TestARouteOfOthersThatPodsTakeIsToldUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Resync = time.Minute })
		defer n.stop()
		set := func(lines ...string) {
			n.mu.Lock()
			n.misrouted = lines
			n.mu.Unlock()
			sleep(2 * time.Minute)
		}
		const line = "routing table 101 holds a route that is not enipool's, default dev eth0: what pods of the ENI eth1 send out of the node leaves by it"
		set(line)
		if st := n.status(); !slices.Equal(st.Misrouted, []string{line}) || st.Problem != line || !st.Ready {
			t.Errorf("status tells %q, problem %q, ready %v; want the route, on a node that is ready", st.Misrouted, st.Problem, st.Ready)
		}
		set()
		if st := n.status(); len(st.Misrouted) > 0 || st.Problem != "" {
			t.Errorf("the route is gone, and status tells %q, problem %q", st.Misrouted, st.Problem)
		}
	})
}

// A host port that a program of the node listens on as well keeps no pod from working: it is
// told, and is no problem of the pool.
func TestAHostPortThatOthersClaimIsToldUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Resync = time.Minute })
		defer n.stop()
		set := func(lines ...string) {
			n.mu.Lock()
			n.conflicts = lines
			n.mu.Unlock()
			sleep(2 * time.Minute)
		}
		const line = "host port of pod a: tcp port 22 leads to the pod: a program of the node listens there"
		set(line)
		if st := n.status(); !slices.Equal(st.PortConflicts, []string{line}) || st.Problem != "" || !st.Ready {
			t.Errorf("status tells %q, problem %q, ready %v; want the port, on a node that is ready", st.PortConflicts, st.Problem, st.Ready)
		}
		if lines := n.status().Lines(time.Now(), status.Process{}); !slices.Contains(lines, "host ports:\t"+line) {
			t.Errorf("people are told %q", lines)
		}
		set()
		if st := n.status(); len(st.PortConflicts) > 0 {
			t.Errorf("the port is free, and status tells %q", st.PortConflicts)
		}
	})
}
