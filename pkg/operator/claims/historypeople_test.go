package claims_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deleteClaim is what people do to let go of an address.
func (w *world) deleteClaim() {
	names := slices.Sorted(maps.Keys(w.objects))
	if len(names) == 0 {
		return
	}
	if old := w.objects[names[w.IntN(len(names))]]; old.DeletionTimestamp == nil {
		w.note("people delete", "%s", old.Name)
		w.beginDelete(old)
		delete(w.promises, name{Namespace: old.Spec.Namespace, Name: old.Spec.Pod})
	}
}

// changeAddress is what people do who want another address for a pod that runs: they delete the claim, and at once the pod, which is made again and comes back
// to its node.
func (w *world) changeAddress() {
	for _, of := range w.names {
		p := w.pods[of]
		if p == nil || p.Ended || !w.has(p) || w.IntN(2) == 0 {
			continue
		}
		n := w.nodeOf(p)
		for _, line := range n.state.Addresses {
			c := w.objects[line.Addr.String()]
			if line.State != eni.Used || line.Owner.Container != p.UID || c == nil || c.DeletionTimestamp != nil || c.Spec.Pod != of.Name {
				continue
			}
			w.note("people change the address", "%s of %s", c.Name, p.UID)
			w.beginDelete(c)
			delete(w.promises, of)
			if line.Reservation.UID == p.UID && c.Status.PodUID == p.UID { // else the node still keeps it for any pod of the name
				w.lastPods[c.Name] = p.UID
			}
			w.removePod(of)
			w.createPod(of)
			w.classify(of)
			w.bindTo(of, n)
			return
		}
	}
}

func (w *world) beginDelete(old *crd.AddressClaim) {
	next := old.DeepCopy()
	next.DeletionTimestamp = &metav1.Time{Time: w.wall()}
	w.keep(next)
}

// toggleSet deletes the StatefulSet, whose pods go later or stay, or makes it again.
func (w *world) toggleSet() {
	if w.setThere = !w.setThere; !w.setThere {
		maps.DeleteFunc(w.promises, func(of name, _ promise) bool { return strings.HasPrefix(of.Name, "fixed") })
	}
}
