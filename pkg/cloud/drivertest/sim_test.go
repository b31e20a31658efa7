package drivertest_test

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/drivertest"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// world is a simulated account with two subnets and two instances.
type world struct {
	*sim.Account
	traits driver.Traits
}

func open(t *testing.T, traits driver.Traits, o sim.Options) *world {
	t.Helper()
	o.VPC = sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, V6: []netip.Prefix{netip.MustParsePrefix("fd00:10::/56")}}
	w := &world{sim.NewAccount(o), traits}
	for id, s := range map[string]sim.Subnet{
		"a": {V4: netip.MustParsePrefix("10.0.0.0/23"), V6: netip.MustParsePrefix("fd00:10::/64")},
		"b": {V4: netip.MustParsePrefix("10.0.2.0/24"), V6: netip.MustParsePrefix("fd00:10:0:1::/64")},
	} {
		s.ID, s.Tags = id, map[string]string{"role": "pods-" + id, "team": "net"}
		must(t, w.AddSubnet(s))
	}
	w.AddGroup(sim.Group{ID: "sg-nodes"})
	w.AddGroup(sim.Group{ID: "sg-pods"})
	w.AddType(sim.Type{Name: "small", ENIs: 4, V4: 12, V6: 8})
	w.AddType(sim.Type{Name: "cards", ENIs: 6, Cards: []int{3, 3}, V4: 8, V6: 8})
	return w
}

// start starts the instances.
func (w *world) start(t *testing.T, kind string) *world {
	t.Helper()
	for _, id := range []string{"i-1", "i-2"} {
		_, err := w.AddInstance(sim.Instance{ID: id, Type: kind, Subnet: "a", Groups: []string{"sg-nodes"}})
		must(t, err)
	}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// actions are the requests that methods make.
var actions = map[string]string{
	"Shape": sim.ActShape, "Alive": sim.ActAlive, "Subnets": sim.ActSubnets, "Interfaces": sim.ActDescribe,
	"Create": sim.ActCreate, "Attach": sim.ActAttach, "Bind": sim.ActModify, "Rewrite": sim.ActModify, "SetGroups": sim.ActModify,
	"Detach": sim.ActDetach, "Delete": sim.ActDelete, "Assign": sim.ActAssign, "Unassign": sim.ActUnassign,
	"Reserve": sim.ActReserve, "Unreserve": sim.ActUnreserve,
}

func (w *world) inject(method string, f drivertest.Failure) {
	refuse := func(r sim.Reason) sim.Fault { return sim.Fault{Err: &sim.Error{Reason: r}} }
	w.FailNext(actions[method], map[drivertest.Failure]sim.Fault{
		drivertest.Throttled: refuse(sim.Throttled), drivertest.Unavailable: refuse(sim.Unavailable), drivertest.Forbidden: refuse(sim.Forbidden),
		drivertest.Lost: {Answer: sim.Lost}, drivertest.Late: {Answer: sim.Lost, Later: 5 * time.Millisecond}, drivertest.Hang: {Delay: time.Hour},
	}[f])
}

// changes are the requests so far that change something.
func (w *world) changes() (n int) {
	for action, calls := range w.Calls() {
		if !strings.HasPrefix(action, "Describe") {
			n += calls
		}
	}
	return n
}

// subject is the account through a driver of its own, or one that wrap puts around it.
func (w *world) subject(t *testing.T, wrap func(driver.Driver) driver.Driver) drivertest.Subject {
	traits := w.traits
	traits.PageSize = 3
	d := driver.Driver(w.Driver("i-1", traits))
	if wrap != nil {
		d = wrap(d)
	}
	return drivertest.Subject{
		Driver: d, Subnets: []string{"a", "b"}, Lag: w.Options().Lag,
		Other: "i-2", Groups: []string{"sg-pods"}, Tags: map[string]string{"role": "pods-a", "team": "net"}, Page: 3,
		Inject: w.inject, Changes: w.changes, Calls: w.Calls, Check: w.Check,
		Leave:     func(subnet string, free int) { must(t, w.LeaveFree(subnet, free)) },
		Break:     func(subnet string) { must(t, w.Fragment(subnet, true)) },
		Stop:      func(instance string, stopped bool) { must(t, w.Stop(instance, stopped)) },
		Terminate: func(instance string) { must(t, w.Terminate(instance)) },
	}
}

func TestTheSimulatedAccountsDriverKeepsTheContract(t *testing.T) {
	slow := sim.Options{CreateTime: 300 * time.Millisecond, AttachTime: 2 * time.Second, DetachTime: 3 * time.Second}
	late := slow
	late.Lag, late.Seed = 3*time.Second, 1
	lends := sim.LikeBCE()
	lends.CrossSubnet = true
	for name, v := range map[string]struct {
		traits driver.Traits
		o      sim.Options
		kind   string
	}{
		"like EC2": {sim.LikeEC2(), sim.Options{}, "small"}, "like BCE": {sim.LikeBCE(), sim.Options{}, "small"},
		"like EC2, slow": {sim.LikeEC2(), slow, "small"}, "like BCE, slow": {sim.LikeBCE(), slow, "small"},
		"like EC2, lag": {sim.LikeEC2(), late, "small"}, "like BCE, lag": {sim.LikeBCE(), late, "small"},
		"like BCE, addresses of other subnets, lag": {lends, late, "small"},
		"like EC2, two network cards":               {sim.LikeEC2(), sim.Options{}, "cards"},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.ContractIn(t, synctest.Test, func(t *testing.T) drivertest.Subject {
				return open(t, v.traits, v.o).start(t, v.kind).subject(t, nil)
			})
		})
	}
}

func TestADriverOverASocketKeepsTheContract(t *testing.T) {
	for _, crosses := range []bool{false, true} {
		t.Run(fmt.Sprint("crosses subnets ", crosses), func(t *testing.T) {
			drivertest.Contract(t, func(t *testing.T) drivertest.Subject {
				w := open(t, sim.LikeEC2(), sim.Options{}).start(t, "small")
				srv := httptest.NewServer(w.Handler())
				t.Cleanup(srv.Close)
				s := w.subject(t, nil)
				d, err := sim.Dial(srv.URL, "i-1")
				must(t, err)
				d.CrossSubnet = crosses
				s.Driver, s.Page = d, 0 // its pages are those of a real account
				return s
			})
		})
	}
}
