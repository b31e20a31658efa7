package engine_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// The node may not describe its own type.
func TestAForeignENIOnAFurtherCardDoesNotBlindTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		w.third(t, sim.Type{Name: "two-cards", ENIs: 4, Cards: []int{2, 2}, V4: 8})
		n := engine.New(&edited{Driver: w.Driver("i-3", w.traits), shape: func(s driver.Shape) driver.Shape {
			s.ENIs, s.Cards, s.Builtin = 2, nil, errors.New("UnauthorizedOperation")
			return s
		}}, engine.Options{Subnets: []string{"a"}})
		shows(t, n, 1)
		must(t, w.Update(func(tx *sim.Tx) error {
			made, err := tx.Create(sim.Create{Subnet: "a"})
			if err != nil {
				return err
			}
			_, err = tx.Attach(sim.Attach{Interface: made.ID, Instance: "i-3", Index: 1, Card: 1})
			return err
		}))
		for range 3 {
			if list, err := n.Interfaces(t.Context()); err != nil || len(list) == 0 {
				t.Errorf("with another's ENI on card 1 Interfaces returns %d, %v", len(list), err)
			}
			time.Sleep(time.Hour)
		}
	})
}

// Two VPCs may have the same range.
func TestAForeignENIOfAnotherVPCDoesNotTakeOursAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a"}})
		i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
		must(t, err)
		d.subnets = func(all []driver.Subnet) []driver.Subnet {
			far, err := w.Driver("i-1", w.traits).Subnets(t.Context(), driver.SubnetFilter{IDs: []string{"a"}})
			must(t, err)
			far[0].ID, far[0].VPC = "far", "vpc-2"
			return append(all, far[0])
		}
		d.interfaces = func(all []driver.Interface) []driver.Interface {
			for _, k := range all {
				if k.ID == i.ID {
					k.ID, k.MAC, k.Subnet, k.VPC, k.Mark, k.Singles, k.Index, k.Attachment = "eni-far", "02:00:00:00:00:99", "far", "vpc-2", driver.Mark{}, nil, 3, "at-far"
					all = append(all, k)
				}
			}
			return all
		}
		list, err := n.Interfaces(t.Context())
		if err != nil || !slices.ContainsFunc(list, func(k cloud.Interface) bool { return k.ID == i.ID }) {
			t.Errorf("ENI %s is not shown: %v, %v", i.ID, n.Quarantined(), err)
		}
	})
}

// A device index of the first card that it does not have is one of ours on the second.
func TestAForeignENIAtAHighIndexTakesNoneOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		w.third(t, sim.Type{Name: "two-cards", ENIs: 6, Cards: []int{3, 3}, V4: 8})
		n := w.node("i-3")
		var ids []string
		for _, token := range []string{"a", "b", "c"} {
			i, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 1})
			must(t, err)
			ids = append(ids, i.ID)
		}
		must(t, n.DeleteInterface(t.Context(), ids[1])) // of the first card
		must(t, w.Update(func(tx *sim.Tx) error {
			made, err := tx.Create(sim.Create{Subnet: "a"})
			if err != nil {
				return err
			}
			_, err = tx.Attach(sim.Attach{Interface: made.ID, Instance: "i-3", Index: 4})
			return err
		}))
		time.Sleep(time.Minute)
		list, err := n.Interfaces(t.Context())
		if err != nil || !slices.ContainsFunc(list, func(i cloud.Interface) bool { return i.ID == ids[2] }) {
			t.Errorf("ENI %s is not shown: %v, %v", ids[2], n.Quarantined(), err)
		}
	})
}
