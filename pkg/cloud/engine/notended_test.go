package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// An earlier process has made the ENI and its answer is lost. What this one refuses before it has
// looked for the ENI must not be final: the agent would end the intent, and make a second ENI.
func TestWhatIsRefusedBeforeALookDoesNotEndWhatWasBegun(t *testing.T) {
	request := cloud.Create{Token: "intent", Subnet: "b", V4: 5}
	for what, later := range map[string]struct {
		edit func(*edited)
		o    engine.Options
	}{
		"the limit of addresses is lower now": {func(*edited) {}, engine.Options{Limits: eni.Limits{V4: 4}}},
		"the limit of ENIs is lower now":      {func(*edited) {}, engine.Options{Limits: eni.Limits{ENIs: 1}}},
		"the subnet is not shown": {func(d *edited) {
			d.subnets = func(all []driver.Subnet) (out []driver.Subnet) {
				for _, s := range all {
					if s.ID != "b" {
						out = append(out, s)
					}
				}
				return out
			}
		}, engine.Options{}},
		"what is told of the subnet is wrong": {func(d *edited) {
			d.subnets = func(all []driver.Subnet) []driver.Subnet {
				for k := range all {
					if all[k].ID == "b" {
						all[k].Wrong = "its range is \"\""
					}
				}
				return all
			}
		}, engine.Options{}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				w.FailNext(sim.ActCreate, sim.Fault{Answer: sim.Lost})
				if _, err := w.node("i-1").CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
					t.Fatalf("CreateInterface: %v", err)
				}
				d := &edited{Driver: w.Driver("i-1", w.traits)}
				later.edit(d)
				o := later.o
				o.Subnets = []string{"a"}
				o.Times = driver.Times{Settle: 20 * time.Millisecond}
				n := engine.New(d, o)
				n.Recall(cloud.Notes{Begun: []string{request.Token}})
				_, err := n.CreateInterface(t.Context(), request)
				if made := w.truth(); err != nil && !errors.Is(err, cloud.ErrUnknown) && len(made) > 0 {
					t.Errorf("there is ENI %s with the token, and the call says that nothing is: %v", made[0].ID, err)
				}
			})
		})
	}
}

// One answer about an ENI that a lost call has made is wrong. The call that finds it must not say
// that nothing happened.
func TestOneWrongAnswerDoesNotEndWhatWasBegun(t *testing.T) {
	request := cloud.Create{Token: "intent", Subnet: "b", V4: 5}
	for what, spoil := range map[string]func(*driver.Interface){
		"no MAC yet":               func(i *driver.Interface) { i.MAC = "" },
		"an attachment told wrong": func(i *driver.Interface) { i.Wrong = "it is inuse at instance \"\"" },
		"no subnet yet":            func(i *driver.Interface) { i.Subnet = "" },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				d := &edited{Driver: w.Driver("i-1", w.traits)}
				n := engine.New(d, engine.Options{Subnets: []string{"a", "b"}})
				shows(t, n, 1)
				w.FailNext(sim.ActCreate, sim.Fault{Answer: sim.Lost})
				if _, err := n.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
					t.Fatalf("CreateInterface: %v", err)
				}
				d.interfaces = func(all []driver.Interface) []driver.Interface {
					for k := range all {
						if !all[k].Primary {
							spoil(&all[k])
						}
					}
					return all
				}
				_, err := n.CreateInterface(t.Context(), request)
				d.interfaces = nil
				if made := w.truth(); err != nil && !errors.Is(err, cloud.ErrUnknown) && len(made) > 0 {
					t.Errorf("there is ENI %s with the token, and the call says that nothing is: %v", made[0].ID, err)
					next := request
					next.Token = "next-intent"
					_, err := n.CreateInterface(t.Context(), next)
					t.Errorf("the agent's next intent: %v, and there are %d ENIs", err, len(w.truth()))
				}
			})
		})
	}
}

// All was done, and the answer is lost. What is lower now is no reason to ask for ever: until the
// call ends, the agent puts the ENI to no use.
func TestWhatWasDoneUnderHigherLimitsIsMade(t *testing.T) {
	request := cloud.Create{Token: "intent", Subnet: "b", V4: 5}
	for what, limits := range map[string]eni.Limits{"addresses": {V4: 4}, "ENIs": {ENIs: 1}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				before, err := w.node("i-1").CreateInterface(t.Context(), request)
				must(t, err)
				n := engine.New(w.Driver("i-1", w.traits), engine.Options{Subnets: []string{"a"}, Limits: limits})
				n.Recall(cloud.Notes{Begun: []string{request.Token}})
				made, err := n.CreateInterface(t.Context(), request)
				if err != nil || made.ID != before.ID || len(made.Addresses) != request.V4 {
					t.Errorf("of %+v the call makes %+v, %v", before, made, err)
				}
			})
		})
	}
}
