package operator

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
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
	// Nor does a new object's, whose node has seen another: the describe that tells what calls of that one have done is yet to come.
	anew := order.View{Spec: order.Spec{Mode: order.Operator, SeenRevision: 13}}
	if got := in.handOver(anew); got.Mode != order.Self || !order.IsBehind(order.View{Spec: anew.Spec, Status: got}) {
		t.Errorf("of a new object: %v with revision %d", got.Mode, got.Revision)
	}
}

// A describe that began before the object of before had ended does not count: another one is due, however calm the node is.
func TestADescribeThatCameTooEarlyIsMadeAgain(t *testing.T) {
	now := order.Moment{Mono: time.Hour}
	m := newMember(Node{Name: "node-1"}, order.NewTerm(order.Lease{Settle: 10 * time.Second}, 1, 0))
	m.limits, m.shown = eni.Limits{ENIs: 2, V4: 4}, &shown{began: order.Moment{Mono: time.Hour - time.Minute}}
	if at, is := m.describeDue(order.View{}, now); is {
		t.Fatalf("one is due at %s", at)
	}
	m.term.Follow(3, time.Hour)
	if at, is := m.describeDue(order.View{}, now); !is || at != time.Hour+10*time.Second {
		t.Errorf("one is due at %s: %v", at, is)
	}
}

// A copy that was put back may have the agent's word on it already, where the operator meets it later than the agent: nothing changes by it, and the
// agent is asked for another.
func TestTheAgentIsAskedForAnotherSpecThanOneThatWasPutBack(t *testing.T) {
	m := newMember(Node{Name: "node-1"}, order.NewTerm(order.Lease{}, 7, 0))
	for _, want := range []struct {
		generation, observed int64
		mode                 crd.Mode
	}{{4, -4, crd.Self}, {5, 5, crd.Joining}} {
		copied := &crd.NodeNetwork{}
		copied.Generation, copied.Spec.Mode, copied.Spec.Handover = want.generation, crd.Operator, &crd.Handover{}
		copied.Status.Mode, copied.Status.Revision = crd.Self, 3
		if m.network == nil {
			m.notePutBack(copied)
		}
		m.takeCopy(copied)
		in := input{network: m.network, read: m.view, term: m.term, restored: restored{untold: m.putBack > 0}}
		d, err := in.decide()
		if got := d.network.Status; err != nil || got.ObservedGeneration != want.observed || got.Mode != want.mode {
			t.Errorf("of generation %d: %+v, %v", want.generation, got, err)
		}
	}
}
