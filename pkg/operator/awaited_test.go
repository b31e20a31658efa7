package operator

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/order"
)

// Pods may wait for a status though the node's agent tells of none: each of the causes alone does it, and nothing else.
func TestAStatusThatPodsOfOtherNodesMayWaitForIsUrgent(t *testing.T) {
	one, other := order.Reserved{Addr: netip.MustParseAddr("10.0.0.7"), Topology: "t", Namespace: "db", Pod: "db-0", UID: "1"}, order.Reserved{Addr: netip.MustParseAddr("10.0.0.7"), Topology: "t", Namespace: "db", Pod: "db-0", UID: "2"}
	enis := []order.ENI{{ID: "eni-1"}}
	for _, tt := range []struct {
		name         string
		before, next order.Status
		slots        int
		want         bool
	}{
		{"nothing is new", order.Status{ENIs: enis, Reserved: []order.Reserved{one}}, order.Status{ENIs: enis, Reserved: []order.Reserved{one}}, 0, false},
		{"it says what the node lacks", order.Status{ENIs: enis}, order.Status{ENIs: enis, Revision: 7}, 0, false},
		{"a new node without ENIs", order.Status{}, order.Status{}, 0, false},
		{"its first ENIs", order.Status{}, order.Status{ENIs: enis}, 0, true},
		{"it gives idle slots", order.Status{ENIs: enis}, order.Status{ENIs: enis}, 1, true},
		{"an address is kept for a pod", order.Status{ENIs: enis}, order.Status{ENIs: enis, Reserved: []order.Reserved{one}}, 0, true},
		{"and for its next one", order.Status{ENIs: enis, Reserved: []order.Reserved{one}}, order.Status{ENIs: enis, Reserved: []order.Reserved{other}}, 0, true},
		{"it leaves for a pod elsewhere", order.Status{ENIs: enis, Reserved: []order.Reserved{one}}, order.Status{ENIs: enis}, 0, true},
	} {
		in := input{read: order.View{Status: tt.before}, reclaim: amount{slots: tt.slots}}
		if got := in.isAwaited(tt.next); got != tt.want {
			t.Errorf("%s: pods may wait for it: %v", tt.name, got)
		}
	}
}
