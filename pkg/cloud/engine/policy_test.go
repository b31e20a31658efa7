package engine_test

import (
	"context"
	"errors"
	"fmt"
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

// forbidden makes the next calls of an action fail for good.
func (w *world) forbidden(action string, calls int) {
	for range calls {
		w.FailNext(action, sim.Fault{Err: &sim.Error{Reason: sim.Forbidden}})
	}
}

// An ENI that was ready once may have pods, whatever a later call with its token is
// refused, and however old a state describes show.
func TestAnENIThatPodsMayUseIsNeverUndone(t *testing.T) {
	for name, v := range steps() {
		for _, refused := range append(v.actions[1:], "all") {
			for _, lag := range []time.Duration{0, 5 * time.Second} {
				for _, who := range []string{"the same process", "a later process"} {
					t.Run(fmt.Sprintf("%s/%s/lag %s/%s", name, refused, lag, who), func(t *testing.T) {
						for seed := range uint64(20) {
							synctest.Test(t, func(t *testing.T) {
								w := newWorld(t, v.traits, sim.Options{Lag: lag, Seed: seed}, v.e)
								first, c := w.node("i-1"), w.newENI()
								i, err := first.CreateInterface(t.Context(), c)
								must(t, err)
								time.Sleep(time.Duration(seed) * 200 * time.Millisecond)
								for _, action := range v.actions[1:] {
									if refused == action || refused == "all" {
										w.forbidden(action, 1)
									}
								}
								w.staysFor(t, w.later(first)[who](), c, i)
							})
						}
					})
				}
			}
		}
	}
}

// staysFor fails the test if another call with the ENI's token, of which a step is refused,
// leaves less of it.
func (w *world) staysFor(t *testing.T, n *engine.Node, c cloud.Create, i cloud.Interface) {
	t.Helper()
	again, err := n.CreateInterface(t.Context(), c)
	if err == nil && again.ID != i.ID || err != nil && !errors.Is(err, cloud.ErrUnknown) {
		t.Errorf("the call for ENI %s returned %s, %v", i.ID, again.ID, err)
	}
	if made := w.truth(); len(made) != 1 || made[0].ID != i.ID || made[0].Status != sim.InUse {
		t.Errorf("of ENI %s, which pods may use, there is left %+v after %v", i.ID, made, err)
	}
}

func TestAnENIThatIsAttachedAgainIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		n, c := w.node("i-1"), w.newENI()
		i, err := n.CreateInterface(t.Context(), c)
		must(t, err)
		must(t, w.Detach(i.ID)) // behind the node's back
		w.forbidden(sim.ActModify, 1)
		w.staysFor(t, n, c, i)
	})
}

// What pods have never had is undone, so that the error is the whole truth.
func TestAnENIThatNoPodCanHaveIsUndone(t *testing.T) {
	for name, v := range steps() {
		for _, action := range v.actions[1:] {
			t.Run(name+"/"+action, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, v.traits, sim.Options{AttachTime: time.Second, DetachTime: time.Second}, v.e)
					w.forbidden(action, 1)
					_, err := w.node("i-1").CreateInterface(t.Context(), w.newENI())
					if !errors.Is(err, cloud.ErrForbidden) || len(w.truth()) > 0 {
						t.Errorf("after %v there is left %+v", err, w.truth())
					}
				})
			})
		}
	}
}

// unmanaged attaches an ENI of another service to the instance.
func (w *world) unmanaged(t *testing.T, instance string, at sim.Attach) {
	t.Helper()
	must(t, w.Update(func(tx *sim.Tx) error {
		i, err := tx.Create(sim.Create{Subnet: "a", Requester: "efa"})
		if err == nil {
			at.Interface, at.Instance = i.ID, instance
			_, err = tx.Attach(at)
		}
		return err
	}))
}

// An m5.large may have 3 ENIs of 10 addresses (docs.aws.amazon.com/ec2/latest/instancetypes/gp.html).
func TestENIsThatPodsCantUseTakeRoom(t *testing.T) {
	for name, traits := range map[string]driver.Traits{"like EC2": sim.LikeEC2(), "like BCE": sim.LikeBCE()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{})
				w.third(t, sim.Type{Name: "m5.large", ENIs: 3, V4: 10})
				w.unmanaged(t, "i-3", sim.Attach{Index: 1})
				n := w.node("i-3")
				limits, err := n.Limits(t.Context())
				must(t, err)
				if limits.ENIs != 2 || limits.V4 != 10 {
					t.Errorf("with another service's ENI an m5.large has %+v", limits)
				}
				_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "second", Subnet: "a", V4: 9})
				must(t, err)
				_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "third", Subnet: "a", V4: 9})
				if !errors.Is(err, cloud.ErrLimit) {
					t.Errorf("the ENI for which there is no room: %v", err)
				}
				if made := w.truth(); len(made) != 1 || made[0].Tags["enipool/token"] != "second" {
					t.Errorf("the ENI for which there is no room has left %+v", made)
				}
				list, err := n.Interfaces(t.Context())
				must(t, err)
				if len(list) != 2 {
					t.Errorf("pods' ENIs are %+v", list)
				}
				must(t, w.Check())
			})
		})
	}
}

// Another service may attach its ENI later, and take it away again: each look tells.
func TestENIsThatPodsCantUseTakeRoomAsLongAsTheyAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		n := w.node("i-1")
		has := func(when string, want int) {
			t.Helper()
			calls := w.Calls()[sim.ActShape]
			_, err := n.Interfaces(t.Context())
			must(t, err)
			if got := n.LimitsNow().ENIs; got != want || w.Calls()[sim.ActShape] != calls {
				t.Errorf("%s the instance may have %d ENIs for pods, want %d, by %d requests", when, got, want, w.Calls()[sim.ActShape]-calls)
			}
		}
		_, err := n.Limits(t.Context())
		must(t, err)
		has("at first", 4)
		w.unmanaged(t, "i-1", sim.Attach{Index: 2})
		has("with another service's", 3)
		other := ""
		w.View(0, func(tx *sim.Tx) {
			for _, i := range tx.Interfaces() {
				if i.Requester != "" {
					other = i.ID
				}
			}
		})
		must(t, w.Detach(other))
		has("without it again", 4)
	})
}

// Of an IPv6 prefix so many addresses are shown as the ENI may have of IPv4: a lower limit hides
// some that pods may have, and the prefix tells of them.
func TestPrefixesAreToldWhoseAddressesALowerLimitHides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Prefixes: true, IPv6: true})
		made, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 16, V6: 7 * 16})
		must(t, err)
		w.o.Limits.V4 = 4
		list, err := w.node("i-1").Interfaces(t.Context())
		must(t, err)
		shown := list[len(list)-1]
		for _, a := range made.Addresses {
			if a.Is6() && !slices.ContainsFunc(shown.Partial, func(b netip.Prefix) bool { return b.Contains(a) }) {
				t.Fatalf("nothing tells that %s is the ENI's: %+v", a, shown)
			}
		}
		if len(shown.Addresses) >= len(made.Addresses) || !slices.Equal(shown.Partial, made.Partial) {
			t.Errorf("%d of %d addresses are shown, of the prefixes %v; it was made with %v", len(shown.Addresses), len(made.Addresses), shown.Partial, made.Partial)
		}
	})
}

// Who turns prefixes off has ENIs with some, which go as a whole.
func TestPrefixesThatWereTurnedOffGoAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Prefixes: true})
		made, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 32})
		must(t, err)
		w.o.Prefixes = false
		n := w.node("i-1")
		l, err := n.Limits(t.Context())
		must(t, err)
		if want := (eni.Block{Bits: 28, Size: 1}); l.V4 != 8 || l.V4Block != want {
			t.Errorf("with prefixes that are left the limits are %+v", l)
		}
		if err := n.UnassignAddresses(t.Context(), made.ID, made.Addresses[:3]); !errors.Is(err, cloud.ErrForbidden) {
			t.Errorf("a part of a prefix: %v", err)
		}
		added, err := n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 2)
		if err != nil || len(added) != 2 {
			t.Errorf("two more addresses: %v, %v", added, err)
		}
		other, err := n.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 7})
		if err != nil || len(other.Addresses) != 7 {
			t.Errorf("another ENI: %v, %v", other.Addresses, err)
		}
		must(t, n.UnassignAddresses(t.Context(), made.ID, made.Addresses))
		time.Sleep(time.Minute)
		shows(t, n, 3)
		if l := n.LimitsNow(); l.V4Block != (eni.Block{}) {
			t.Errorf("without prefixes the limits are %+v", l)
		}
		must(t, w.Check())
	})
}

func TestENIsAreOnAllNetworkCardsAndKeepTheirIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		w.third(t, sim.Type{Name: "two-cards", ENIs: 4, Cards: []int{2, 2}, V4: 8})
		n := w.node("i-3")
		limits, err := n.Limits(t.Context())
		must(t, err)
		if limits.ENIs != 4 {
			t.Errorf("an instance of two cards for 2 ENIs each has %+v", limits)
		}
		index := map[string]int{}
		for _, token := range []string{"a", "b", "c"} {
			i, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 1})
			must(t, err)
			index[i.ID] = i.Index
		}
		cards := map[int]int{}
		for _, i := range w.truth() {
			cards[i.Attachment.Card]++
		}
		if cards[0] != 1 || cards[1] != 2 {
			t.Errorf("ENIs are on the cards as %v", cards)
		}
		for _, n := range []*engine.Node{n, w.node("i-3")} {
			list, err := n.Interfaces(t.Context())
			must(t, err)
			seen := map[int]bool{}
			for _, i := range list {
				if want, ours := index[i.ID]; seen[i.Index] || ours && i.Index != want || i.Index < 0 {
					t.Errorf("ENI %s has index %d, it was made with %d: %+v", i.ID, i.Index, want, list)
				}
				seen[i.Index] = true
			}
			if len(list) != 4 || len(n.Quarantined()) > 0 {
				t.Errorf("the node has %+v, left out %+v", list, n.Quarantined())
			}
		}
		_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "d", Subnet: "a", V4: 1})
		if !errors.Is(err, cloud.ErrLimit) || len(w.truth()) != 3 {
			t.Errorf("a fourth ENI besides the primary one: %v, there are %d", err, len(w.truth()))
		}
		must(t, w.Check())
	})
}

// A restart between attaches must not change the index of what is there.
func TestENIsOfACloudWithoutIndexesKeepTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{})
		index := map[string]int{}
		for _, token := range []string{"a", "b", "c"} {
			i, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 1})
			must(t, err)
			index[i.ID] = i.Index
		}
		made := w.truth()
		must(t, w.node("i-1").DeleteInterface(t.Context(), made[0].ID))
		i, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "d", Subnet: "a", V4: 1})
		must(t, err)
		index[i.ID] = i.Index
		list, err := w.node("i-1").Interfaces(t.Context())
		must(t, err)
		seen := map[int]bool{}
		for _, i := range list {
			if want, ours := index[i.ID]; seen[i.Index] || ours && i.Index != want {
				t.Errorf("ENI %s has index %d, it was made with %d", i.ID, i.Index, want)
			}
			seen[i.Index] = true
		}
		if len(list) != 4 {
			t.Errorf("the node has %+v", list)
		}
	})
}

// leak makes ENIs of a cluster that are attached nowhere.
func (w *world) leak(t *testing.T, instance, cluster string, n int) (ids []string) {
	t.Helper()
	d := w.Driver("i-1", w.traits)
	for at := range n {
		m := driver.Mark{Instance: instance, Token: fmt.Sprintf("leak-%s-%s-%d", instance, cluster, at), Asked: time.Now(), Cluster: cluster, Index: 1}
		i, err := d.Create(t.Context(), driver.Create{Subnet: "a", Mark: m, Token: m.Token})
		must(t, err)
		ids = append(ids, i.ID)
	}
	return ids
}

func (w *world) sweep(t *testing.T, n *engine.Node) []string {
	t.Helper()
	deleted, err := n.Sweep(t.Context(), time.Hour)
	must(t, err)
	slices.Sort(deleted)
	return deleted
}

func TestSweepDeletesWhatNobodyWillMiss(t *testing.T) {
	for name, traits := range map[string]driver.Traits{"like EC2": sim.LikeEC2(), "like BCE": sim.LikeBCE()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{Cluster: "ours"})
				n := w.node("i-1")
				dead := w.leak(t, "i-2", "ours", 12)
				kept := slices.Concat(w.leak(t, "i-2", "theirs", 1), w.leak(t, "i-1", "ours", 1))
				alive := w.leak(t, "i-4", "ours", 1)
				_, err := w.AddInstance(sim.Instance{ID: "i-4", Type: "small", Subnet: "a"})
				must(t, err)
				kept = append(kept, alive...)
				if got := append(w.sweep(t, n), w.sweep(t, n)...); len(got) > 0 {
					t.Errorf("of young ENIs were deleted %v", got)
				}
				time.Sleep(2 * time.Hour)
				if got := append(w.sweep(t, n), w.sweep(t, n)...); len(got) > 0 {
					t.Errorf("of ENIs whose instance exists were deleted %v", got)
				}
				must(t, w.Terminate("i-2"))
				kept = append(kept, w.leak(t, "i-2", "ours", 0)...)
				if got := w.sweep(t, n); len(got) > 0 {
					t.Errorf("the first sweep after an instance has gone deleted %v", got)
				}
				first := w.sweep(t, n)
				if len(first) != 10 {
					t.Errorf("one sweep deleted %d ENIs: %v", len(first), first)
				}
				rest := w.sweep(t, n)
				if got := slices.Sorted(slices.Values(append(first, rest...))); !slices.Equal(got, slices.Sorted(slices.Values(dead))) {
					t.Errorf("sweeps deleted %v, want %v", got, dead)
				}
				var left []string
				for _, i := range w.truth() {
					left = append(left, i.ID)
				}
				if slices.Sort(left); !slices.Equal(left, slices.Sorted(slices.Values(kept))) {
					t.Errorf("there are left %v, want %v", left, kept)
				}
			})
		})
	}
}

// An instance that a sweep took for gone by mistake is there at the next one.
func TestSweepForgetsWhatHasComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Cluster: "ours"})
		n := w.node("i-1")
		w.leak(t, "i-9", "ours", 1)
		time.Sleep(2 * time.Hour)
		w.sweep(t, n) // nobody knows i-9
		_, err := w.AddInstance(sim.Instance{ID: "i-9", Type: "small", Subnet: "a"})
		must(t, err)
		w.sweep(t, n)
		must(t, w.Terminate("i-9"))
		if got := w.sweep(t, n); len(got) > 0 {
			t.Errorf("gone at one sweep, there at the next and gone again, its ENI was deleted: %v", got)
		}
		if got := w.sweep(t, n); len(got) != 1 {
			t.Errorf("gone at two sweeps, its ENI was not deleted: %v", got)
		}
	})
}

// A node that is told to stop answers soon, whatever it is doing.
func TestACallWhoseContextEndsReturnsSoon(t *testing.T) {
	for name, v := range steps() {
		t.Run(name, func(t *testing.T) {
			for _, action := range append(slices.Clone(v.actions), sim.ActDetach, sim.ActDelete) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, v.traits, sim.Options{AttachTime: time.Second, DetachTime: time.Second}, v.e)
					n := w.node("i-1")
					w.FailNext(action, sim.Fault{Delay: 24 * time.Hour})
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					began := time.Now()
					i, err := n.CreateInterface(ctx, w.newENI())
					if err == nil {
						err = n.DeleteInterface(ctx, i.ID)
					}
					if took := time.Since(began); !errors.Is(err, cloud.ErrUnknown) || took > 31*time.Second {
						t.Errorf("%s: the call returned %v after %s", action, err, took)
					}
				})
			}
		})
	}
}

// An ENI may lose the one IPv6 address that it was made with before that is written down as
// its primary one: by a person, or by whoever takes addresses that nobody seems to have.
func TestAnENIThatLostItsFirstIPv6AddressGetsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{IPv6: true})
		w.FailNext(sim.ActModify, sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}})
		c := w.newENI()
		if _, err := w.node("i-1").CreateInterface(t.Context(), c); !errors.Is(err, cloud.ErrUnknown) {
			t.Fatalf("the mark can't be written: %v", err)
		}
		made := w.truth()
		if len(made) != 1 || len(made[0].V6) != 1 {
			t.Fatalf("the test shows nothing: %+v", made)
		}
		must(t, w.TakeAway(made[0].V6[0]))
		w.holds(t, w.insist(t, func() *engine.Node { return w.node("i-1") }, c), c, false)
	})
}

// The first request may have made the ENI with fewer addresses, which describes don't show
// yet: when the subnet has room again, no second one is made with all of them.
func TestAnENIThatWasAskedForWithFewerAddressesIsAskedForLikeThatAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{Lag: 5 * time.Second, Seed: 1}, engine.Options{Times: driver.Times{Settle: 10 * time.Second}})
		n, request := w.node("i-1"), cloud.Create{Token: "intent", Subnet: "b", V4: 5}
		must(t, w.LeaveFree("b", 3))
		w.FailNext(sim.ActCreate, sim.Fault{}, sim.Fault{Answer: sim.Lost})
		_, err := n.CreateInterface(t.Context(), request)
		if !errors.Is(err, cloud.ErrUnknown) {
			t.Fatalf("CreateInterface: %v", err)
		}
		must(t, w.LeaveFree("b", 100))
		i, err := n.CreateInterface(t.Context(), request)
		must(t, err)
		if all := w.truth(); len(all) != 1 || len(i.Addresses) != 5 {
			t.Errorf("%d ENIs were made: %+v; returned was %+v", len(all), all, i)
		}
	})
}
