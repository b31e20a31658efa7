package operator

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"pgregory.net/rapid"
)

// Whatever nodes come, change and go, the tally is what a count of all of them comes to.
func TestATallyIsWhatACountComesTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, members := tally{}, map[string]*member{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			name := fmt.Sprint("node-", rapid.IntRange(0, 4).Draw(t, "node"))
			m := members[name]
			if m == nil {
				m = newMember(Node{Name: name}, order.NewTerm(order.Lease{}, 1, 0))
				members[name] = m
			}
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				y.exchange(m, nil)
				delete(members, name)
			case 1:
				m.left = true
				y.exchange(m, m.portions(nil))
			default:
				n := &crd.NodeNetwork{Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Families: []string{"IPv4"}, Pool: crd.Pool{Mode: "burstable", Multiple: 1}}}
				s := order.Status{Mode: order.Operator, Limits: eni.Limits{ENIs: 4, V4: 10}}
				for i := range rapid.IntRange(0, 3).Draw(t, "ENIs") {
					e := order.ENI{ID: fmt.Sprint("eni-", i), Index: i, Subnet: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subnet"), State: order.Attached}
					for k := range rapid.IntRange(0, 9).Draw(t, "addresses") {
						e.Addresses = append(e.Addresses, netip.MustParsePrefix(fmt.Sprintf("10.0.%d.%d/32", i, k)))
					}
					s.ENIs = append(s.ENIs, e)
				}
				n.Status.Write(s)
				m.takeCopy(n)
				y.exchange(m, m.portions(nil))
			}
		}
		want := tally{}
		for _, m := range members {
			for id, p := range m.portions(nil) {
				all := want[id]
				want[id] = portion{all.interfaces + p.interfaces, all.addresses + p.addresses, all.owed + p.owed}
			}
		}
		for _, id := range []string{"a", "b"} {
			if y[id] != want[id] {
				t.Fatalf("%s: %+v, a count comes to %+v", id, y[id], want[id])
			}
		}
	})
}

// Nodes are due at what was set last, each once, and none is passed over.
func TestNodesAreDueAtWhatWasSetLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, want := newDues(), map[string]time.Duration{}
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			name := fmt.Sprint("node-", rapid.IntRange(0, 5).Draw(t, "node"))
			at := time.Duration(rapid.IntRange(0, 9).Draw(t, "at"))
			if rapid.IntRange(0, 3).Draw(t, "take") > 0 {
				if d.set(name, at); at == 0 {
					delete(want, name)
				} else {
					want[name] = at
				}
				continue
			}
			got := map[string]bool{}
			for _, name := range d.take(at) {
				if got[name] || want[name] == 0 || want[name] > at {
					t.Fatalf("%s is due at %d, wanted %v", name, at, want)
				}
				got[name] = true
				delete(want, name)
			}
			for name, when := range want {
				if when <= at {
					t.Fatalf("%s was due at %d and is not at %d", name, when, at)
				}
			}
		}
	})
}
