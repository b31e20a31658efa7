package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// outcome is what a cluster has come to, and what it took.
type clusterOutcome struct {
	statuses map[string]string // by node, without what is a time or a version
	calls    map[string]int
	writes   int
	claims   int // reads of topologies and claims, and writes
}

// A cluster in which topologies are turned off is as one that has never heard of them; and one in which they are turned on, and nobody has made any, does the
// same: its nodes' objects say the same, with no field of topologies in them, the cloud is called as often, and nothing of claims is written.
func TestWithoutTopologiesNothingChanges(t *testing.T) {
	var outcomes []clusterOutcome
	for _, on := range []bool{false, true} {
		play(t, setup{nodes: 3, seed: 7}, func(ctx context.Context, w *world) {
			c := w.withTopologies()
			w.leadWith(ctx, func(o *operator.Options) {
				if !on {
					o.Claims = nil
				}
			})
			w.begin(ctx)
			for i, pods := range []int{6, 14, 3} {
				w.agents[i].set(pods)
			}
			w.until(5*time.Minute, w.isQuiet)
			w.agents[1].set(2)
			w.until(30*time.Minute, w.isQuiet)
			time.Sleep(time.Hour)
			w.check()
			is := clusterOutcome{statuses: map[string]string{}, calls: w.Calls(), claims: c.calls + c.written}
			for _, a := range w.agents {
				n := w.store.node(a.name)
				text, err := json.Marshal(n)
				w.must(err)
				for _, word := range []string{`"reserved"`, `"topology"`, `"topologyPlaces"`, `"gated"`} {
					if strings.Contains(string(text), word) {
						t.Errorf("topologies %v: %s has %s:\n%s", on, a.name, word, text)
					}
				}
				for _, e := range n.Status.ENIs { // which addresses they are goes by who asks first
					is.statuses[a.name] += fmt.Sprintf("%s %s with %d; ", e.Subnet, e.State, len(e.Addresses))
				}
				is.writes += w.store.writesOf(a.name)
			}
			outcomes = append(outcomes, is)
		})
	}
	off, on := outcomes[0], outcomes[1]
	if off.claims > 0 || on.claims != 1 { // the one is the watch
		t.Errorf("requests about topologies: %d, and turned on %d", off.claims, on.claims)
	}
	if !maps.Equal(off.statuses, on.statuses) {
		t.Errorf("nodes have\n%v, and with topologies turned on\n%v", off.statuses, on.statuses)
	}
	for _, action := range slices.Sorted(maps.Keys(on.calls)) {
		if action != sim.ActDescribe && off.calls[action] != on.calls[action] {
			t.Errorf("%s: %d calls, and with topologies turned on %d", action, off.calls[action], on.calls[action])
		}
	}
	if off.writes != on.writes {
		t.Errorf("%d writes of nodes' objects, and with topologies turned on %d", off.writes, on.writes)
	}
}
