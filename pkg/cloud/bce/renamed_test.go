package bce

import (
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// rename gives an ENI another name, as a person does in the console.
func (s *site) rename(t *testing.T, id string) {
	t.Helper()
	name := "db-backup"
	must(t, s.Update(func(tx *sim.Tx) error { return tx.Modify(id, sim.Edit{Name: &name}) }))
}

// Lists take a name and no description. Attached ENIs are found by their instance whatever
// their name; one that is attached nowhere has to be known by its ID.
func TestAnENIThatIsRenamedIsFoundWhenItIsAttachedNowhere(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	// Describes are believed at once against the call that has made it.
	o := engine.Options{Cluster: "blue", Times: driver.Times{Settle: 1}}
	n, _ := s.open(t, "i-n1", o)
	i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
	must(t, err)
	s.rename(t, i.ID)
	shows := func(who string, n *engine.Node, index int) {
		t.Helper()
		list, err := n.Interfaces(t.Context())
		must(t, err)
		if at := slices.IndexFunc(list, func(k cloud.Interface) bool { return k.ID == i.ID && k.Ours && k.Index == index }); at < 0 {
			t.Errorf("%s is not shown it at index %d: %+v", who, index, list)
		}
	}
	shows("who has made it", n, 1)
	later, _ := s.open(t, "i-n1", o)
	shows("a later process", later, 1)
	must(t, s.Detach(i.ID))
	for range 2 {
		shows("who has made it", n, -1)
		shows("a later process", later, -1)
	}
	last, _ := s.open(t, "i-n1", o)
	_, err = last.Interfaces(t.Context())
	must(t, err)
	if deleted, err := last.Sweep(t.Context(), time.Hour); err != nil || len(deleted) > 0 {
		t.Errorf("Sweep = %v, %v", deleted, err)
	}
	shows("a process that began when it was there, after its sweep", last, -1)
	must(t, last.DeleteInterface(t.Context(), i.ID))
	for range 2 {
		if list, err := n.Interfaces(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("when it is deleted there are %+v, %v", list, err)
		}
	}
}
