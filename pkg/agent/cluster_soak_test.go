package agent

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
)

// TestWithPodsOfAClusterNothingIsLostOrHandedOutTwice is the random simulation with a
// cluster: pods that are bound, deleted and made anew under their names, sandboxes
// that come late, twice or never, a watch that lags, breaks off and starts anew, a
// wall clock that jumps.
func TestWithPodsOfAClusterNothingIsLostOrHandedOutTwice(t *testing.T) {
	if *soakSeed != 0 {
		clusterSoak(t, *soakSeed)
		return
	}
	for seed := uint64(1); int(seed) <= max(1, steps()/stepsPerSeed/4); seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { clusterSoak(t, seed) }) {
			t.Fatalf("replay with: go test ./pkg/agent -run WithPodsOfACluster -soak.seed %d", seed)
		}
	}
}

func clusterSoak(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		s := newSoaker(t, seed, func(n *testNode) { n.api = &testAPI{} })
		for range stepsPerSeed {
			if n := s.nodes[s.r.IntN(len(s.nodes))]; s.r.IntN(2) == 0 {
				s.clusterStep(n)
			} else {
				s.step()
			}
			s.after()
			s.checkReports()
		}
		s.calmCluster()
		s.calm()
	})
}

// clusterStep lets something happen that only a cluster brings about.
func (s *soaker) clusterStep(n *testNode) {
	switch d := s.r.IntN(100); {
	case d < 25: // pods are bound; the kubelet gets to them later
		for range 1 + s.r.IntN(1+s.r.IntN(15)) {
			p := n.bind(fmt.Sprintf("web-%d", s.r.IntN(40)))
			s.note("%s: %s is bound as %s", n.name, p.Name, p.UID)
		}
	case d < 55: // a sandbox: the first of its pod, or one more
		if p, ok := s.anyPod(n); ok {
			_ = n.sandbox(p)
		}
	case d < 65:
		for _, k := range n.keys()[:min(len(n.keys()), s.r.IntN(5))] {
			n.del(k)
		}
	case d < 80: // a pod goes, and sometimes another one comes under its name
		if p, ok := s.anyPod(n); ok {
			n.unbind(p)
			if s.r.IntN(2) == 0 {
				n.bind(p.Name)
			}
		}
	case d < 85:
		n.giveUp()
	case d < 90: // the watch breaks off, or comes back
		n.mu.Lock()
		n.api.away = !n.api.away
		n.mu.Unlock()
		s.note("%s: API server away: %v", n.name, n.api.away)
		n.hear()
	case d < 93: // the agent starts and the API server is not there
		n.mu.Lock()
		n.api.away, n.api.synced, n.api.seen = true, false, nil
		n.mu.Unlock()
		n.kill()
		s.startNode(n)
	case d < 96: // the watch has an old state
		n.mu.Lock()
		if k := len(n.api.pods); k > 0 {
			n.api.seen = slices.Clone(n.api.pods[:s.r.IntN(k)])
		}
		n.mu.Unlock()
		n.wake()
	case d < 98: // somebody sets the clock
		n.mu.Lock()
		n.api.jump = time.Duration(s.r.IntN(7)-3) * time.Hour
		n.mu.Unlock()
	default:
		s.sleep(40 * time.Second)
	}
}

func (s *soaker) anyPod(n *testNode) (eni.Pod, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.api.pods) == 0 {
		return eni.Pod{}, false
	}
	return n.api.pods[s.r.IntN(len(n.api.pods))], true
}

// checkReports demands that what the clusters were told makes sense.
func (s *soaker) checkReports() {
	for _, n := range s.nodes {
		r := n.last()
		if r.Reason != "" && (!slices.Contains(health.Reasons(), r.Reason) || r.Message == "" || r.Capacity < -1 || r.Capacity > 110 || r.Taint != r.Faulty) {
			s.fail("%s: told %+v", n.name, r)
		}
	}
}

// calmCluster brings the watches back and demands that each node's demand is what its
// cache and its pods make it.
func (s *soaker) calmCluster() {
	s.account.Refuse(nil)
	s.account.SetFaults()
	for _, n := range s.nodes {
		n.kill()
		n.forget()
		n.full = false
		n.api.away, n.api.jump, n.serial = false, 0, n.serial+1
		n.start(-1, false)
		n.hear()
	}
	s.settle(time.Hour)
	for _, n := range s.nodes {
		n.mu.Lock()
		d := countDemand(n.cached, s.now(), 0)
		owners := n.cached.Used()
		want := d.assigned
		for _, p := range n.api.pods {
			if !slices.ContainsFunc(owners, func(line eni.Address) bool { return is(*line.Owner, p) }) {
				want++
			}
		}
		got := n.told
		n.mu.Unlock()
		if got.Demand != want || !got.Synced {
			s.fail("%s: demand %d, want %d: %d assigned, %d pods, status %+v", n.name, got.Demand, want, d.assigned, len(n.api.pods), got)
		}
		if lack := want-d.assigned > d.free; lack && !got.Health.Faulty || !lack && d.free > 0 && got.Health.Faulty {
			s.fail("%s: %d slots wanted, %d free of %d, health %+v", n.name, want, d.free, d.owned, got.Health)
		}
	}
}
