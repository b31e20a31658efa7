package operator_test

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A Node is deleted and its instance lives on, as with a kubelet that hangs: nobody describes what it has any more. A pod that comes elsewhere gets its address all the
// same, whoever leads.
func TestAnAddressIsTakenFromAnInstanceWhoseNodeIsDeleted(t *testing.T) {
	for name, again := range map[string]bool{"the same operator leads": false, "another one leads": true} {
		t.Run(name, func(t *testing.T) {
			playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
				c.run("db-0", "node-000", "fixed")
				c.awaitPod(3*time.Minute, "db-0", "node-000")
				at, _ := c.addressOf("db-0")
				c.wait(time.Minute)
				a := w.agents[0]
				a.mu.Lock()
				a.silent = true
				a.mu.Unlock()
				c.stop("db-0")
				w.store.remove("node-000")
				w.store.forgetNode("node-000")
				w.until(time.Minute, func() bool { return w.store.node("node-000") == nil })
				if again {
					w.lead.stop()
					<-w.lead.ended
					w.leadWith(ctx, nil)
				}
				c.run("db-0", "node-001", "fixed")
				t.Logf("after %s", c.awaitBound(2*time.Minute, "db-0", "node-001"))
				if is, _ := c.addressOf("db-0"); is != at || c.claim("db-0").Status.Phase != "Bound" {
					t.Errorf("it has %s, and had %s: %+v", is, at, c.claim("db-0").Status)
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				for _, said := range c.heard {
					if strings.Contains(said, "Conflict") {
						t.Error(said)
					}
				}
			})
		})
	}
}
