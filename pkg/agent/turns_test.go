package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Forty pods are bound at once to a node with an address for a few of them, and a call takes 0.3 s.
// Whatever their ADDs do meanwhile, the pool is complete a call later.
func TestADDsHoldUpNoAddressesThatAreOrdered(t *testing.T) {
	for _, apart := range []time.Duration{0, 1, 5, 20, 60, 80, 99, 100, 101, 150, 200, 250} {
		apart *= time.Millisecond
		t.Run(fmt.Sprint("ADDs ", apart, " apart"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, large, inCluster)
				defer n.stop()
				before := w.calls()["AssignAddresses"]
				began := time.Now()
				var pods []eni.Pod
				for i := range 40 {
					pods = append(pods, n.bind(fmt.Sprintf("pod-%d", i)))
				}
				var complete time.Duration
				const step = time.Millisecond
				next, failed := 0, 0
				for since := time.Duration(0); since < 12*time.Second; since += step {
					for next < len(pods) && since >= time.Duration(next)*apart {
						_ = n.sandbox(pods[next]) // one without an address waits
						next++
					}
					if since > 5*time.Second && next == len(pods) {
						break
					}
					had := n.total()
					if sleep(step); n.total() != had {
						n.retry() // the plugin looks when the node cache has changed
					}
					if complete == 0 && n.total() >= 48 {
						complete = time.Since(began)
					}
				}
				failed = n.retry()
				if complete == 0 || complete > 500*time.Millisecond || failed > 0 {
					t.Errorf("the pool is complete after %s, %d ADDs have no address", complete, failed)
				}
				if calls := w.calls()["AssignAddresses"] - before; calls > 2 {
					t.Errorf("%d calls for addresses", calls)
				}
			})
		})
	}
}
