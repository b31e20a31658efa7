package cluster

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// An operator leads by a lease that has no label, as one of an earlier build does, or whose label somebody has removed. Operators of another
// namespace see it all the same.
func TestALeaseWithoutALabelIsListed(t *testing.T) {
	set, err := kubernetes.NewForConfig(server(t))
	must(t, err)
	leases := set.CoordinationV1()
	for _, name := range []string{"enipool-operator", "another"} {
		_, err = leases.Leases("default").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
	}
	list, err := ListLeases(leases, "enipool-operator")(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].Name != "enipool-operator" {
		t.Errorf("%d leases are listed: %+v", len(list), list)
	}
}
