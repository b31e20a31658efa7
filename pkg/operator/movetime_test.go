package operator_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

var moves = flag.Int("moves", 2, "pods that TestHowLongAPodIsWithoutItsAddress lets come again, one after the other, for each row")

// likeEC2 is an account that takes the time that EC2 takes, as test/bench/cluster has it, and has its budgets.
func likeEC2(seed uint64) setup {
	perSecond := func(burst, rate int) sim.Bucket {
		return sim.Bucket{Burst: burst, Every: time.Second / time.Duration(rate)}
	}
	call := sim.Latency{Base: 600 * time.Millisecond, Jitter: 400 * time.Millisecond}
	return setup{nodes: 4, seed: seed, account: sim.Options{Lag: 500 * time.Millisecond, CreateTime: time.Second, AttachTime: 2 * time.Second, DetachTime: 2 * time.Second,
		Latency: map[string]sim.Latency{"": {Base: 100 * time.Millisecond, Jitter: 100 * time.Millisecond}, sim.ActAssign: call, sim.ActUnassign: call},
		Buckets: map[string]sim.Bucket{sim.ActAssign: perSecond(100, 5), sim.ActUnassign: perSecond(100, 5), sim.ActDescribe: perSecond(100, 20)}}}
}

// From the end of a pod's object until a pod of its name has its address again, in virtual time, with the latencies and budgets of EC2. An agent acts within
// 50 ms of what it hears, and what kubelet, scheduler and StatefulSet controller take is not in it. `make bench-topologies` has it done many times.
func TestHowLongAPodIsWithoutItsAddress(t *testing.T) {
	for i, row := range []struct {
		name    string
		most    time.Duration // as long as it may take at most, so that nobody has to read numbers to see that it got slower
		pods    int           // that come again at once
		same    bool
		prepare func(w *world, from string)
	}{
		{"the same node", 500 * time.Millisecond, 1, true, nil},
		{"another node", 6 * time.Second, 1, false, nil},
		{"another node, the cluster does not reach the first one", 6 * time.Second, 1, false, func(w *world, from string) {
			w.store.changeNode(from, func(n *operator.Node) { n.Cut = true })
		}},
		{"another node, the first one's agent says nothing", 16 * time.Second, 1, false, func(w *world, from string) { w.silence(from, true) }},
		{"other nodes, 24 pods of a drained node at once", 40 * time.Second, 24, false, nil},
	} {
		if testing.Short() && !row.same {
			continue // of what is measured nothing races that does not elsewhere
		}
		t.Run(row.name, func(t *testing.T) {
			var took []time.Duration
			s := likeEC2(uint64(i))
			s.typ = sim.Type{Name: "m5.xlarge", ENIs: 4, V4: 15, V6: 15}
			playClaims(t, s, func(_ context.Context, w *world, c *claimStore) {
				c.setTopology(topologyOf("many", "Fixed", "", "a", "10.0.201.16", "10.0.201.47"))
				for _, a := range w.agents {
					a.mu.Lock()
					a.every = 50 * time.Millisecond
					a.mu.Unlock()
				}
				var names []string
				for k := range row.pods {
					names = append(names, fmt.Sprint("many-", k))
					c.run(names[k], "node-000", "many")
				}
				before := c.awaitAll(10*time.Minute, names)
				for n := range *moves {
					c.wait(time.Minute)
					from, to := w.agents[n%2].name, func(int) string { return w.agents[(n+1)%2].name }
					if row.same {
						from, to = "node-000", func(int) string { return "node-000" }
					}
					if row.prepare != nil {
						row.prepare(w, from)
					}
					began := time.Now()
					for k, name := range names {
						c.run(name, to(k), "many")
					}
					took = append(took, c.comeAgain(began, names)...)
					if after := c.awaitAll(time.Minute, names); fmt.Sprint(after) != fmt.Sprint(before) {
						t.Fatalf("%v, and before %v", after, before)
					}
					w.silence(from, false)
					w.store.changeNode(from, func(n *operator.Node) { n.Cut = false })
				}
			})
			slices.Sort(took)
			p50, p99 := took[len(took)/2], took[len(took)*99/100]
			t.Logf("measured | %s | %d | %.2f s | %.2f s | %.2f s |", row.name, len(took), p50.Seconds(), p99.Seconds(), took[len(took)-1].Seconds())
			if p99 > row.most {
				t.Errorf("p99 is %s, more than %s", p99, row.most)
			}
		})
	}
}

// comeAgain waits for pods to run, and returns how long each has taken.
func (s *claimStore) comeAgain(began time.Time, names []string) []time.Duration {
	took := map[string]time.Duration{}
	for len(took) < len(names) {
		for _, name := range names {
			if at, on := s.addressOf(name); took[name] == 0 && at.IsValid() && s.runs(name, on) {
				took[name] = time.Since(began)
			}
		}
		if time.Since(began) > 5*time.Minute {
			s.w.Fatalf("%d of %d pods have come again", len(took), len(names))
		}
		time.Sleep(25 * time.Millisecond)
	}
	list := []time.Duration{}
	for _, name := range names {
		list = append(list, took[name])
	}
	return list
}

// silence has a node's agent do nothing, or work again.
func (w *world) silence(name string, silent bool) {
	for _, a := range w.agents {
		if a.name == name {
			a.mu.Lock()
			a.silent = silent
			a.mu.Unlock()
		}
	}
}
