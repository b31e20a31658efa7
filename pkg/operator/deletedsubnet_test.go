package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// Somebody prunes the Subnet objects, which no repository has: the operator makes them again at once, and not with the next describe of everything.
func TestASubnetObjectThatIsPrunedIsMadeAgain(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(5)
		w.until(3*time.Minute, w.isQuiet)
		w.store.removeSubnet("a")
		a.set(20)
		took := w.until(10*time.Minute, func() bool { return len(a.used()) == 20 })
		if took > 30*time.Second {
			t.Errorf("pods waited for %s", took)
		}
		w.check()
	})
}

// What people have said of the subnet is said again, and they are told; where the cloud does not show it any more nothing is made.
func TestASubnetObjectIsMadeAgainAsItWas(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		var told notices
		w.leadWith(ctx, func(o *operator.Options) { o.Tell = told.tell })
		w.begin(ctx)
		w.until(3*time.Minute, w.isQuiet)
		changed := w.store.subnet("a")
		changed.Spec.Use, changed.Spec.KeepFree, changed.Generation = "Disabled", 7, changed.Generation+1
		w.store.mu.Lock()
		w.store.keepSubnet(changed)
		w.store.mu.Unlock()
		time.Sleep(10 * time.Second)
		w.store.removeSubnet("a")
		time.Sleep(10 * time.Second)
		if is := w.store.subnet("a"); is == nil || is.Spec.Use != "Disabled" || is.Spec.KeepFree != 7 {
			t.Fatalf("it is %+v", is)
		}
		if n := told.count("MadeAgain"); n != 1 {
			t.Errorf("people are told %d times", n)
		}
		w.must(w.Update(func(tx *sim.Tx) error { return tx.Untag([]string{"a"}, map[string]*string{"pods": nil}) }))
		time.Sleep(15 * time.Minute)
		w.store.removeSubnet("a")
		time.Sleep(15 * time.Minute)
		if is := w.store.subnet("a"); is != nil {
			t.Errorf("of a subnet that is not there any more there is %+v", is)
		}
	})
}
