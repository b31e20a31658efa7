package operator

import (
	"testing"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// A status that a backup has brought back gets no revision of now from a handover: the agent would take it for what there is.
func TestNothingIsHandedOverWhileAStatusIsBehind(t *testing.T) {
	in := input{network: &crd.NodeNetwork{}, term: order.NewTerm(order.Lease{}, 7, 0)}
	for seen, want := range map[int64]order.Mode{13: order.Operator, 16: order.Self} {
		view := order.View{Spec: order.Spec{Mode: order.Operator, SeenRevision: seen}, Status: order.Status{Revision: 13, ENIs: []order.ENI{{ID: "eni-1"}}}}
		if got := in.handOver(view); got.Mode != want || (got.Revision > 13) != (want == order.Operator) {
			t.Errorf("of revision 13 with %d seen: %v with revision %d", seen, got.Mode, got.Revision)
		}
	}
}
