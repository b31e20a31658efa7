package drivertest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/drivertest"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// mutant is a good driver with one method that is wrong.
type mutant struct {
	driver.Driver
	create     func(ctx context.Context, c driver.Create) (driver.Interface, error)
	attach     func(ctx context.Context, a driver.Attach) (string, error)
	bind       func(ctx context.Context, id, attachment string) error
	remove     func(ctx context.Context, id, token string) error
	assign     func(ctx context.Context, a driver.Assign) (driver.Assigned, error)
	unassign   func(ctx context.Context, u driver.Unassign) error
	groups     func(ctx context.Context, id string, groups []string, token string) error
	interfaces func(ctx context.Context, f driver.Filter) ([]driver.Interface, error)
	subnets    func(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error)
	shapes     func(ctx context.Context, types []string) (map[string]driver.Shape, error)
	alive      func(ctx context.Context, instances []string) (map[string]cloud.State, error)
	reserve    func(ctx context.Context, r driver.Reservation) (string, error)
	unreserve  func(ctx context.Context, id string) error
	page       func(ctx context.Context, s driver.Scan) (driver.Page, error)
	traits     driver.Traits // where they have a Name
}

func (m *mutant) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	if m.create != nil {
		return m.create(ctx, c)
	}
	return m.Driver.Create(ctx, c)
}

func (m *mutant) Attach(ctx context.Context, a driver.Attach) (string, error) {
	if m.attach != nil {
		return m.attach(ctx, a)
	}
	return m.Driver.Attach(ctx, a)
}

func (m *mutant) Bind(ctx context.Context, id, attachment string) error {
	if m.bind != nil {
		return m.bind(ctx, id, attachment)
	}
	return m.Driver.Bind(ctx, id, attachment)
}

func (m *mutant) Delete(ctx context.Context, id, token string) error {
	if m.remove != nil {
		return m.remove(ctx, id, token)
	}
	return m.Driver.Delete(ctx, id, token)
}

func (m *mutant) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	if m.assign != nil {
		return m.assign(ctx, a)
	}
	return m.Driver.Assign(ctx, a)
}

func (m *mutant) Unassign(ctx context.Context, u driver.Unassign) error {
	if m.unassign != nil {
		return m.unassign(ctx, u)
	}
	return m.Driver.Unassign(ctx, u)
}

func (m *mutant) SetGroups(ctx context.Context, id string, groups []string, token string) error {
	if m.groups != nil {
		return m.groups(ctx, id, groups, token)
	}
	return m.Driver.SetGroups(ctx, id, groups, token)
}

func (m *mutant) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	if m.interfaces != nil {
		return m.interfaces(ctx, f)
	}
	return m.Driver.Interfaces(ctx, f)
}

func (m *mutant) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	if m.subnets != nil {
		return m.subnets(ctx, f)
	}
	return m.Driver.Subnets(ctx, f)
}

func (m *mutant) Shapes(ctx context.Context, types []string) (map[string]driver.Shape, error) {
	if m.shapes != nil {
		return m.shapes(ctx, types)
	}
	return m.Driver.Shapes(ctx, types)
}

func (m *mutant) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	if m.alive != nil {
		return m.alive(ctx, instances)
	}
	return m.Driver.Alive(ctx, instances)
}

func (m *mutant) Reserve(ctx context.Context, r driver.Reservation) (string, error) {
	if m.reserve != nil {
		return m.reserve(ctx, r)
	}
	return m.Driver.Reserve(ctx, r)
}

func (m *mutant) Unreserve(ctx context.Context, id string) error {
	if m.unreserve != nil {
		return m.unreserve(ctx, id)
	}
	return m.Driver.Unreserve(ctx, id)
}

func (m *mutant) Traits() driver.Traits {
	if m.traits.Name != "" {
		return m.traits
	}
	return m.Driver.Traits()
}

func (m *mutant) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	if m.page != nil {
		return m.page(ctx, s)
	}
	return m.Driver.Page(ctx, s)
}

// as makes an error another one.
func as(err error, change func(*driver.Error)) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	change(&out)
	return &out
}

// mutants are the wrong drivers by the sentence that finds them.
var mutants = map[string]func(m *mutant, d driver.Driver){
	"the token makes a repetition lead to the same ENI": func(m *mutant, d driver.Driver) {
		m.create = func(ctx context.Context, c driver.Create) (driver.Interface, error) {
			c.Token = ""
			return d.Create(ctx, c)
		}
	},
	"with other parameters the token is refused": func(m *mutant, d driver.Driver) {
		m.create = func(ctx context.Context, c driver.Create) (driver.Interface, error) {
			i, err := d.Create(ctx, c)
			return i, as(err, func(e *driver.Error) { e.Why = cloud.Other })
		}
	},
	"Attach of an ENI that is attached is refused: InUse": func(m *mutant, d driver.Driver) {
		m.attach = func(ctx context.Context, a driver.Attach) (string, error) {
			at, err := d.Attach(ctx, a)
			if driver.Reason(err) == cloud.InUse {
				return "", nil
			}
			return at, err
		}
	},
	"Attach attaches the ENI at the device index": func(m *mutant, d driver.Driver) {
		m.attach = func(ctx context.Context, a driver.Attach) (string, error) {
			a.Index = -1
			return d.Attach(ctx, a)
		}
	},
	"where Binds a bound ENI is deleted with its instance": func(m *mutant, _ driver.Driver) {
		m.bind = func(context.Context, string, string) error { return nil }
	},
	"where Binds an ENI that is not bound stays when its instance goes": func(m *mutant, d driver.Driver) {
		m.attach = func(ctx context.Context, a driver.Attach) (string, error) {
			at, err := d.Attach(ctx, a)
			if err == nil {
				err = d.Bind(ctx, a.ID, at)
			}
			return at, err
		}
	},
	"Attached selects no ENI of another instance": func(m *mutant, d driver.Driver) {
		m.interfaces = func(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
			list, err := d.Interfaces(ctx, f)
			if f.Attached.Instance == "" || err != nil {
				return list, err
			}
			theirs, err := d.Interfaces(ctx, driver.Filter{Attached: driver.Self{Instance: "i-2"}})
			return append(list, slices.DeleteFunc(theirs, func(i driver.Interface) bool { return i.Primary || i.Instance == f.Attached.Instance })...), err
		}
	},
	"Token selects those of Made with this token in the mark": func(m *mutant, d driver.Driver) {
		m.interfaces = func(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
			f.Token = ""
			return d.Interfaces(ctx, f)
		}
	},
	"Interfaces returns ENIs from all pages": func(m *mutant, d driver.Driver) {
		m.interfaces = func(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
			list, err := d.Interfaces(ctx, f)
			return list[:min(len(list), 3)], err
		}
	},
	"Page returns the ENIs of the VPC, page by page": func(m *mutant, d driver.Driver) {
		m.page = func(ctx context.Context, s driver.Scan) (driver.Page, error) {
			p, err := d.Page(ctx, s)
			if s.Next != "" && len(p.Interfaces) > 0 {
				p.Interfaces = p.Interfaces[1:]
			}
			return p, err
		}
	},
	"Page returns the ENIs of several instances, and no others": func(m *mutant, d driver.Driver) {
		m.page = func(ctx context.Context, s driver.Scan) (driver.Page, error) {
			s.Attached = s.Attached[:min(len(s.Attached), 1)]
			return d.Page(ctx, s)
		}
	},
	"Page returns the ENIs that were made for several instances, and no others": func(m *mutant, d driver.Driver) {
		m.page = func(ctx context.Context, s driver.Scan) (driver.Page, error) {
			s.Attached, s.Made = s.Made, nil
			return d.Page(ctx, s)
		}
	},
	"Requests name the actions of each method, and Buckets no others": func(m *mutant, d driver.Driver) {
		m.traits = d.Traits()
		m.traits.Buckets = map[string]cloud.Bucket{"Describe": {Burst: 1, PerSecond: 1}}
	},
	"Requests are what each method sends": func(m *mutant, d driver.Driver) {
		m.traits = d.Traits()
		m.traits.Requests = maps.Clone(m.traits.Requests)
		m.traits.Requests[driver.InterfacesByID] = []string{sim.ActDescribe, sim.ActShape}
	},
	"HidesPrimary: a Page lacks the primary ENIs of instances, else it has them": func(m *mutant, d driver.Driver) {
		m.page = func(ctx context.Context, s driver.Scan) (driver.Page, error) {
			p, err := d.Page(ctx, s)
			p.Interfaces = slices.DeleteFunc(p.Interfaces, func(i driver.Interface) bool { return i.Primary })
			return p, err
		}
	},
	"V6 is the primary IPv6 address unless MarksV6": func(m *mutant, d driver.Driver) {
		m.interfaces = func(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
			list, err := d.Interfaces(ctx, f)
			for at := range list {
				if i := &list[at]; i.V6.IsValid() {
					i.Singles, i.V6 = append(i.Singles, i.V6), driver.Interface{}.V6
				}
			}
			return list, err
		}
	},
	"Subnets returns those of the VPC that have all of the tags": func(m *mutant, d driver.Driver) {
		m.subnets = func(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
			for key := range f.Tags {
				if key != "team" {
					delete(f.Tags, key)
				}
			}
			return d.Subnets(ctx, f)
		}
	},
	"Types: Shapes returns what instances of the types may carry, and leaves out those that there are not": func(m *mutant, d driver.Driver) {
		m.shapes = func(ctx context.Context, types []string) (map[string]driver.Shape, error) {
			shapes, err := d.Shapes(ctx, types)
			for _, name := range types {
				shapes[name] = shapes[types[0]] // the first one's
			}
			return shapes, err
		}
	},
	"Alive tells no instance Gone that exists": func(m *mutant, _ driver.Driver) {
		m.alive = func(_ context.Context, instances []string) (map[string]cloud.State, error) {
			return map[string]cloud.State{instances[0]: cloud.Running}, nil // the page's first
		}
	},
	"Alive tells which instances surely exist no longer": func(m *mutant, d driver.Driver) {
		m.alive = func(ctx context.Context, instances []string) (map[string]cloud.State, error) {
			states, err := d.Alive(ctx, instances)
			for id := range states {
				states[id] = cloud.Exists
			}
			return states, err
		}
	},
	"Alive tells an instance that was stopped from one that runs": func(m *mutant, d driver.Driver) {
		m.alive = func(ctx context.Context, instances []string) (map[string]cloud.State, error) {
			states, err := d.Alive(ctx, instances)
			for id, is := range states {
				if is == cloud.Stopped {
					states[id] = cloud.Running
				}
			}
			return states, err
		}
	},
	"AllOrNothing: Assign puts all that it is asked for, or refuses; else it may put fewer": func(m *mutant, d driver.Driver) {
		m.assign = func(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
			got, err := d.Assign(ctx, a)
			if errors.Is(err, cloud.ErrSubnetFull) && a.Count.Singles > 1 {
				a.Count.Singles--
				return m.assign(ctx, a)
			}
			return got, err
		}
	},
	"Exact: Assign puts the addresses that it names": func(m *mutant, d driver.Driver) {
		m.assign = func(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
			a.Count, a.Addresses = driver.Count{Singles: a.Count.Singles + len(a.Addresses)}, nil
			return d.Assign(ctx, a)
		}
	},
	"Exact: Assign of an address that another ENI has is refused, AddressTaken, and none is put": func(m *mutant, d driver.Driver) {
		m.assign = func(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
			got, err := d.Assign(ctx, a)
			if driver.Reason(err) == cloud.AddressTaken && len(a.Addresses) > 1 {
				a.Addresses = a.Addresses[:1]
				_, _ = d.Assign(ctx, a) // what can be had
			}
			return got, err
		}
	},
	"Exact: Assign of an address out of the subnet is refused, and none is put": func(m *mutant, d driver.Driver) {
		m.assign = func(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
			got, err := d.Assign(ctx, a)
			if len(a.Addresses) > 0 && errors.Is(err, cloud.ErrForbidden) {
				a.Count, a.Addresses = driver.Count{Singles: len(a.Addresses)}, nil // the next best
				return d.Assign(ctx, a)
			}
			return got, err
		}
	},
	"Moves: Assign takes the addresses that it names from another ENI, if it is told to": func(m *mutant, d driver.Driver) {
		m.assign = func(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
			a.Take = false
			return d.Assign(ctx, a)
		}
	},
	"Moves: Assign of the primary address of another ENI is refused, AddressTaken": func(m *mutant, d driver.Driver) {
		m.assign = func(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
			got, err := d.Assign(ctx, a)
			return got, as(err, func(e *driver.Error) { e.Why = cloud.Other })
		}
	},
	"CrossSubnet: Assign puts the addresses of another subnet that it names, and Unassign takes them": func(m *mutant, d driver.Driver) {
		m.assign = func(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
			if a.Subnet != "" {
				a.On.ID = a.Subnet // which is no ENI
			}
			return d.Assign(ctx, a)
		}
	},
	"Keeps: Reserve keeps a range for addresses by name": func(m *mutant, d driver.Driver) {
		m.reserve = func(ctx context.Context, r driver.Reservation) (string, error) {
			r.Range = netip.PrefixFrom(r.Range.Addr(), r.Range.Addr().BitLen()) // one of two
			return d.Reserve(ctx, r)
		}
	},
	"Keeps: Reserve of a range that overlaps a reserved one, or is out of the subnet, is refused": func(m *mutant, d driver.Driver) {
		m.reserve = func(ctx context.Context, r driver.Reservation) (string, error) {
			id, err := d.Reserve(ctx, r)
			if errors.Is(err, cloud.ErrForbidden) {
				return "scr-0", nil // it is as the caller wants it
			}
			return id, err
		}
	},
	"Keeps: Unreserve ends a reservation, and who has an address of it keeps it": func(m *mutant, d driver.Driver) {
		m.unreserve = func(context.Context, string) error { return nil }
	},
	"Keeps: a reservation whose answer is lost is ErrUnknown, one that is throttled has not happened": func(m *mutant, d driver.Driver) {
		m.reserve = func(ctx context.Context, r driver.Reservation) (string, error) {
			id, err := d.Reserve(ctx, r)
			if errors.Is(err, cloud.ErrThrottled) {
				return d.Reserve(ctx, r)
			}
			return id, err
		}
	},
	"Unassign of an address that the ENI lacks is refused, NoSuchAddress, and nothing happens": func(m *mutant, d driver.Driver) {
		m.unassign = func(ctx context.Context, u driver.Unassign) error {
			if err := d.Unassign(ctx, u); driver.Reason(err) != cloud.NoSuchAddress {
				return err
			}
			return nil // it is as the caller wants it
		}
	},
	"SetGroups replaces the security groups of an ENI": func(m *mutant, d driver.Driver) {
		m.groups = func(ctx context.Context, id string, groups []string, token string) error {
			return d.SetGroups(ctx, id, append(slices.Clone(groups), "sg-nodes"), token)
		}
	},
	"Delete of an ENI that is attached is refused: Busy or InUse": func(m *mutant, d driver.Driver) {
		m.remove = func(ctx context.Context, id, token string) error {
			return as(d.Delete(ctx, id, token), func(e *driver.Error) { e.Why = cloud.Other })
		}
	},
	"after ErrUnavailable nothing has happened, and nothing is repeated": func(m *mutant, d driver.Driver) {
		m.remove = func(ctx context.Context, id, token string) error {
			err := d.Delete(ctx, id, token)
			if driver.Reason(err) == cloud.Other && errors.Is(err, cloud.ErrUnavailable) {
				return d.Delete(ctx, id, token)
			}
			return err
		}
	},
	"a change whose answer is lost is ErrUnknown, a read ErrUnavailable": func(m *mutant, d driver.Driver) {
		m.remove = func(ctx context.Context, id, token string) error {
			return as(d.Delete(ctx, id, token), func(e *driver.Error) {
				if e.Kind == cloud.ErrUnknown {
					e.Kind = cloud.ErrUnavailable
				}
			})
		}
	},
	"a missing right is ErrForbidden, and nothing has happened": func(m *mutant, d driver.Driver) {
		m.create = func(ctx context.Context, c driver.Create) (driver.Interface, error) {
			i, err := d.Create(ctx, c)
			if err != nil {
				err = fmt.Errorf("create: %s", err)
			}
			return i, err
		}
	},
	"a call whose context ends returns": func(m *mutant, d driver.Driver) {
		m.assign = func(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
			return d.Assign(context.WithoutCancel(ctx), a)
		}
	},
}

// mutantEnv names the sentence whose mutant a process of this test runs the suite on.
const mutantEnv = "DRIVERTEST_MUTANT"

func TestEachWrongDriverIsFoundByItsSentence(t *testing.T) {
	for sentence := range mutants {
		t.Run(sentence, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheSuiteOnAMutant$/^suite$/^"+strings.ReplaceAll(sentence, " ", "_")+"$")
			cmd.Env = append(os.Environ(), mutantEnv+"="+sentence)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL: TestTheSuiteOnAMutant/suite/"+strings.ReplaceAll(sentence, " ", "_")) {
				t.Errorf("the sentence holds for a driver of which it does not: %v\n%s", err, out)
			}
			if strings.Contains(string(out), "panic:") {
				t.Errorf("the suite panics:\n%s", out)
			}
		})
	}
}

// TestTheSuiteOnAMutant fails in a process that TestEachWrongDriverIsFoundByItsSentence
// starts.
func TestTheSuiteOnAMutant(t *testing.T) {
	mutate := mutants[os.Getenv(mutantEnv)]
	if mutate == nil {
		t.Skip("it runs in a process of TestEachWrongDriverIsFoundByItsSentence")
	}
	t.Run("suite", func(t *testing.T) {
		drivertest.ContractIn(t, synctest.Test, func(t *testing.T) drivertest.Subject {
			traits := sim.LikeEC2()
			traits.CrossSubnet = true
			return open(t, traits, sim.Options{}).start(t, "small").subject(t, func(d driver.Driver) driver.Driver {
				m := &mutant{Driver: d}
				mutate(m, d)
				return m
			})
		})
	})
}
