package engine_test

import (
	"context"
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

// oneSlowly is a driver whose describes of single ENIs take their time: they show what was when
// they were asked for.
type oneSlowly struct {
	driver.Driver
	takes time.Duration
}

func (d *oneSlowly) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	all, err := d.Driver.Interfaces(ctx, f)
	if len(f.IDs) > 0 {
		time.Sleep(d.takes)
	}
	return all, err
}

// crossed makes a node with an ENI whose describes of single ENIs are slow from now on, after what
// was known of the ENI has become too old to go by.
func crossed(t *testing.T, traits driver.Traits) (*world, *engine.Node, cloud.Interface) {
	w := newWorld(t, traits, sim.Options{}, engine.Options{})
	w.AddGroup(sim.Group{ID: "sg-1", Name: "sg-1"})
	w.AddGroup(sim.Group{ID: "sg-2", Name: "sg-2"})
	d := &oneSlowly{Driver: w.Driver("i-1", w.traits)}
	n := engine.New(d, engine.Options{Subnets: []string{"a"}, SecurityGroups: []string{"sg-1"}, Times: driver.Times{Settle: 10 * time.Second}})
	made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
	must(t, err)
	time.Sleep(9 * time.Minute)
	d.takes = 20 * time.Second
	return w, n, made
}

// Of two describes the one that was asked for last tells which groups an ENI has, whichever
// answers last.
func TestUpkeepGoesByALookThatASlowDescribeOfOneENIOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, made := crossed(t, sim.LikeEC2())
		assigned := make(chan error)
		go func() {
			_, err := n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 1)
			assigned <- err
		}()
		time.Sleep(time.Second)
		synctest.Wait() // it has its answer, which is on its way
		must(t, w.Update(func(tx *sim.Tx) error { return tx.Modify(made.ID, sim.Edit{Groups: []string{"sg-2"}}) }))
		shows(t, n, 2)
		must(t, <-assigned)
		changed, err := n.Upkeep(t.Context())
		if err != nil || !slices.Equal(changed, []string{made.ID}) {
			t.Errorf("Upkeep changed %v, %v", changed, err)
		}
	})
}

// An ENI that was at another instance when a slow describe was asked for, and has come back since,
// gets addresses.
func TestAnENIThatCameBackWhileASlowDescribeRanIsHere(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n, made := crossed(t, traits)
				must(t, w.Detach(made.ID))
				w.moves(t, made.ID, "i-2")
				assigned := make(chan error)
				go func() {
					_, err := n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 1)
					assigned <- err
				}()
				time.Sleep(time.Second)
				synctest.Wait() // it has its answer, which is on its way
				must(t, w.Detach(made.ID))
				w.moves(t, made.ID, "i-1")
				shows(t, n, 2)
				if err := <-assigned; cloud.Kind(err) == cloud.ErrNotFound {
					t.Errorf("AssignAddresses: %v", err)
				}
			})
		})
	}
}
