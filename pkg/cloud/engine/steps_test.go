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
)

// steps are the clouds of which each step of a CreateInterface is made to fail, with the
// requests that these are made of.
func steps() map[string]struct {
	traits  driver.Traits
	e       engine.Options
	actions []string
} {
	asReal := driver.Times{Poll: 500 * time.Millisecond}
	return map[string]struct {
		traits  driver.Traits
		e       engine.Options
		actions []string
	}{
		"like EC2":           {sim.LikeEC2(), engine.Options{Times: asReal}, []string{sim.ActCreate, sim.ActAttach, sim.ActModify}},
		"like EC2, prefixes": {sim.LikeEC2(), engine.Options{Times: asReal, Prefixes: true, IPv6: true}, []string{sim.ActCreate, sim.ActAssign, sim.ActAttach, sim.ActModify}},
		"like BCE":           {sim.LikeBCE(), engine.Options{Times: asReal}, []string{sim.ActCreate, sim.ActAttach, sim.ActAssign}},
		"like BCE, IPv6":     {sim.LikeBCE(), engine.Options{Times: asReal, IPv6: true}, []string{sim.ActCreate, sim.ActAttach, sim.ActModify, sim.ActAssign}},
	}
}

// outcomes are what becomes of a step.
func outcomes() map[string]sim.Fault {
	refuse := func(r sim.Reason) sim.Fault { return sim.Fault{Err: &sim.Error{Reason: r}} }
	return map[string]sim.Fault{
		"throttled": refuse(sim.Throttled), "unavailable": refuse(sim.Unavailable), "forbidden": refuse(sim.Forbidden), "at its limit": refuse(sim.AddressLimit),
		"answer lost": {Answer: sim.Lost}, "effect a little later": {Answer: sim.Lost, Later: 300 * time.Millisecond},
		"effect after a while": {Answer: sim.Lost, Later: 20 * time.Second}, "done in part": {Partial: true, Answer: sim.Lost},
		"never answered": {Delay: 24 * time.Hour},
	}
}

// truth is the account's ENIs that were made by token.
func (w *world) truth() (made []sim.Interface) {
	w.View(0, func(tx *sim.Tx) {
		for _, i := range tx.Interfaces() {
			if i.Tags["enipool/token"] != "" {
				made = append(made, i)
			}
		}
	})
	return made
}

// newENI is an ENI of a few addresses, or of two blocks.
func (w *world) newENI() cloud.Create {
	c := cloud.Create{Token: "intent-1", Subnet: "a", V4: 3}
	if w.o.Prefixes {
		c.V4 = 32
	}
	if w.o.IPv6 {
		c.V6 = 2
		if w.o.Prefixes {
			c.V6 = 7 * 16 // as many of a prefix as the ENI may have of IPv4
		}
	}
	return c
}

// insist calls with the token until that succeeds, as an agent does, by the node that next
// returns. It fails the test when none does in some minutes.
func (w *world) insist(t *testing.T, next func() *engine.Node, c cloud.Create) cloud.Interface {
	t.Helper()
	var errs []error
	for wait := time.Second; wait < 5*time.Minute; wait *= 2 {
		i, err := next().CreateInterface(t.Context(), c)
		if err == nil {
			return i
		}
		errs = append(errs, err)
		time.Sleep(wait)
	}
	t.Fatalf("no call succeeds: %v", errors.Join(errs...))
	return cloud.Interface{}
}

// holds fails the test unless the account has exactly this ENI, ready for pods. Where an
// assignment without a token came late, it may have more addresses than were returned.
func (w *world) holds(t *testing.T, i cloud.Interface, c cloud.Create, late bool) {
	t.Helper()
	time.Sleep(time.Minute) // what is late has come
	made := w.truth()
	if len(made) != 1 || made[0].ID != i.ID {
		t.Fatalf("for one token there are %d ENIs, and %s was returned: %+v", len(made), i.ID, made)
	}
	if got := made[0]; got.Status != sim.InUse || got.Attachment.Instance != "i-1" || w.traits.Binds && !got.Attachment.DeleteOnTermination {
		t.Errorf("the ENI is %s with %+v", got.Status, got.Attachment)
	}
	if len(i.Addresses) != c.V4+c.V6 {
		t.Errorf("the ENI for %+v has %d addresses: %v", c, len(i.Addresses), i.Addresses)
	}
	shown, err := w.node("i-1").Interfaces(t.Context())
	must(t, err)
	at := slices.IndexFunc(shown, func(s cloud.Interface) bool { return s.ID == i.ID })
	if at < 0 || shown[at].V4 != i.V4 || shown[at].V6 != i.V6 || shown[at].Index != i.Index {
		t.Fatalf("CreateInterface returned\n%+v, Interfaces shows\n%+v", i, shown)
	}
	lacks := slices.DeleteFunc(slices.Clone(i.Addresses), func(a netip.Addr) bool { return slices.Contains(shown[at].Addresses, a) })
	if more := len(shown[at].Addresses) - len(i.Addresses); len(lacks) > 0 || more > 0 && !late {
		t.Errorf("of the addresses that CreateInterface returned Interfaces lacks %v, and it shows %d more", lacks, more)
	}
	must(t, w.Check())
}

// later are the processes that finish what an earlier call began.
func (w *world) later(first *engine.Node) map[string]func() *engine.Node {
	var second *engine.Node
	return map[string]func() *engine.Node{
		"the same process": func() *engine.Node { return first },
		"a later process": func() *engine.Node {
			if second == nil {
				second = w.node("i-1")
			}
			return second
		},
	}
}

func TestACreateThatFailsAtAnyStepIsFinishedByALaterCall(t *testing.T) {
	for name, v := range steps() {
		for _, action := range v.actions {
			for what, fault := range outcomes() {
				for _, who := range []string{"the same process", "a later process"} {
					t.Run(fmt.Sprintf("%s/%s %s/%s", name, action, what, who), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							w := newWorld(t, v.traits, sim.Options{}, v.e)
							first, c := w.node("i-1"), w.newENI()
							w.FailNext(action, fault)
							ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
							defer cancel()
							i, err := first.CreateInterface(ctx, c)
							w.honest(t, err)
							if err != nil {
								i = w.insist(t, w.later(first)[who], c)
							}
							if w.Calls()[action] == 0 {
								t.Fatalf("there was no %s", action)
							}
							w.holds(t, i, c, action == sim.ActAssign && fault.Later > 10*time.Second && !v.traits.AssignTokens)
						})
					})
				}
			}
		}
	}
}

// honest fails the test if there is an ENI although the error says that nothing is left.
func (w *world) honest(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, cloud.ErrUnknown) && len(w.truth()) > 0 {
		t.Errorf("an ENI is left after %v: %+v", err, w.truth())
	}
}

// A process may end at any moment: each request takes a second, and the call is given up
// at each quarter of one.
func TestACreateThatIsGivenUpAtAnyMomentIsFinishedByALaterCall(t *testing.T) {
	for name, v := range steps() {
		for _, who := range []string{"the same process", "a later process"} {
			for _, lag := range []time.Duration{0, 3 * time.Second} {
				t.Run(fmt.Sprintf("%s/%s/lag %s", name, who, lag), func(t *testing.T) {
					for at := 250 * time.Millisecond; ; at += 500 * time.Millisecond {
						ready := false
						synctest.Test(t, func(t *testing.T) {
							w := newWorld(t, v.traits, sim.Options{Latency: map[string]sim.Latency{"": {Base: time.Second}},
								AttachTime: 2 * time.Second, DetachTime: 2 * time.Second, CreateTime: time.Second, Lag: lag, Seed: uint64(at)}, v.e)
							first, c := w.node("i-1"), w.newENI()
							ctx, cancel := context.WithTimeout(t.Context(), at)
							i, err := first.CreateInterface(ctx, c)
							cancel()
							w.honest(t, err)
							if ready = err == nil; err != nil {
								i = w.insist(t, w.later(first)[who], c)
							}
							w.holds(t, i, c, false)
						})
						if ready || t.Failed() {
							return
						}
					}
				})
			}
		}
	}
}
