package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// An earlier process has asked for an ENI that describes do not show yet. That a look of
// this one lacks it tells nothing: neither may a refusal end the intent, nor may it be asked
// for with other counts, which have another token.
func TestWhatAnEarlierProcessBeganMakesNoSecondENI(t *testing.T) {
	request := cloud.Create{Token: "intent", Subnet: "b", V4: 5}
	for what, v := range map[string]struct {
		before, between func(*testing.T, *world)
	}{
		"a refusal": {func(*testing.T, *world) {}, func(_ *testing.T, w *world) {
			w.FailNext(sim.ActCreate, sim.Fault{Err: cloud.ErrLimit})
		}},
		"fewer addresses": {func(t *testing.T, w *world) {
			must(t, w.LeaveFree("b", 3))
			w.FailNext(sim.ActCreate, sim.Fault{})
		}, func(t *testing.T, w *world) { must(t, w.LeaveFree("b", 100)) }},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				o := engine.Options{Subnets: []string{"a", "b"}, Times: driver.Times{Settle: 10 * time.Second}}
				v.before(t, w)
				w.FailNext(sim.ActCreate, sim.Fault{Answer: sim.Lost})
				if _, err := engine.New(w.Driver("i-1", w.traits), o).CreateInterface(t.Context(), request); err == nil {
					t.Fatal("its answer was to be lost")
				}
				later := engine.New(hiding(w.Driver("i-1", w.traits), 9*time.Second), o)
				later.Recall(cloud.Notes{Begun: []string{request.Token}})
				_, err := later.Interfaces(t.Context())
				must(t, err)
				v.between(t, w)
				i, err := later.CreateInterface(t.Context(), request)
				if made := w.truth(); err != nil || len(made) != 1 || made[0].ID != i.ID || len(i.Addresses) != 5 {
					t.Errorf("%d ENIs were made, returned were %+v and %v", len(made), i, err)
				}
			})
		})
	}
}

// An earlier call may have made the ENI. That the cloud lets nobody look, for now, says
// nothing of that, and must not end the intent.
func TestARefusedLookDoesNotEndWhatWasBegun(t *testing.T) {
	request := cloud.Create{Token: "intent", Subnet: "b", V4: 5}
	for _, action := range []string{sim.ActDescribe, sim.ActShape, sim.ActSubnets} {
		for _, who := range []string{"the same process", "a later process"} {
			t.Run(action+"/"+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
					n := w.node("i-1")
					w.FailNext(sim.ActCreate, sim.Fault{Answer: sim.Lost})
					if _, err := n.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
						t.Fatalf("CreateInterface: %v", err)
					}
					if who == "a later process" {
						n = w.node("i-1")
						n.Recall(cloud.Notes{Begun: []string{request.Token}})
					}
					w.SetFaults(sim.Chance{Action: action, Percent: 100, Fault: sim.Fault{Err: cloud.ErrForbidden}})
					if _, err := n.CreateInterface(t.Context(), request); err != nil && !errors.Is(err, cloud.ErrUnknown) {
						t.Errorf("it says that nothing is left: %v", err)
					}
					w.SetFaults()
					i, err := n.CreateInterface(t.Context(), request)
					if made := w.truth(); err != nil || len(made) != 1 || made[0].ID != i.ID {
						t.Errorf("%d ENIs were made, returned were %+v and %v", len(made), i, err)
					}
				})
			})
		}
	}
}

// The earlier process asked for fewer addresses, because the subnet had no more, which nobody has
// written down, and describes lag for longer than Settle.
func TestALongLagAfterFewerAddressesMakesNoSecondENI(t *testing.T) {
	for name, lag := range map[string]time.Duration{"9 s": 9 * time.Second, "15 s": 15 * time.Second, "a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				request := cloud.Create{Token: "intent", Subnet: "b", V4: 5}
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				o := engine.Options{Subnets: []string{"a", "b"}, Times: driver.Times{Settle: 10 * time.Second}}
				must(t, w.LeaveFree("b", 3))
				w.FailNext(sim.ActCreate, sim.Fault{}, sim.Fault{Answer: sim.Lost})
				if _, err := engine.New(w.Driver("i-1", w.traits), o).CreateInterface(t.Context(), request); err == nil {
					t.Fatal("its answer was to be lost")
				}
				later := engine.New(hiding(w.Driver("i-1", w.traits), lag), o)
				later.Recall(cloud.Notes{Begun: []string{request.Token}})
				_, err := later.Interfaces(t.Context())
				must(t, err)
				must(t, w.LeaveFree("b", 100))
				for try := 0; try < 20; try++ {
					if _, err = later.CreateInterface(t.Context(), request); err == nil {
						break
					}
					time.Sleep(10 * time.Second)
				}
				if made := w.truth(); len(made) != 1 {
					t.Errorf("%d ENIs were made; %v", len(made), err)
				}
			})
		})
	}
}

// remembersRefusals takes a token for used by a request that was refused, too.
type remembersRefusals struct {
	driver.Driver
	counts map[string]driver.Count
}

func (d remembersRefusals) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	if before, used := d.counts[c.Token]; used && before != c.V4 {
		return driver.Interface{}, &driver.Error{Kind: cloud.ErrUnknown, Why: cloud.TokenReused}
	}
	d.counts[c.Token] = c.V4
	return d.Driver.Create(ctx, c)
}

// Fewer addresses are asked for with the token of what was refused. Where a cloud takes that for
// used, the ENI comes late, with another token.
func TestFewerAddressesComeWhereARefusedTokenIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		must(t, w.LeaveFree("b", 3))
		n := engine.New(remembersRefusals{w.Driver("i-1", w.traits), map[string]driver.Count{}}, engine.Options{Subnets: []string{"a", "b"}})
		var err error
		for began := time.Now(); time.Since(began) < 3*time.Minute; time.Sleep(10 * time.Second) {
			if _, err = n.CreateInterface(t.Context(), cloud.Create{Token: "intent", Subnet: "b", V4: 5}); err == nil {
				break
			}
		}
		if made := w.truth(); err != nil || len(made) != 1 {
			t.Errorf("%d ENIs were made; %v", len(made), err)
		}
	})
}
