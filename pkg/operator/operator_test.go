package operator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

var crdView = func(n *crd.NodeNetwork) (order.View, error) { return crd.View(n) }

// A node gets what it asks for, gives back what it does not need, and then nothing is written or called but the periodic describe.
func TestANodeGetsWhatItAsksFor(t *testing.T) {
	play(t, setup{nodes: 3}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, pods := range []int{5, 25, 3, 12} {
			for _, a := range w.agents {
				a.set(pods)
			}
			t.Logf("%d pods after %s", pods, w.until(3*time.Minute, w.isQuiet))
		}
		time.Sleep(6 * time.Minute) // the next describe shows what the subnet has left
		calls, writes := w.Calls(), w.store.versions()
		time.Sleep(30 * time.Minute)
		for action, n := range w.Calls() {
			if n > calls[action]+7*3 { // describes of ENIs and subnets
				t.Errorf("%s was called %d times in half an hour in which nothing happened", action, n-calls[action])
			}
		}
		if n := w.store.versions() - writes; n > 0 {
			t.Errorf("there were %d writes", n)
		}
		if err := w.lead.Healthy(); err != nil {
			t.Error(err)
		}
		w.check()
	})
}

// Where addresses come in delegated prefixes they stand in the object as these.
func TestDelegatedPrefixesStandForThemselves(t *testing.T) {
	play(t, setup{nodes: 2, prefixes: true}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(20)
		}
		w.until(3*time.Minute, w.isQuiet)
		blocks := 0
		for _, e := range w.store.node("node-000").Status.ENIs {
			for _, p := range e.Addresses {
				if strings.HasSuffix(p, "/28") {
					blocks++
				}
			}
		}
		if blocks != 2 {
			t.Errorf("there are %d prefixes, want 2", blocks)
		}
		w.must(w.Check())
	})
}

// On a cloud that behaves as Baidu's does, ten addresses a request, ENIs that are filled after they are attached and primary ENIs
// that lists lack, nodes get what they ask for, too.
func TestACloudLikeBaidus(t *testing.T) {
	play(t, setup{nodes: 2, likeBCE: true, typ: sim.Type{Name: "large", ENIs: 4, V4: 30, V6: 30}}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, pods := range []int{25, 3, 40} {
			for _, a := range w.agents {
				a.set(pods)
			}
			w.until(5*time.Minute, w.isQuiet)
		}
		w.check()
	})
}
