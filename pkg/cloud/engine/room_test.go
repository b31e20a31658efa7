package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// The cloud counts all that is attached, whatever enipool makes of it: an ENI that is planned
// on top would be refused for ever.
func TestAnAttachedENIThatIsLeftOutTakesRoom(t *testing.T) {
	for why, spoil := range map[string]func(*driver.Interface){
		"what is told of it can't be right": func(i *driver.Interface) { i.MAC = "none" },
		"no subnet of it is shown":          func(i *driver.Interface) { i.Subnet = "far" },
		"it is in the way":                  func(i *driver.Interface) { i.VPC = "vpc-2" },
		"it is on its way":                  func(i *driver.Interface) { i.State = driver.Attaching },
		"nobody tells where it is":          func(i *driver.Interface) { i.Instance, i.Wrong = "", "it is inuse at instance \"\"" },
	} {
		for name, traits := range bothKinds() {
			t.Run(why+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, traits, sim.Options{}, engine.Options{})
					foreign := w.byHand(t, "i-1", "b")
					d := &edited{Driver: w.Driver("i-1", w.traits), interfaces: func(all []driver.Interface) []driver.Interface {
						for k := range all {
							if all[k].ID == foreign {
								spoil(&all[k])
							}
						}
						return all
					}}
					n := engine.New(d, engine.Options{Subnets: []string{"a"}})
					limits, err := n.Limits(t.Context())
					must(t, err)
					if limits.ENIs != 3 {
						t.Fatalf("beside it there is room for %d ENIs, want 3", limits.ENIs)
					}
					for _, token := range []string{"a", "b"} {
						_, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 1})
						must(t, err)
					}
					shows(t, n, 3)
					must(t, w.Update(func(tx *sim.Tx) error {
						i, err := tx.Interface(foreign)
						if err != nil {
							return err
						}
						_, err = tx.Detach(i.Attachment.ID, false)
						return err
					}))
					shows(t, n, 3)
					if l := n.LimitsNow(); l.ENIs != 4 {
						t.Errorf("when it is gone there is room for %d ENIs, want 4", l.ENIs)
					}
				})
			})
		}
	}
}

// What cloud.maxENIs names is in place of what the cloud says of the instance.
func TestAnAttachedENIThatIsLeftOutTakesRoomOfWhatIsConfigured(t *testing.T) {
	for configured, want := range map[int]int{2: 2, 3: 3, 4: 3, 6: 5} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
			w.unmanaged(t, "i-1", sim.Attach{Index: -1})
			n := engine.New(w.Driver("i-1", w.traits), engine.Options{Limits: eni.Limits{ENIs: configured}})
			if l, err := n.Limits(t.Context()); err != nil || l.ENIs != want {
				t.Errorf("of %d configured ENIs there are %d, %v; want %d", configured, l.ENIs, err, want)
			}
		})
	}
}

// The ENI of the intent is attached, and one look says of it what can't be right. It takes no room
// of others then: the call that is to finish it would find that there is none for it.
func TestAnENIThatIsLeftOutTakesNoRoomOfItsOwnIntent(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{})
				w.third(t, sim.Type{Name: "two", ENIs: 2, V4: 8})
				d := &edited{Driver: w.Driver("i-3", w.traits)}
				n := engine.New(d, engine.Options{Subnets: []string{"a", "b"}})
				shows(t, n, 1)
				request := cloud.Create{Token: "intent", Subnet: "b", V4: 5}
				w.inject("CreateInterface", cloudtest.LostAfterEffect)
				if _, err := n.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
					t.Fatalf("CreateInterface: %v", err)
				}
				d.interfaces = withoutMACs
				shows(t, n, 1)
				d.interfaces = nil
				if l := n.LimitsNow(); l.ENIs != 2 {
					t.Errorf("beside the one that is being made there is room for %d ENIs, want 2", l.ENIs)
				}
				i, err := n.CreateInterface(t.Context(), request)
				if made := w.truth(); err != nil || len(made) != 1 || made[0].ID != i.ID {
					t.Errorf("of %+v the call makes %+v, %v", made, i, err)
				}
			})
		})
	}
}

// Options.Limits may name more ENIs than the cloud tells of, or enipool's own table where the cloud may
// not be asked. Limits say so, too, and then each of them has to get a place.
func TestENIsBeyondWhatTheShapeTellsGetPlaces(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{})
				w.third(t, sim.Type{Name: "six", ENIs: 6, V4: 8})
				n := engine.New(&edited{Driver: w.Driver("i-3", w.traits), shape: func(s driver.Shape) driver.Shape {
					s.ENIs, s.Builtin = 4, errors.New("UnauthorizedOperation")
					return s
				}}, engine.Options{Subnets: []string{"a"}, Limits: eni.Limits{ENIs: 6}})
				l, err := n.Limits(t.Context())
				must(t, err)
				shows(t, n, 1)
				for made := 1; made < l.ENIs; made++ {
					if _, err := n.CreateInterface(t.Context(), cloud.Create{Token: string(rune('a' + made)), Subnet: "a", V4: 1}); err != nil {
						t.Errorf("ENI %d of %d: %v; %d were made and deleted for it", made+1, l.ENIs, err, w.Calls()[sim.ActDelete])
					}
				}
			})
		})
	}
}

// Where the network cards are known each ENI has an index that the cards before it leave: more than
// the cards take would have the indexes of others.
func TestNoMoreENIsAreConfiguredThanTheCardsTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		w.third(t, sim.Type{Name: "cards", ENIs: 4, Cards: []int{2, 2}, V4: 8})
		n := engine.New(w.Driver("i-3", w.traits), engine.Options{Subnets: []string{"a"}, Limits: eni.Limits{ENIs: 6}})
		if l, err := n.Limits(t.Context()); err != nil || l.ENIs != 4 {
			t.Errorf("with 6 configured ENIs for cards that take 4 there are %d, %v", l.ENIs, err)
		}
	})
}

// A p5.48xlarge with its EFAs, and a role that may not ask for instance types: the built-in table
// (conf/aws/types.yaml: 2 ENIs) knows its first network card alone. What is on the others takes no
// room there.
func TestWhatIsOnCardsThatTheTableDoesNotKnowTakesNoRoomOfTheFirst(t *testing.T) {
	for name, more := range map[string]func(*testing.T, *world, int){
		"EFAs": func(t *testing.T, w *world, card int) { w.unmanaged(t, "i-3", sim.Attach{Card: card, Index: 1}) },
		"others' ENIs": func(t *testing.T, w *world, card int) {
			must(t, w.Update(func(tx *sim.Tx) error {
				made, err := tx.Create(sim.Create{Subnet: "a"})
				if err == nil {
					_, err = tx.Attach(sim.Attach{Interface: made.ID, Instance: "i-3", Card: card, Index: 1})
				}
				return err
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				w.third(t, sim.Type{Name: "p5", ENIs: 8, Cards: []int{2, 2, 2, 2}, V4: 8})
				for card := 1; card < 4; card++ {
					more(t, w, card)
				}
				n := engine.New(&edited{Driver: w.Driver("i-3", w.traits), shape: func(s driver.Shape) driver.Shape {
					s.ENIs, s.Cards, s.Builtin = 2, nil, errors.New("UnauthorizedOperation")
					return s
				}}, engine.Options{Subnets: []string{"a"}})
				l, err := n.Limits(t.Context())
				must(t, err)
				if l.ENIs != 2 {
					t.Errorf("the first card has room for 2 ENIs, and Limits tell of %d", l.ENIs)
				}
				if _, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 1}); err != nil {
					t.Errorf("pods get no ENI: %v", err)
				}
			})
		})
	}
}

// More ENIs are configured than the table knows, and all of them have their places on the first
// card: what is on the others takes no room there either.
func TestWhatIsOnOtherCardsTakesNoRoomOfWhatIsConfiguredForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		w.third(t, sim.Type{Name: "cards", ENIs: 12, Cards: []int{3, 3, 3, 3}, V4: 8})
		for card := 1; card < 4; card++ {
			w.unmanaged(t, "i-3", sim.Attach{Card: card, Index: 1})
		}
		n := engine.New(&edited{Driver: w.Driver("i-3", w.traits), shape: func(s driver.Shape) driver.Shape {
			s.ENIs, s.Cards, s.Builtin = 2, nil, errors.New("UnauthorizedOperation")
			return s
		}}, engine.Options{Subnets: []string{"a"}, Limits: eni.Limits{ENIs: 3}})
		l, err := n.Limits(t.Context())
		must(t, err)
		if l.ENIs != 3 {
			t.Errorf("3 ENIs are configured for the first card, and Limits tell of %d", l.ENIs)
		}
		for _, token := range []string{"a", "b"} {
			if _, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 1}); err != nil {
				t.Errorf("pods get no ENI: %v", err)
			}
		}
	})
}
