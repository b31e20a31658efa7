package cloudtest_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// wrongRegion is a good Region with one method that is wrong.
type wrongRegion struct {
	cloud.Region
	look               func(ctx context.Context, instances []string) (map[string]cloud.View, error)
	assign             func(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) ([]netip.Addr, error)
	reserve, unreserve func(ctx context.Context, subnet string, in netip.Prefix) error
	alive              func(ctx context.Context, instances []string) (map[string]cloud.State, error)
	list               func(ctx context.Context, page func([]cloud.Listed) error) (bool, error)
	forget             func(instance string)
	limits             func(ctx context.Context, types []string) (map[string]eni.Limits, error)
}

func (r *wrongRegion) Limits(ctx context.Context, types []string) (map[string]eni.Limits, error) {
	if r.limits != nil {
		return r.limits(ctx, types)
	}
	return r.Region.Limits(ctx, types)
}

func (r *wrongRegion) Look(ctx context.Context, instances []string) (map[string]cloud.View, error) {
	if r.look != nil {
		return r.look(ctx, instances)
	}
	return r.Region.Look(ctx, instances)
}

func (r *wrongRegion) AssignExactly(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) ([]netip.Addr, error) {
	if r.assign != nil {
		return r.assign(ctx, instance, id, addrs, from)
	}
	return r.Region.AssignExactly(ctx, instance, id, addrs, from)
}

func (r *wrongRegion) Reserve(ctx context.Context, subnet string, in netip.Prefix) error {
	if r.reserve != nil {
		return r.reserve(ctx, subnet, in)
	}
	return r.Region.Reserve(ctx, subnet, in)
}

func (r *wrongRegion) Unreserve(ctx context.Context, subnet string, in netip.Prefix) error {
	if r.unreserve != nil {
		return r.unreserve(ctx, subnet, in)
	}
	return r.Region.Unreserve(ctx, subnet, in)
}

func (r *wrongRegion) List(ctx context.Context, page func([]cloud.Listed) error) (bool, error) {
	if r.list != nil {
		return r.list(ctx, page)
	}
	return r.Region.List(ctx, page)
}

func (r *wrongRegion) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	if r.alive != nil {
		return r.alive(ctx, instances)
	}
	return r.Region.Alive(ctx, instances)
}

func (r *wrongRegion) Forget(instance string) {
	if r.forget != nil {
		r.forget(instance)
		return
	}
	r.Region.Forget(instance)
}

// wrongRegions are by the sentence that finds them.
var wrongRegions = map[string]func(m *wrongRegion, r cloud.Region){
	"Look describes instances together": func(m *wrongRegion, r cloud.Region) {
		m.look = func(ctx context.Context, instances []string) (map[string]cloud.View, error) {
			views := map[string]cloud.View{}
			for _, id := range instances {
				list, err := r.Node(cloud.Instance{ID: id}).Interfaces(ctx)
				views[id] = cloud.View{Interfaces: list, Err: err}
			}
			return views, nil
		}
	},
	"Look returns a View of each instance, as its Node shows it": func(m *wrongRegion, r cloud.Region) {
		m.look = func(ctx context.Context, instances []string) (map[string]cloud.View, error) {
			views, err := r.Look(ctx, instances)
			for id, v := range views {
				v.Interfaces = v.Interfaces[:min(len(v.Interfaces), 1)]
				views[id] = v
			}
			return views, err
		}
	},
	"a View tells that an instance has no ENI": func(m *wrongRegion, r cloud.Region) {
		m.look = func(ctx context.Context, instances []string) (map[string]cloud.View, error) {
			views, err := r.Look(ctx, instances)
			for _, v := range views {
				if v.Err != nil {
					return nil, v.Err
				}
			}
			return views, err
		}
	},
	"Limits returns what instances of the types may carry": func(m *wrongRegion, r cloud.Region) {
		m.limits = func(ctx context.Context, types []string) (map[string]eni.Limits, error) {
			all, err := r.Limits(ctx, types)
			for name, l := range all {
				l.ENIs++ // with nothing for the primary one
				all[name] = l
			}
			return all, err
		}
	},
	"Limits tells of several types in one request": func(m *wrongRegion, r cloud.Region) {
		m.limits = func(ctx context.Context, types []string) (map[string]eni.Limits, error) {
			all := map[string]eni.Limits{}
			for _, name := range types {
				one, err := r.Limits(ctx, []string{name})
				if err != nil {
					return nil, err
				}
				for name, l := range one {
					all[name] = l
				}
			}
			return all, nil
		}
	},
	"Limits leaves out a type that the cloud does not have": func(m *wrongRegion, r cloud.Region) {
		m.limits = func(ctx context.Context, types []string) (map[string]eni.Limits, error) {
			all, err := r.Limits(ctx, types)
			for _, name := range types {
				all[name] = all["small"] // the usual ones for what is not known
			}
			return all, err
		}
	},
	"List shows the ENIs of all instances, and those that are attached nowhere": func(m *wrongRegion, r cloud.Region) {
		m.list = func(ctx context.Context, page func([]cloud.Listed) error) (bool, error) {
			return r.List(ctx, func(some []cloud.Listed) error {
				return page(slices.DeleteFunc(some, func(i cloud.Listed) bool { return i.Primary }))
			})
		}
	},
	"List ends with an error of its caller": func(m *wrongRegion, r cloud.Region) {
		m.list = func(ctx context.Context, page func([]cloud.Listed) error) (bool, error) {
			return r.List(ctx, func(some []cloud.Listed) error {
				_ = page(some)
				return nil
			})
		}
	},
	"Alive tells no instance Gone that exists": func(m *wrongRegion, r cloud.Region) {
		m.alive = func(ctx context.Context, instances []string) (map[string]cloud.State, error) {
			states, err := r.Alive(ctx, instances[:min(len(instances), 1)])
			for _, id := range instances[min(len(instances), 1):] {
				states[id] = cloud.Gone // it is on no page
			}
			return states, err
		}
	},
	"Alive tells an instance that was stopped from one that runs": func(m *wrongRegion, r cloud.Region) {
		m.alive = func(ctx context.Context, instances []string) (map[string]cloud.State, error) {
			states, err := r.Alive(ctx, instances)
			for id, is := range states {
				if is == cloud.Stopped {
					states[id] = cloud.Gone // it has no pods
				}
			}
			return states, err
		}
	},
	"AssignExactly of one that is not free is ErrTaken, and returns the others": func(m *wrongRegion, r cloud.Region) {
		m.assign = func(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) ([]netip.Addr, error) {
			got, err := r.AssignExactly(ctx, instance, id, addrs, from)
			if err != nil {
				return nil, err // what came along leaks
			}
			return got, nil
		}
	},
	"AssignExactly finds those fine that the ENI has": func(m *wrongRegion, r cloud.Region) {
		m.assign = func(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) ([]netip.Addr, error) {
			list, _ := r.Node(cloud.Instance{ID: instance}).Interfaces(ctx)
			for _, i := range list {
				if i.ID == id && slices.Contains(i.Addresses, addrs[0]) {
					return nil, &cloud.Error{Op: "AssignExactly", Object: id, Kind: cloud.ErrTaken}
				}
			}
			return r.AssignExactly(ctx, instance, id, addrs, from)
		}
	},
	"AssignExactly moves what another ENI has from there": func(m *wrongRegion, r cloud.Region) {
		m.assign = func(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) ([]netip.Addr, error) {
			from.ENI = ""
			return r.AssignExactly(ctx, instance, id, addrs, from)
		}
	},
	"AssignExactly takes an address from no other ENI": func(m *wrongRegion, r cloud.Region) {
		m.assign = func(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) ([]netip.Addr, error) {
			for _, i := range r.Node(cloud.Instance{ID: "i-2"}).Known() {
				if from.ENI != "" && slices.Contains(i.Addresses, addrs[0]) {
					from.ENI = i.ID // whoever has it
				}
			}
			return r.AssignExactly(ctx, instance, id, addrs, from)
		}
	},
	crossSubnet: func(m *wrongRegion, r cloud.Region) {
		m.assign = func(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) ([]netip.Addr, error) {
			if from.Subnet != "" {
				return addrs, nil // somebody else routes them
			}
			return r.AssignExactly(ctx, instance, id, addrs, from)
		}
	},
	"AssignExactly of another subnet's addresses is ErrForbidden where the cloud can't": func(m *wrongRegion, r cloud.Region) {
		m.assign = func(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) ([]netip.Addr, error) {
			from.Subnet = ""
			return r.AssignExactly(ctx, instance, id, addrs, from)
		}
	},
	"Reserve keeps a range for AssignExactly": func(m *wrongRegion, _ cloud.Region) {
		m.reserve = func(context.Context, string, netip.Prefix) error { return nil }
	},
	"Reserve of a range that overlaps a reserved one is ErrTaken": func(m *wrongRegion, r cloud.Region) {
		m.reserve = func(ctx context.Context, subnet string, in netip.Prefix) error {
			if err := r.Reserve(ctx, subnet, in); cloud.Kind(err) != cloud.ErrTaken {
				return err
			}
			return nil // it is reserved
		}
	},
	"Reserve of what is no range of the subnet is ErrForbidden": func(m *wrongRegion, r cloud.Region) {
		m.reserve = func(ctx context.Context, subnet string, in netip.Prefix) error {
			return r.Reserve(ctx, subnet, in.Masked()) // it is what was meant
		}
	},
	"Unreserve ends what Reserve has made, and who has an address keeps it": func(m *wrongRegion, _ cloud.Region) {
		m.unreserve = func(context.Context, string, netip.Prefix) error { return nil }
	},
	"Forget drops what is known of an instance": func(m *wrongRegion, _ cloud.Region) {
		m.forget = func(string) {}
	},
}

// crossSubnet is the sentence of a cloud with that trait.
const crossSubnet = "AssignExactly puts another subnet's addresses on the ENI where the cloud can"

// wrongRegionEnv names the sentence whose mutant a process of this test runs the suite on.
const wrongRegionEnv = "CLOUDTEST_WRONG_REGION"

// elsewhere is a driver of a process that runs on no node.
type elsewhere struct{ driver.Driver }

func (elsewhere) Self(context.Context) (driver.Self, error) {
	return driver.Self{Instance: "i-0", VPC: "vpc"}, nil
}

// regionSubject is a simulated account with two instances.
func regionSubject(t *testing.T, wrong func(m *wrongRegion, r cloud.Region)) cloudtest.RegionSubject {
	a := sim.NewAccount(sim.Options{VPC: sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}}})
	for id, in := range map[string]string{"a": "10.0.0.0/23", "b": "10.0.2.0/24"} {
		if err := a.AddSubnet(sim.Subnet{ID: id, V4: netip.MustParsePrefix(in)}); err != nil {
			t.Fatal(err)
		}
	}
	a.AddType(sim.Type{Name: "small", ENIs: 4, V4: 8, V6: 8})
	for _, id := range []string{"i-1", "i-2"} {
		if _, err := a.AddInstance(sim.Instance{ID: id, Type: "small", Subnet: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	traits := sim.LikeEC2()
	traits.CrossSubnet = os.Getenv(wrongRegionEnv) == crossSubnet
	good := engine.NewRegion(elsewhere{a.Driver("", traits)}, engine.Options{Cluster: "blue", Subnets: []string{"a", "b"}})
	m := &wrongRegion{Region: good}
	wrong(m, good)
	return cloudtest.RegionSubject{Region: m, Instances: []string{"i-1", "i-2"}, Nobody: "i-9", Type: "small", Subnets: []string{"a", "b"},
		Types: func() int { return a.Calls()[sim.ActShape] },
		Looks: func() int { return a.Calls()[sim.ActDescribe] }, Check: a.Check, Stop: a.Stop}
}

func TestEachWrongRegionIsFoundByItsSentence(t *testing.T) {
	for sentence := range wrongRegions {
		t.Run(sentence, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheRegionSuiteOnAMutant$")
			c.Env = append(os.Environ(), wrongRegionEnv+"="+sentence)
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestTheRegionSuiteOnAMutant/"+strings.ReplaceAll(sentence, " ", "_")) || strings.Contains(string(out), "panic:") {
				t.Errorf("the sentence does not find a Region of which it does not hold: %v\n%s", err, out)
			}
		})
	}
}

// TestTheRegionSuiteOnAMutant is run in processes of TestEachWrongRegionIsFoundByItsSentence,
// and without a mutant on the Region that they make wrong.
func TestTheRegionSuiteOnAMutant(t *testing.T) {
	wrong := wrongRegions[os.Getenv(wrongRegionEnv)]
	if wrong == nil {
		wrong = func(*wrongRegion, cloud.Region) {}
	}
	cloudtest.RegionContractIn(t, synctest.Test, func(t *testing.T) cloudtest.RegionSubject { return regionSubject(t, wrong) })
}
