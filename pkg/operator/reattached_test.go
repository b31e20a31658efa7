package operator_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// Somebody detaches an ENI for some minutes. Meanwhile an address of it is taken away, and another node gets it. When the ENI is attached again its
// node does not have that address, not even until a second describe lacks it too.
func TestAnENIThatIsAttachedAgainHasWhatADescribeShows(t *testing.T) {
	account := sim.Options{Reuse: sim.ReuseLatest}
	play(t, setup{nodes: 2, account: account, conf: batchOf(1)}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a, b := w.agents[0], w.agents[1]
		a.set(12)
		b.set(3)
		w.until(5*time.Minute, w.isQuiet)
		var moved netip.Addr
		id := ""
		a.mu.Lock()
		for _, line := range a.state.Addresses {
			if _, free := a.state.FreeSince(&line, w.since()); free && line.ENI > 0 {
				moved = line.Addr
				for _, nic := range a.state.ENIs {
					if nic.Index == line.ENI {
						id = nic.ID
					}
				}
			}
		}
		a.mu.Unlock()
		if id == "" {
			t.Fatal("no free address on a second ENI")
		}
		w.must(w.Detach(id))
		state := func() string {
			for _, e := range w.store.node(a.name).Status.ENIs {
				if e.ID == id {
					return e.State
				}
			}
			return ""
		}
		w.until(8*time.Minute, func() bool { return state() == "Detached" })
		w.must(w.TakeAway(moved))
		b.set(5)
		w.until(time.Minute, func() bool { return w.places()[moved] == b.name })
		time.Sleep(5 * time.Second)
		w.must(w.Update(func(tx *sim.Tx) error {
			_, err := tx.Attach(sim.Attach{Interface: id, Instance: "i-" + a.name, Index: -1, DeleteOnTermination: true})
			return err
		}))
		a.set(20)
		w.until(time.Minute, func() bool { return state() == "Attached" })
		for range 40 {
			time.Sleep(250 * time.Millisecond)
			a.mu.Lock()
			for _, line := range a.state.Addresses {
				if line.Addr == moved && line.State != eni.Releasing && !line.Lost {
					t.Errorf("%s is %s on %s, and %s has it", moved, line.State, a.name, w.places()[moved])
				}
			}
			a.mu.Unlock()
			if t.Failed() {
				break
			}
		}
	})
}
