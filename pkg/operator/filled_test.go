package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A subnet has no whole prefix left, so a node gets single addresses, until sixteen of them fill one. No pod loses its address by that.
func TestSinglesThatFillAPrefixStayTheirPods(t *testing.T) {
	play(t, setup{nodes: 1, prefixes: true, typ: sim.Type{Name: "large", ENIs: 4, V4: 40, V6: 40}}, func(ctx context.Context, w *world) {
		w.must(w.Fragment("a", true))
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.spare = 11 // whole prefixes, so that nothing goes back
		for _, pods := range []int{5, 21} {
			a.set(pods)
			w.until(time.Minute, func() bool { return len(a.used()) == pods })
		}
		for range 4 * 60 * 15 {
			time.Sleep(250 * time.Millisecond)
			a.mu.Lock()
			lost := 0
			for _, line := range a.state.Used() {
				if line.Lost {
					lost++
				}
			}
			a.mu.Unlock()
			if lost > 0 {
				t.Errorf("%s: %d pods have lost addresses that the cloud has on the node; %+v", w.since(), lost, w.store.node(a.name).Status.ENIs)
				return
			}
		}
	})
}

// Prefixes are turned off and on: the pods that have addresses of prefixes keep them under the next leader.
func TestPrefixesThatAreTurnedOffStayTheirPods(t *testing.T) {
	play(t, setup{nodes: 1, prefixes: true}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.set(20)
		w.until(5*time.Minute, w.isQuiet)
		pods := a.used()
		for _, on := range []bool{false, true} {
			w.lead.kill()
			w.prefixes = on
			time.Sleep(lease.Duration)
			w.leadWith(ctx, nil)
			for range 4 * 60 * 12 {
				time.Sleep(250 * time.Millisecond)
				a.mu.Lock()
				lost := 0
				for _, line := range a.state.Used() {
					if line.Lost {
						lost++
					}
				}
				a.mu.Unlock()
				if lost > 0 {
					t.Errorf("prefixes %v: %d of %d pods have lost addresses that the cloud has on the node", on, lost, len(pods))
					break
				}
			}
		}
		if now := a.used(); !slices.Equal(now, pods) {
			t.Errorf("pods have %v, and had %v", now, pods)
		}
	})
}
