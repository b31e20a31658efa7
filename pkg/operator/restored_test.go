package operator_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object is deleted and made again from a backup, as backup tools do, which leave out the status or write it as well, while the node's
// agent is down. What the spec of before wants to go back, or the status has accepted, serves pods since: nothing goes back before the agent
// has written. Then it goes on.
func TestASpecOfABackupIsNotAcceptedInANewObject(t *testing.T) {
	for name, from := range map[string]func(backup *crd.NodeNetwork) crd.NodeNetworkStatus{
		"without its status": func(*crd.NodeNetwork) (none crd.NodeNetworkStatus) { return none },
		"with its status":    func(backup *crd.NodeNetwork) crd.NodeNetworkStatus { return backup.Status },
		"with what was accepted": func(backup *crd.NodeNetwork) crd.NodeNetworkStatus {
			backup.Status.Releasing, backup.Spec.Release = backup.Spec.Release, nil
			return backup.Status
		},
	} {
		t.Run(name, func(t *testing.T) { restoreObject(t, from) })
	}
}

func restoreObject(t *testing.T, from func(backup *crd.NodeNetwork) crd.NodeNetworkStatus) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		life, stop := context.WithCancel(ctx)
		go a.run(life)
		a.set(20)
		w.until(3*time.Minute, w.isQuiet)
		w.store.mu.Lock()
		w.store.deny = func(string) error { return errServer } // nothing is accepted
		w.store.mu.Unlock()
		a.set(4)
		w.until(time.Minute, func() bool { return len(w.store.node(a.name).Spec.Release) > 0 })
		backup := w.store.node(a.name)
		a.set(24)
		w.until(time.Minute, func() bool { return len(w.store.node(a.name).Spec.Release) == 0 && len(a.used()) >= 20 })
		w.store.mu.Lock()
		w.store.deny = nil
		w.store.mu.Unlock()
		w.until(5*time.Minute, w.isQuiet)

		stop() // the agent is down; its pods run
		time.Sleep(2 * time.Second)
		pods := a.used()
		w.store.remove(a.name)
		w.until(5*time.Minute, func() bool { return w.store.node(a.name) == nil })
		_, err := w.store.put(&crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: a.name}, Status: from(backup), Spec: backup.Spec})
		w.must(err)
		time.Sleep(5 * time.Minute)
		on := w.places()
		if lost := slices.DeleteFunc(pods, func(p netip.Addr) bool { return on[p] == a.name }); len(lost) > 0 {
			t.Errorf("%d calls took %d addresses that pods use: %v", w.Calls()[sim.ActUnassign], len(lost), lost)
		}
		a.seen, a.ended = nil, false
		go a.run(ctx)
		a.set(30)
		w.until(15*time.Minute, func() bool { return len(a.used()) == 30 })
		before := w.Calls()[sim.ActUnassign]
		a.set(3)
		w.until(15*time.Minute, func() bool { return w.Calls()[sim.ActUnassign] > before && w.isQuiet() })
	})
}
