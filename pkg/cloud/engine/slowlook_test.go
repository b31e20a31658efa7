package engine_test

import (
	"context"
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

// slowly is how a driver answers describes: what was when they were asked for, so much later.
func slowly(takes time.Duration) func([]driver.Interface) []driver.Interface {
	return func(all []driver.Interface) []driver.Interface {
		time.Sleep(takes)
		return all
	}
}

// A describe that takes longer than answers lag shows what was when it was asked for: it is not
// newer than a call that was made while it ran.
func TestACallWhileADescribeRunsCountsHoweverLongTheDescribeTakes(t *testing.T) {
	for _, traits := range []driver.Traits{sim.LikeEC2(), sim.LikeBCE()} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, traits, sim.Options{}, engine.Options{})
			d := &edited{Driver: w.Driver("i-1", w.traits)}
			n := engine.New(d, engine.Options{Subnets: []string{"a"}, Times: driver.Times{Settle: 10 * time.Second}})
			grown, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
			must(t, err)
			goes, err := n.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 1})
			must(t, err)
			time.Sleep(time.Minute)
			shows(t, n, 3)
			d.interfaces = slowly(20 * time.Second)
			look := make(chan error)
			go func() {
				_, err := n.Interfaces(t.Context())
				look <- err
			}()
			time.Sleep(time.Second)
			synctest.Wait() // it has its answer, which is on its way
			more, err := n.AssignAddresses(t.Context(), grown.ID, eni.IPv4, 2)
			must(t, err)
			must(t, n.UnassignAddresses(t.Context(), grown.ID, grown.Addresses[:1]))
			d.interfaces = nil
			must(t, n.DeleteInterface(t.Context(), goes.ID))
			must(t, <-look)
			checkHas(t, n.Known(), grown.ID, slices.Concat(grown.Addresses[1:], more))
			if len(n.Known()) != 2 || len(n.Quarantined()) > 0 {
				t.Errorf("known are %+v, left out %+v", n.Known(), n.Quarantined())
			}
		})
	}
}

// checkHas fails the test unless the ENI has just these addresses.
func checkHas(t *testing.T, list []cloud.Interface, id string, want []netip.Addr) {
	t.Helper()
	at := slices.IndexFunc(list, func(i cloud.Interface) bool { return i.ID == id })
	if at < 0 {
		t.Fatalf("ENI %s is not known: %+v", id, list)
	}
	slices.SortFunc(want, netip.Addr.Compare)
	if !slices.Equal(list[at].Addresses, want) {
		t.Errorf("it has %v, not %v", list[at].Addresses, want)
	}
}

// The cloud gives what one ENI loses to another while a describe runs, which shows it at the first.
func TestAnAddressThatMovesWhileASlowDescribeRunsIsWhereACallPutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a"}, Times: driver.Times{Settle: 10 * time.Second}})
		var made []cloud.Interface
		for _, token := range []string{"a", "b"} {
			i, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 2})
			must(t, err)
			made = append(made, i)
		}
		time.Sleep(time.Minute)
		shows(t, n, 3)
		must(t, w.LeaveFree("a", 0)) // the next address is the one that comes free now
		d.interfaces = slowly(20 * time.Second)
		look := make(chan error)
		go func() {
			_, err := n.Interfaces(t.Context())
			look <- err
		}()
		time.Sleep(time.Second)
		synctest.Wait() // it has its answer, which is on its way
		moved := made[0].Addresses[:1]
		must(t, n.UnassignAddresses(t.Context(), made[0].ID, moved))
		got, err := n.AssignAddresses(t.Context(), made[1].ID, eni.IPv4, 1)
		must(t, err)
		if !slices.Equal(got, moved) {
			t.Fatalf("the cloud gave %v in place of %v", got, moved)
		}
		must(t, <-look)
		checkHas(t, n.Known(), made[0].ID, made[0].Addresses[1:])
		checkHas(t, n.Known(), made[1].ID, slices.Concat(made[1].Addresses, moved))
	})
}

// slowLists is a driver that answers a list of reservations as it was when asked for, late.
type slowLists struct {
	driver.Driver
	takes *time.Duration
}

func (d slowLists) Reservations(ctx context.Context, subnet string) ([]driver.Reservation, error) {
	list, err := d.Driver.Reservations(ctx, subnet)
	time.Sleep(*d.takes)
	return list, err
}

// The same holds for reservations.
func TestAReservationMadeWhileASlowListRunsIsReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		var takes time.Duration
		r := engine.NewRegion(slowLists{w.Driver("i-1", w.traits), &takes}, engine.Options{Cluster: "one", Times: driver.Times{Settle: 10 * time.Second}})
		takes = 20 * time.Second
		type answer struct {
			list []cloud.Reservation
			err  error
		}
		asked := make(chan answer)
		go func() {
			list, err := r.Reserved(t.Context(), "a")
			asked <- answer{list, err}
		}()
		time.Sleep(time.Second)
		synctest.Wait() // it has its answer, which is on its way
		takes = 0
		in := netip.MustParsePrefix("10.0.0.128/28")
		must(t, r.Reserve(t.Context(), "a", in))
		if got := <-asked; got.err != nil || !slices.ContainsFunc(got.list, func(is cloud.Reservation) bool { return is.Range == in }) {
			t.Errorf("reserved are %+v, %v", got.list, got.err)
		}
	})
}
