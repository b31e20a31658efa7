package operator_test

import (
	"context"
	"testing"
	"time"
)

// A pod that comes back under its name as one of another topology gets an address of that one: what is kept for the name by the first is not its own, and
// would be taken from under it when that claim ends.
func TestAPodOfAnotherTopologyGetsNothingOfTheFirst(t *testing.T) {
	for _, of := range []string{"sticky", "elastic"} {
		t.Run(of, func(t *testing.T) {
			playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
				c.run("db-0", "node-000", "fixed")
				c.awaitPod(3*time.Minute, "db-0", "node-000")
				before, _ := c.addressOf("db-0")
				c.wait(time.Minute)
				c.run("db-0", "node-000", of)
				c.awaitPod(time.Minute, "db-0", "node-000")
				if at, _ := c.addressOf("db-0"); at == before {
					t.Errorf("a pod of topology %s has %s, which is kept by topology fixed", of, at)
				}
				c.setSets()
				w.until(5*time.Minute, func() bool { return w.places()[before] == "" })
				if !c.runs("db-0", "node-000") {
					t.Error("the pod has no address any more")
				}
			})
		})
	}
}

// A pod of the name of a claim may have its address though it is not of its topology: its runtime does not tell of topologies, or its plugin is of an earlier
// release. The claim ends after it: nothing is taken from under it. One elsewhere has nothing of it.
func TestAnAddressStaysWithAPodOfItsNameThatHasIt(t *testing.T) {
	for name, tt := range map[string]struct {
		of, node string
		stays    bool
	}{
		"of no topology":                {"", "node-000", true},
		"of another one":                {"sticky", "node-000", true},
		"of none, on another node":      {"", "node-001", false},
		"of another one, on other node": {"sticky", "node-001", false},
	} {
		t.Run(name, func(t *testing.T) {
			playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
				c.byName = true
				c.run("db-0", "node-000", "fixed")
				c.awaitPod(3*time.Minute, "db-0", "node-000")
				at, _ := c.addressOf("db-0")
				c.wait(time.Minute)
				c.run("db-0", tt.node, tt.of)
				if tt.stays {
					c.awaitPod(10*time.Second, "db-0", "node-000")
				}
				c.setSets()
				if !tt.stays {
					a := w.agents[0] // it says no word: a read tells that nobody has the address
					a.mu.Lock()
					a.silent = true
					a.mu.Unlock()
					w.until(3*time.Minute, func() bool { return w.places()[at] == "" })
					return
				}
				c.wait(10 * time.Minute)
				if !c.runs("db-0", "node-000") || c.claim("db-0") == nil {
					t.Errorf("its address was taken: %+v", c.claim("db-0"))
				}
				c.stop("db-0")
				w.until(5*time.Minute, func() bool { return w.places()[at] == "" })
			})
		})
	}
}
