package operator

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// A node whose ENIs are full, with addresses of topologies on two of them: eni-0 is in subnet a with one, eni-1 in subnet b with two, each ENI carries three.
func fullNode() *member {
	m := newMember(Node{Name: "node"}, order.NewTerm(order.Lease{}, 1, 0))
	m.network = &crd.NodeNetwork{}
	m.view.Spec = order.Spec{Families: []eni.Family{eni.IPv4}, Slots: 6}
	m.view.Status = order.Status{Limits: eni.Limits{ENIs: 2, V4: 4, V6: 4}}
	for i, subnet := range []string{"a", "b"} {
		e := order.ENI{ID: fmt.Sprint("eni-", i), Index: i, Subnet: subnet, State: order.Attached}
		for k := range 3 {
			at := netip.AddrFrom4([4]byte{10, 0, byte(i), byte(k)})
			e.Addresses = append(e.Addresses, netip.PrefixFrom(at, 32))
			if k <= i {
				m.view.Status.Reserved = append(m.view.Status.Reserved, order.Reserved{Addr: at, Topology: "t", Pod: fmt.Sprint("db-", k)})
			}
		}
		m.view.Status.ENIs = append(m.view.Status.ENIs, e)
	}
	return m
}

// What a node has left its places for it is owed, where it can't have them elsewhere.
func TestSlotsAreOwedWhereAddressesOfTopologiesHaveTheirPlaces(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(m *member)
		want   map[string]int
	}{
		{"it lacks as many as they take", func(*member) {}, map[string]int{"a": 1, "b": 2}},
		{"it lacks fewer", func(m *member) { m.view.Spec.Slots = 5 }, map[string]int{"a": 1, "b": 1}},
		{"it lacks more than they take", func(m *member) { m.view.Spec.Slots = 60 }, map[string]int{"a": 1, "b": 2}},
		{"it lacks none", func(m *member) { m.view.Spec.Slots = 3 }, nil},
		{"it can have one more ENI", func(m *member) { m.view.Status.Limits.ENIs = 3 }, nil},
		{"somebody else's takes its place", func(m *member) {
			m.view.Status.Limits.ENIs = 3
			m.shown = &shown{view: cloud.View{Interfaces: []cloud.Interface{{ID: "other", Index: 2}}}}
		}, map[string]int{"a": 1, "b": 2}},
		{"one is on its way to be attached", func(m *member) { m.view.Status.ENIs[1].State = order.Creating }, nil},
		{"one ENI has room", func(m *member) { m.view.Status.ENIs[0].Addresses = m.view.Status.ENIs[0].Addresses[:2] }, map[string]int{"b": 2}},
		{"one ENI is a topology's own", func(m *member) { m.view.Status.ENIs[1].Topology = "t" }, map[string]int{"a": 1}},
		{"the primary ENI serves no pods", func(m *member) { m.view.Spec.Pool = pool.Config{FirstENI: 1} }, map[string]int{"b": 2}},
		{"another family's take none", func(m *member) { m.view.Spec.Families = []eni.Family{eni.IPv6} }, map[string]int{}},
		{"nothing is reserved", func(m *member) { m.view.Status.Reserved = nil }, nil},
		{"what is reserved is not there", func(m *member) {
			m.view.Status.Reserved = []order.Reserved{{Addr: netip.MustParseAddr("10.9.9.9"), Topology: "t"}}
			m.view.Spec.Slots = 8
		}, map[string]int{}},
		{"its object can't be read", func(m *member) { m.wrong = errLater }, nil},
	} {
		m := fullNode()
		tt.change(m)
		if got := m.owedPlaces(); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
