package engine_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// world is an account with two subnets and two instances.
type world struct {
	*sim.Account
	traits driver.Traits
	o      engine.Options
}

func newWorld(t *testing.T, traits driver.Traits, o sim.Options, e engine.Options) *world {
	t.Helper()
	o.VPC = sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, V6: []netip.Prefix{netip.MustParsePrefix("fd00:10::/56")}}
	w := &world{sim.NewAccount(o), traits, e}
	for id, s := range map[string]sim.Subnet{
		"a": {V4: netip.MustParsePrefix("10.0.0.0/23"), V6: netip.MustParsePrefix("fd00:10::/64")},
		"b": {V4: netip.MustParsePrefix("10.0.2.0/24"), V6: netip.MustParsePrefix("fd00:10:0:1::/64")},
	} {
		s.ID = id
		must(t, w.AddSubnet(s))
	}
	w.AddType(sim.Type{Name: "small", ENIs: 4, V4: 8, V6: 8})
	for _, id := range []string{"i-1", "i-2"} {
		_, err := w.AddInstance(sim.Instance{ID: id, Type: "small", Subnet: "a"})
		must(t, err)
	}
	return w
}

// third adds the instance i-3, whose type is none of the others'.
func (w *world) third(t *testing.T, typ sim.Type) {
	t.Helper()
	w.AddType(typ)
	_, err := w.AddInstance(sim.Instance{ID: "i-3", Type: typ.Name, Subnet: "a"})
	must(t, err)
}

// node is the instance's cloud.
func (w *world) node(instance string) *engine.Node {
	o := w.o
	o.Subnets = []string{"a", "b"}
	if o.Times == (driver.Times{}) {
		o.Times = driver.Times{Poll: time.Millisecond, Slow: 5 * time.Millisecond, Usual: time.Millisecond, Settle: 20 * time.Millisecond, Wait: 10 * time.Second}
	}
	return engine.New(w.Driver(instance, w.traits), o)
}

// steps are the requests that a method is made of: the one that is refused, and those of
// which the answer gets lost.
func (w *world) step(method string, f cloudtest.Failure) string {
	last, late := sim.ActModify, sim.ActAttach
	if !w.traits.FillsFirst {
		last, late = sim.ActAssign, sim.ActAssign
	}
	steps := map[string]map[cloudtest.Failure]string{
		"Limits": {0: sim.ActShape}, "Interfaces": {0: sim.ActDescribe}, "Subnets": {0: sim.ActSubnets},
		"AssignAddresses": {0: sim.ActAssign}, "UnassignAddresses": {0: sim.ActUnassign},
		"DeleteInterface": {0: sim.ActDetach, cloudtest.LostAfterEffect: sim.ActDelete, cloudtest.Late: sim.ActDelete},
		"CreateInterface": {0: sim.ActCreate, cloudtest.LostAfterAttach: sim.ActAttach, cloudtest.LostAfterEffect: last, cloudtest.Late: late},
	}
	if action := steps[method][f]; action != "" {
		return action
	}
	return steps[method][0]
}

func (w *world) inject(method string, f cloudtest.Failure) {
	refuse := func(r sim.Reason) sim.Fault { return sim.Fault{Err: &sim.Error{Reason: r}} }
	fault := map[cloudtest.Failure]sim.Fault{
		cloudtest.Throttled: refuse(sim.Throttled), cloudtest.Unavailable: refuse(sim.Unavailable), cloudtest.Forbidden: refuse(sim.Forbidden),
		cloudtest.LostAfterCreate: {Answer: sim.Lost}, cloudtest.LostAfterAttach: {Answer: sim.Lost}, cloudtest.LostAfterEffect: {Answer: sim.Lost},
		cloudtest.Late: {Answer: sim.Lost, Later: 5 * time.Millisecond}, cloudtest.Partial: {Partial: true, Answer: sim.Lost},
	}[f]
	action := w.step(method, f)
	if action == sim.ActAssign && method == "CreateInterface" && w.o.IPv6 {
		w.FailNext(action, sim.Fault{}) // the addresses of one family come, then the others
	}
	w.FailNext(action, fault)
}

func (w *world) subject(t *testing.T) cloudtest.Subject {
	return cloudtest.Subject{
		Cloud: w.node("i-1"), Other: w.node("i-2"), Subnets: []string{"a", "b"}, Lag: w.Options().Lag,
		Inject: w.inject,
		Leave:  func(subnet string, free int) { must(t, w.LeaveFree(subnet, free)) },
		Break:  func(subnet string) { must(t, w.Fragment(subnet, true)) },
		Detach: func(id string) { must(t, w.Detach(id)) },
		Move:   func(id string) { must(t, w.Move(id, "i-2")) },
		Check:  w.Check,
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// variants are the ways an account may be.
func variants() map[string]func(*testing.T) *world {
	ec2, bce := sim.LikeEC2(), sim.LikeBCE()
	lends := bce
	lends.CrossSubnet = true
	slow := sim.Options{CreateTime: 300 * time.Millisecond, AttachTime: 2 * time.Second, DetachTime: 3 * time.Second}
	late := slow
	late.Lag, late.Seed = 3*time.Second, 1
	asReal := driver.Times{Poll: 500 * time.Millisecond}
	both := engine.Options{IPv6: true}
	open := func(t driver.Traits, o sim.Options, e engine.Options) func(*testing.T) *world {
		return func(test *testing.T) *world { return newWorld(test, t, o, e) }
	}
	return map[string]func(*testing.T) *world{
		"like EC2": open(ec2, sim.Options{}, engine.Options{}), "like BCE": open(bce, sim.Options{}, engine.Options{}),
		"like EC2, IPv6": open(ec2, sim.Options{}, both), "like BCE, IPv6": open(bce, sim.Options{}, both),
		"like EC2, prefixes":                   open(ec2, sim.Options{}, engine.Options{Prefixes: true}),
		"like EC2, prefixes and IPv6":          open(ec2, sim.Options{}, engine.Options{Prefixes: true, IPv6: true}),
		"like BCE, addresses of other subnets": open(lends, late, engine.Options{Times: asReal, IPv6: true}),
		"like EC2, slow":                       open(ec2, slow, engine.Options{Times: asReal, IPv6: true}), "like BCE, slow": open(bce, slow, engine.Options{Times: asReal, IPv6: true}),
		"like EC2, lag": open(ec2, late, engine.Options{Times: asReal, Prefixes: true, IPv6: true}), "like BCE, lag": open(bce, late, engine.Options{Times: asReal, IPv6: true}),
	}
}

func TestTheEngineKeepsTheContractOverTheSimulatedAccount(t *testing.T) {
	for name, open := range variants() {
		t.Run(name, func(t *testing.T) {
			cloudtest.ContractIn(t, synctest.Test, func(t *testing.T) cloudtest.Subject { return open(t).subject(t) })
		})
	}
}
