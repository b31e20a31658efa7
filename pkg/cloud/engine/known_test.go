package engine_test

import (
	"context"
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
	"github.com/enipool/enipool/pkg/eni"
)

// lagging is an account whose describes show what was three seconds ago.
func lagging(t *testing.T, traits driver.Traits) *world {
	return newWorld(t, traits, sim.Options{Lag: 3 * time.Second, Seed: 1}, engine.Options{Times: driver.Times{Poll: 500 * time.Millisecond}})
}

// has fails the test unless what the node knows, with and without asking, is that it has the
// addresses on the ENI and not the others; want is nil for no such ENI.
func has(t *testing.T, n *engine.Node, id string, want, not []netip.Addr) {
	t.Helper()
	known := n.Known()
	asked, err := n.Interfaces(t.Context())
	must(t, err)
	for what, list := range map[string][]cloud.Interface{"Known": known, "Interfaces": asked} {
		at := slices.IndexFunc(list, func(i cloud.Interface) bool { return i.ID == id })
		switch {
		case want == nil && at >= 0:
			t.Errorf("%s has ENI %s: %+v", what, id, list[at])
			continue
		case want == nil:
			continue
		case at < 0 || list[at].Index < 1:
			t.Errorf("%s lacks ENI %s, or where it is: %+v", what, id, list)
			continue
		}
		for _, a := range want {
			if !slices.Contains(list[at].Addresses, a) {
				t.Errorf("%s lacks %s: %v", what, a, list[at].Addresses)
			}
		}
		for _, a := range not {
			if slices.Contains(list[at].Addresses, a) {
				t.Errorf("%s has %s", what, a)
			}
		}
	}
}

func TestWhatCallsHaveDoneIsShownAtOnceWhateverLags(t *testing.T) {
	for _, traits := range []driver.Traits{sim.LikeEC2(), sim.LikeBCE()} {
		synctest.Test(t, func(t *testing.T) {
			n := lagging(t, traits).node("i-1")
			_, err := n.Interfaces(t.Context())
			must(t, err)
			i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 2})
			must(t, err)
			has(t, n, i.ID, i.Addresses, nil)
			more, err := n.AssignAddresses(t.Context(), i.ID, eni.IPv4, 2)
			must(t, err)
			has(t, n, i.ID, slices.Concat(i.Addresses, more), nil)
			must(t, n.UnassignAddresses(t.Context(), i.ID, i.Addresses[:1]))
			has(t, n, i.ID, slices.Concat(i.Addresses[1:], more), i.Addresses[:1])
			must(t, n.DeleteInterface(t.Context(), i.ID))
			has(t, n, i.ID, nil, nil)
		})
	}
}

// Two describes make a look, and an ENI that is attached between them is in neither.
func TestKnownKeepsTheOrderOfCreationWhenALookShowsTheYoungerENIAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a"}, Times: driver.Times{Poll: time.Second}})
		var want []string
		for _, token := range []string{"a", "b"} {
			i, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 2})
			must(t, err)
			want = append(want, i.ID)
			time.Sleep(time.Second)
		}
		d.interfaces = func(all []driver.Interface) []driver.Interface {
			return slices.DeleteFunc(all, func(i driver.Interface) bool { return i.ID == want[0] })
		}
		_, err := n.Interfaces(t.Context())
		must(t, err)
		var got []string
		for _, i := range n.Known()[1:] {
			got = append(got, i.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Known returns %v, want %v: in the order of their creation", got, want)
		}
	})
}

func TestALaterProcessKnowsWhatIsGoneByItsNotes(t *testing.T) {
	for _, traits := range []driver.Traits{sim.LikeEC2(), sim.LikeBCE()} {
		synctest.Test(t, func(t *testing.T) {
			w := lagging(t, traits)
			n := w.node("i-1")
			_, err := n.Interfaces(t.Context())
			must(t, err)
			var made []cloud.Interface
			for _, token := range []string{"a", "b"} {
				i, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 2})
				must(t, err)
				made = append(made, i)
			}
			time.Sleep(time.Minute) // describes show them
			stays, goes := made[0], made[1]
			must(t, n.UnassignAddresses(t.Context(), stays.ID, stays.Addresses[:1]))
			must(t, n.DeleteInterface(t.Context(), goes.ID))
			later := w.node("i-1")
			later.Recall(n.Notes())
			has(t, n, stays.ID, stays.Addresses[1:], stays.Addresses[:1])
			list, err := later.Interfaces(t.Context())
			must(t, err)
			if len(list) != 2 || slices.Contains(list[1].Addresses, stays.Addresses[0]) {
				t.Errorf("the later process sees %+v", list)
			}
			time.Sleep(time.Minute)
			if notes := later.Notes(); len(notes.Gone)+len(notes.Deleted) > 0 {
				t.Errorf("a minute later it still notes %+v", notes)
			}
		})
	}
}

// Others may take an ENI that a call has made, and give it back its addresses.
func TestWhatOthersDoLaterIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Times: driver.Times{Poll: 500 * time.Millisecond}})
		n := w.node("i-1")
		i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 2})
		must(t, err)
		time.Sleep(time.Minute)
		must(t, w.Detach(i.ID))
		list, err := n.Interfaces(t.Context())
		must(t, err)
		if len(list) != 2 || list[1].Index != -1 {
			t.Errorf("an ENI that others have detached is shown as %+v", list)
		}
	})
}

// lateAnswers is a driver whose Unassign returns a second after it was done.
type lateAnswers struct{ driver.Driver }

func (d lateAnswers) Unassign(ctx context.Context, u driver.Unassign) error {
	err := d.Driver.Unassign(ctx, u)
	time.Sleep(time.Second)
	return err
}

// The cloud may give an address to another ENI before the answer comes that it was taken.
func TestAnAddressIsOnTheENIThatItWasPutOnLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Times: driver.Times{Poll: 500 * time.Millisecond}})
		n := engine.New(lateAnswers{w.Driver("i-1", w.traits)}, engine.Options{Subnets: []string{"a"}})
		i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 4})
		must(t, err)
		list, err := n.Interfaces(t.Context())
		must(t, err)
		done := make(chan error, 1)
		must(t, w.LeaveFree("a", 0)) // the next address is the one that comes free now
		moved := i.Addresses[:1]
		go func() { done <- n.UnassignAddresses(t.Context(), i.ID, moved) }()
		time.Sleep(500 * time.Millisecond)
		got, err := n.AssignAddresses(t.Context(), list[0].ID, eni.IPv4, 1)
		must(t, err)
		if !slices.Equal(got, moved) {
			t.Fatalf("the cloud gave %v in place of %v", got, moved)
		}
		has(t, n, i.ID, i.Addresses[1:], moved)
		must(t, <-done)
		has(t, n, i.ID, i.Addresses[1:], moved)
	})
}

// What a call has made is no answer to a describe that shows it as what can't be.
func TestAnENIJustMadeThatDescribesShowWrongIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a"}})
		made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 2})
		must(t, err)
		d.interfaces = func(all []driver.Interface) []driver.Interface {
			for i := range all {
				if all[i].ID == made.ID {
					all[i].MAC = "none"
				}
			}
			return all
		}
		list, err := n.Interfaces(t.Context())
		if q := n.Quarantined(); err != nil || len(list) != 1 || len(q) != 1 || q[0].ID != made.ID {
			t.Errorf("shown are %+v, %v, left out %+v", list, err, q)
		}
	})
}

// A release of several requests is repeated as a whole, and what it asks for again may stay without
// an answer. It was taken all the same.
func TestWhatWasTakenIsGoneWhateverARepeatedReleaseTells(t *testing.T) {
	for _, traits := range []driver.Traits{sim.LikeEC2(), sim.LikeBCE()} {
		synctest.Test(t, func(t *testing.T) {
			w := lagging(t, traits)
			n := w.node("i-1")
			i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
			must(t, err)
			time.Sleep(time.Minute) // describes show them
			_, err = n.Interfaces(t.Context())
			must(t, err)
			must(t, n.UnassignAddresses(t.Context(), i.ID, i.Addresses[:1]))
			w.FailNext(sim.ActUnassign, sim.Fault{Answer: sim.Lost})
			if err := n.UnassignAddresses(t.Context(), i.ID, i.Addresses[:2]); !errors.Is(err, cloud.ErrUnknown) {
				t.Fatalf("UnassignAddresses: %v", err)
			}
			has(t, n, i.ID, i.Addresses[2:], i.Addresses[:1])
		})
	}
}

// What an earlier release noted as gone is noted for any ENI. What a call of this one puts there since is there.
func TestWhatIsPutOnAnENISinceAnEarlierReleaseGaveItBackIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{Reuse: sim.ReuseLatest}, engine.Options{})
		before := w.node("i-1")
		made, err := before.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 2})
		must(t, err)
		gone := made.Addresses[:1]
		must(t, before.UnassignAddresses(t.Context(), made.ID, gone))
		n := w.node("i-1")
		n.Recall(cloud.Notes{Gone: map[string][]netip.Addr{"": gone}})
		_, err = n.Interfaces(t.Context())
		must(t, err)
		got, err := n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 1)
		must(t, err)
		if !slices.Equal(got, gone) {
			t.Fatalf("%v are given, not %v: the test shows nothing", got, gone)
		}
		has(t, n, made.ID, got, nil)
	})
}
