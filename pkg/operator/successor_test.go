package operator

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// of is a copy of the object of node-1.
func of(uid types.UID, version string) *crd.NodeNetwork {
	n := &crd.NodeNetwork{}
	n.Name, n.UID, n.ResourceVersion = "node-1", uid, version
	return n
}

// termOf is a term with node-1, about which something is under way.
func termOf(m *member) *term {
	m.takeCopy(of("uid-1", "3"))
	m.writing = true
	return &term{Operator: &Operator{}, members: map[string]*member{"node-1": m}, nodes: map[string]Node{"node-1": m.node}, dirty: map[string]bool{}}
}

// A Node comes back under its name with another instance while something about the one before is under way. Its agent makes its object before
// the Node says which instance it is, as where the cloud's controller is slow: the object is served once that has ended, and not the one before.
func TestTheObjectOfAReplacedNodeIsNotForgottenForItsInstance(t *testing.T) {
	for what, before := range map[string]Event{
		"its object is gone":      {Network: of("uid-1", "3"), Deleted: true},
		"nobody has told of that": {Node: &Node{Name: "node-1"}},
	} {
		m := newMember(Node{Name: "node-1", Instance: "i-1"}, order.NewTerm(order.Lease{}, 1, 0))
		tm := termOf(m)
		tm.takeEvent(Event{Node: &Node{Name: "node-1"}, Deleted: true})
		tm.takeEvent(Event{Node: &Node{Name: "node-1"}})
		tm.takeEvent(before)
		tm.takeEvent(Event{Network: of("uid-2", "7")})
		tm.takeEvent(Event{Node: &Node{Name: "node-1", Instance: "i-2"}})
		if m.next == nil || m.next.UID != "uid-2" {
			t.Errorf("%s: what comes next is %+v", what, m.next)
		}
	}
}

// A Node has another instance while something about the one before is under way: its object is served next as it is then, and not at all once it is gone.
func TestWhatComesNextOfANodeIsTheNewestCopy(t *testing.T) {
	m := newMember(Node{Name: "node-1", Instance: "i-1"}, order.NewTerm(order.Lease{}, 1, 0))
	tm := termOf(m)
	tm.takeEvent(Event{Node: &Node{Name: "node-1", Instance: "i-2"}})
	tm.takeEvent(Event{Network: of("uid-1", "4")})
	if m.next == nil || m.next.ResourceVersion != "4" {
		t.Errorf("what comes next is %+v", m.next)
	}
	tm.takeEvent(Event{Network: of("uid-1", "5"), Deleted: true})
	if m.next != nil || m.network != nil {
		t.Errorf("what comes next is %+v, after %+v", m.next, m.network)
	}
}
