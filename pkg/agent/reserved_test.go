package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// What is kept for pods is there after all that an agent does: growing, draining, a restart. It neither serves other
// pods nor counts as if it could, and the gated namespaces stay as they were written.
func TestWhatIsReservedStaysWhateverTheAgentDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 4, V4: 17, V6: 17}, nil)
		n.addAndRetry(20) // the second ENI is there now
		if left := n.retry(); left != 0 {
			t.Fatalf("%d pods wait", left)
		}
		kept := map[netip.Addr]eni.Reservation{}
		n.mu.Lock()
		for i, line := range slices.Backward(n.cached.Addresses) {
			if _, free := n.cached.FreeSince(&line, w.now()+n.phase); free && len(kept) < 3 {
				kept[line.Addr] = eni.Reservation{Topology: "db", Namespace: "db", Pod: fmt.Sprint("db-", i)}
			}
		}
		next := n.cached.Clone()
		next.Settings.Gated = []string{"db"}
		if got := next.Reserve(kept, w.now()+n.phase); len(got) != 3 {
			t.Fatalf("reserved %v of %v", got, kept)
		}
		n.cached = next
		n.mu.Unlock()
		check := func(when string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			have := map[netip.Addr]eni.Reservation{}
			for _, line := range n.cached.Addresses {
				if line.State == eni.Reserved {
					have[line.Addr] = *line.Reservation
				}
			}
			if fmt.Sprint(have) != fmt.Sprint(kept) || !slices.Equal(n.cached.Settings.Gated, []string{"db"}) {
				t.Errorf("%s: reserved are %v, want %v; gated %v", when, have, kept, n.cached.Settings.Gated)
			}
			if n.told.Addresses.Reserved != 3 {
				t.Errorf("%s: the status tells %+v", when, n.told.Addresses)
			}
		}
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		wait(time.Minute)
		check("after a minute")
		n.addAndRetry(15)
		if left := n.retry(); left != 0 {
			t.Errorf("%d pods wait: what is reserved is taken for what they can have", left)
		}
		check("after more pods")
		n.kill()
		n.start(-1, false)
		defer n.stop()
		wait(time.Minute)
		check("after a restart")
		for _, k := range n.keys() {
			n.del(k)
		}
		wait(30 * time.Minute)
		check("after all pods have gone")
		if nics := n.attached(); len(nics) < 2 {
			t.Errorf("%d ENIs: one with what is reserved was given back", len(nics))
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
		var none ipam.Count
		if c := n.countStates(); c == none || c.Reserved != 3 {
			t.Errorf("%+v", c)
		}
	})
}
