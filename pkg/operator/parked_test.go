package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// putNode makes the object of a node whose agent asks for nothing.
func (w *world) putNode(name string) {
	w.Helper()
	_, err := w.store.put(&crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Families: []string{"IPv4"}, Boot: "boot-0"}})
	w.must(err)
}

// says has a node's agent say something that changes nothing.
func (w *world) says(name, boot string) {
	w.Helper()
	n := w.store.node(name)
	n.Spec.Boot = boot
	_, err := w.store.put(n)
	w.must(err)
}

// Many writes wait for others, and then most of these nodes are gone: what their turn was for goes to a node that is still there, which does
// not wait until everything is described again.
func TestAWriteThatIsNotNeededAnyMoreMakesRoomForTheNext(t *testing.T) {
	play(t, setup{nodes: 500, perScan: 1000}, func(ctx context.Context, w *world) {
		for _, a := range w.agents {
			w.putNode(a.name)
		}
		w.leadWith(ctx, nil)
		answered := func(name string) bool {
			n := w.store.node(name)
			return n.Status.ObservedGeneration == n.Generation
		}
		last := w.agents[len(w.agents)-1].name
		w.until(2*time.Minute, func() bool { return answered(last) && w.store.node(last).Status.DescribedAt != nil })
		time.Sleep(10 * time.Minute)
		w.store.mu.Lock()
		w.store.answers = 9 * time.Second
		w.store.mu.Unlock()
		time.Sleep(time.Minute)
		for _, a := range w.agents[:len(w.agents)-1] {
			w.says(a.name, "boot-1")
		}
		time.Sleep(time.Second)
		w.says(last, "boot-1")
		time.Sleep(12 * time.Second)
		if answered(last) {
			t.Fatal("its write has not waited")
		}
		for _, a := range w.agents[:len(w.agents)-1] {
			w.must(w.store.DropFinalizer(ctx, w.store.node(a.name)))
		}
		w.until(30*time.Second, func() bool { return answered(last) })
	})
}
