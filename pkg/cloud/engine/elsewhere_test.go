package engine_test

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// addressesOf returns the secondary IPv4 addresses that an ENI has in the account.
func (w *world) addressesOf(t *testing.T, id string) (addrs []netip.Addr) {
	t.Helper()
	w.View(0, func(tx *sim.Tx) {
		i, err := tx.Interface(id)
		must(t, err)
		addrs = slices.Clone(i.V4)
	})
	return addrs
}

// A person detaches an ENI and attaches it to another node: its addresses are that node's
// affair, whether a look has shown it there or what is known of it has just become old.
func TestAnENIThatAnotherInstanceHasByNowIsNotChanged(t *testing.T) {
	for name, traits := range bothKinds() {
		for how, learns := range map[string]func(*testing.T, *engine.Node){
			"by a look": func(t *testing.T, n *engine.Node) { shows(t, n, 1) },
			"by itself": func(*testing.T, *engine.Node) { time.Sleep(9 * time.Minute) },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, traits, sim.Options{}, engine.Options{Times: driver.Times{Poll: 500 * time.Millisecond}})
					n := w.node("i-1")
					shows(t, n, 1)
					i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
					must(t, err)
					time.Sleep(time.Minute)
					shows(t, n, 2)
					must(t, w.Detach(i.ID))
					w.moves(t, i.ID, "i-2")
					learns(t, n)
					if got, err := n.AssignAddresses(t.Context(), i.ID, eni.IPv4, 2); cloud.Kind(err) != cloud.ErrNotFound {
						t.Errorf("AssignAddresses = %v, %v", got, err)
					}
					if got, err := n.AssignExactly(t.Context(), i.ID, []netip.Addr{netip.MustParseAddr("10.0.1.77")}); cloud.Kind(err) != cloud.ErrNotFound {
						t.Errorf("AssignExactly = %v, %v", got, err)
					}
					if err := n.UnassignAddresses(t.Context(), i.ID, i.Addresses[:1]); cloud.Kind(err) != cloud.ErrNotFound {
						t.Errorf("UnassignAddresses: %v", err)
					}
					if got := w.addressesOf(t, i.ID); !slices.Equal(got, i.Addresses) {
						t.Errorf("the ENI had %v and has %v", i.Addresses, got)
					}
					must(t, w.Detach(i.ID))
					w.moves(t, i.ID, "i-1")
					shows(t, n, 2)
					if _, err := n.AssignAddresses(t.Context(), i.ID, eni.IPv4, 2); err != nil {
						t.Errorf("when it is back AssignAddresses: %v", err)
					}
				})
			})
		}
	}
}

// What is put on an ENI that is attached nowhere no pod can use, nor may the next node want it.
func TestAnENIThatIsAttachedNowhereByNowGetsNoAddresses(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{Times: driver.Times{Poll: 500 * time.Millisecond}})
				n := w.node("i-1")
				i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
				must(t, err)
				shows(t, n, 2)
				must(t, w.Detach(i.ID))
				time.Sleep(time.Minute)
				shows(t, n, 2)
				if got, err := n.AssignAddresses(t.Context(), i.ID, eni.IPv4, 2); cloud.Kind(err) != cloud.ErrNotFound {
					t.Errorf("AssignAddresses = %v, %v", got, err)
				}
				must(t, n.UnassignAddresses(t.Context(), i.ID, i.Addresses[:1])) // it is the node's all the same
				if got := w.addressesOf(t, i.ID); !slices.Equal(got, i.Addresses[1:]) {
					t.Errorf("the ENI had %v and has %v", i.Addresses, got)
				}
			})
		})
	}
}
