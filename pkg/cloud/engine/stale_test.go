package engine_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// withStale adds an older ENI at the same device index, changed, to each answer that shows the
// one with the token attached among others.
func withStale(token string, change func(*driver.Interface)) func([]driver.Interface) []driver.Interface {
	return func(all []driver.Interface) []driver.Interface {
		at := slices.IndexFunc(all, func(i driver.Interface) bool { return i.Mark.Token == token && i.State == driver.Attached })
		if at < 0 || len(all) == 1 {
			return all
		}
		old := all[at]
		old.ID, old.MAC, old.Mark.Token, old.Attachment = "eni-stale", "02:00:00:00:00:99", "stale", "attach-stale"
		old.Created, old.V4, old.Singles = old.Created.Add(-time.Minute), netip.MustParseAddr("10.0.1.99"), nil
		change(&old)
		return append(slices.Clone(all), old)
	}
}

// An earlier process has lost the answer to a deletion, and describes show what was: a call of
// this one that has succeeded since is better evidence. When they have had their time, and
// still show both, nobody can tell which is right.
func TestAnENIThatACallHasMadeStandsAgainstOneThatAnswersStillShow(t *testing.T) {
	for what, change := range map[string]func(*driver.Interface, cloud.Interface){
		"at its index":             func(old *driver.Interface, _ cloud.Interface) {},
		"with its primary address": func(old *driver.Interface, made cloud.Interface) { old.Index, old.V4 = 3, made.V4.Primary.Addr() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				d := &edited{Driver: w.Driver("i-1", w.traits)}
				n := engine.New(d, engine.Options{Subnets: []string{"a"}, Times: driver.Times{Settle: 10 * time.Second}})
				shows(t, n, 1)
				made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 2})
				must(t, err)
				d.interfaces = withStale("a", func(old *driver.Interface) { change(old, made) })
				time.Sleep(time.Second)
				has(t, n, made.ID, made.Addresses, nil)
				has(t, n, "eni-stale", nil, nil)
				if q := n.Quarantined(); len(q) != 1 || q[0].ID != "eni-stale" {
					t.Errorf("left out: %+v", q)
				}
				time.Sleep(time.Minute)
				shows(t, n, 1)
			})
		})
	}
}

// What a look has shown before a call made an ENI ready is no reason to leave it out.
func TestAnENIThatWasLeftOutBeforeACallMadeItReadyIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a"}, Times: driver.Times{Settle: 10 * time.Second}})
		shows(t, n, 1)
		request := cloud.Create{Token: "a", Subnet: "a", V4: 2}
		w.FailNext(sim.ActModify, sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}) // the last step
		if _, err := n.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
			t.Fatalf("CreateInterface: %v", err)
		}
		d.interfaces = withStale("a", func(*driver.Interface) {})
		shows(t, n, 1)
		d.interfaces = nil
		time.Sleep(time.Second)
		made, err := n.CreateInterface(t.Context(), request)
		must(t, err)
		has(t, n, made.ID, made.Addresses, nil)
	})
}
