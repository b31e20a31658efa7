package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// edited is a driver whose answers a test changes.
type edited struct {
	driver.Driver
	shape      func(driver.Shape) driver.Shape
	subnets    func([]driver.Subnet) []driver.Subnet
	interfaces func([]driver.Interface) []driver.Interface
	refuse     func(method, id string) error
	gone       func(instances []string) error
	noSubnets  func(driver.SubnetFilter) error
}

// withoutMACs tells wrong of all ENIs but the primary one, so that they are left out.
func withoutMACs(all []driver.Interface) []driver.Interface {
	for k := range all {
		if !all[k].Primary {
			all[k].MAC = ""
		}
	}
	return all
}

func (d *edited) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	if d.gone != nil {
		if err := d.gone(instances); err != nil {
			return nil, err
		}
	}
	return d.Driver.Alive(ctx, instances)
}

func (d *edited) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	out, err := d.Driver.Shape(ctx, s)
	if d.shape != nil {
		out = d.shape(out)
	}
	return out, err
}

func (d *edited) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	if d.noSubnets != nil {
		if err := d.noSubnets(f); err != nil {
			return nil, err
		}
	}
	out, err := d.Driver.Subnets(ctx, f)
	if d.subnets != nil {
		out = d.subnets(out)
	}
	return out, err
}

func (d *edited) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	out, err := d.Driver.Interfaces(ctx, f)
	if d.interfaces != nil {
		out = d.interfaces(out)
	}
	return out, err
}

func (d *edited) refused(method, id string) error {
	if d.refuse == nil {
		return nil
	}
	return d.refuse(method, id)
}

func (d *edited) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	if err := d.refused("Create", ""); err != nil {
		return driver.Interface{}, err
	}
	return d.Driver.Create(ctx, c)
}

func (d *edited) Detach(ctx context.Context, i driver.Interface, token string) error {
	if err := d.refused("Detach", i.ID); err != nil {
		return err
	}
	return d.Driver.Detach(ctx, i, token)
}

func (d *edited) Delete(ctx context.Context, id, token string) error {
	if err := d.refused("Delete", id); err != nil {
		return err
	}
	return d.Driver.Delete(ctx, id, token)
}

func (d *edited) SetGroups(ctx context.Context, id string, groups []string, token string) error {
	if err := d.refused("SetGroups", id); err != nil {
		return err
	}
	return d.Driver.SetGroups(ctx, id, groups, token)
}

// shows fails the test unless Interfaces shows so many ENIs.
func shows(t *testing.T, n *engine.Node, want int) {
	t.Helper()
	if list, err := n.Interfaces(t.Context()); err != nil || len(list) != want {
		t.Fatalf("%d ENIs are shown, %v, %v; want %d", len(list), n.Quarantined(), err, want)
	}
}

func TestAnIndexIsNotGivenTwiceWhileALookLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a"}})
		shows(t, n, 1)
		a, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 1})
		must(t, err)
		d.interfaces = func(all []driver.Interface) (out []driver.Interface) {
			for _, i := range all {
				if i.ID != a.ID {
					out = append(out, i)
				}
			}
			return out
		}
		time.Sleep(time.Second)
		shows(t, n, 2) // by what the call has done
		d.interfaces = nil
		b, err := n.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 1})
		if err != nil || a.Index != 1 || b.Index != 2 {
			t.Errorf("the ENIs have the indexes %d and %d, %v", a.Index, b.Index, err)
		}
	})
}

func TestCreatesThatAreRefusedUseUpNoIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a"}})
		shows(t, n, 1)
		for k := range 200 {
			d.refuse = func(string, string) error {
				return &driver.Error{Kind: []error{cloud.ErrLimit, cloud.ErrThrottled}[k%2], Detail: "no"}
			}
			if _, err := n.CreateInterface(t.Context(), cloud.Create{Token: fmt.Sprint("refused-", k), Subnet: "a", V4: 1}); err == nil {
				t.Fatal("it was not refused")
			}
		}
		d.refuse = nil
		i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "good", Subnet: "a", V4: 1})
		if err != nil || i.Index != 1 {
			t.Errorf("the first ENI has index %d, %v", i.Index, err)
		}
	})
}

func TestASubnetThatGetsARangeIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		has6 := false
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		d.subnets = func(all []driver.Subnet) []driver.Subnet {
			for i := range all {
				if !has6 {
					all[i].V6 = netip.Prefix{}
				}
			}
			return all
		}
		d.interfaces = func(all []driver.Interface) []driver.Interface {
			for i := range all {
				if has6 && all[i].Primary {
					all[i].V6 = netip.MustParseAddr("fd00:10::77")
				}
			}
			return all
		}
		n := engine.New(d, engine.Options{})
		shows(t, n, 1)
		has6 = true
		shows(t, n, 1)
	})
}

// hiding is a driver whose describes show an ENI so long after it was made.
func hiding(d driver.Driver, lag time.Duration) *edited {
	return &edited{Driver: d, interfaces: func(all []driver.Interface) []driver.Interface {
		return slices.DeleteFunc(all, func(i driver.Interface) bool { return !i.Primary && time.Since(i.Created) < lag })
	}}
}

// Describes may lag for longer than they usually do. That is no reason for a second ENI: the
// account has its price and its quota, and a sweep gets what is left only much later.
func TestALongLagMakesNoSecondENI(t *testing.T) {
	for name, v := range steps() {
		for _, who := range []string{"the same process", "a later process"} {
			t.Run(name+"/"+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, v.traits, sim.Options{}, v.e)
					start := func() *engine.Node {
						return engine.New(hiding(w.Driver("i-1", w.traits), time.Minute), engine.Options{Subnets: []string{"a"}, Prefixes: w.o.Prefixes, IPv6: w.o.IPv6})
					}
					n, calls := start(), 0
					w.FailNext(sim.ActCreate, sim.Fault{Answer: sim.Lost})
					i := w.insist(t, func() *engine.Node {
						if calls++; who == "a later process" {
							n = start()
						}
						if made := w.truth(); len(made) > 1 {
							t.Fatalf("%d calls have made %d ENIs", calls-1, len(made))
						}
						return n
					}, w.newENI())
					if made := w.truth(); len(made) != 1 || made[0].ID != i.ID {
						t.Errorf("%s was returned, and there are %+v", i.ID, made)
					}
				})
			})
		}
	}
}

// Each look would cost a request more: an IPv4 range never changes.
func TestAWrongIPv4AddressDoesNotAskForTheSubnetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		_, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 1})
		must(t, err)
		n := engine.New(&edited{Driver: w.Driver("i-1", w.traits), interfaces: func(all []driver.Interface) []driver.Interface {
			for i := range all {
				if !all[i].Primary {
					all[i].V4 = netip.MustParseAddr("192.0.2.7")
				}
			}
			return all
		}}, engine.Options{})
		shows(t, n, 1)
		before := w.Calls()[sim.ActSubnets]
		shows(t, n, 1)
		shows(t, n, 1)
		if asked := w.Calls()[sim.ActSubnets] - before; asked > 0 {
			t.Errorf("two more looks asked for the subnet %d times", asked)
		}
	})
}

// As on an instance type with EFA: the second card takes nothing but an EFA-only interface,
// which has no address, and all cards together fewer than the sum of them.
func TestInterfacesOfOtherKindsTakeTheRoomOfTheirOwnNetworkCard(t *testing.T) {
	for name, tt := range map[string]struct {
		total int
		cards []int // as EC2 has them
		shown []int // those that take ENIs
		has   []int // interfaces that pods can't use, by card
		want  int
	}{
		"a card of its own":               {6, []int{3, 1, 2}, []int{3, 0, 2}, []int{0, 1, 0}, 5},
		"on each card":                    {6, []int{3, 1, 2}, []int{3, 0, 2}, []int{1, 1, 1}, 3},
		"fewer in all than on the cards":  {4, []int{3, 1, 2}, []int{3, 0, 2}, []int{0, 1, 0}, 3},
		"the first card alone takes ENIs": {4, []int{3, 1}, []int{3, 0}, []int{0, 1}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				w.third(t, sim.Type{Name: "efa", ENIs: tt.total, Cards: tt.cards, V4: 8})
				for card, n := range tt.has {
					for range n {
						w.unmanaged(t, "i-3", sim.Attach{Card: card, Index: -1})
					}
				}
				n := engine.New(&edited{Driver: w.Driver("i-3", w.traits), shape: func(s driver.Shape) driver.Shape {
					s.Cards = tt.shown
					return s
				}}, engine.Options{})
				limits, err := n.Limits(t.Context())
				must(t, err)
				if limits.ENIs != tt.want {
					t.Errorf("%d ENIs are for pods, want %d", limits.ENIs, tt.want)
				}
				for made := 1; made < tt.want; made++ {
					_, err := n.CreateInterface(t.Context(), cloud.Create{Token: fmt.Sprint("t", made), Subnet: "a", V4: 1})
					must(t, err)
				}
				shows(t, n, tt.want)
				must(t, w.Check())
			})
		})
	}
}

// The table of instance types knows the first card alone.
func TestENIsOnFurtherCardsAreNotLeftOutWhileTheCardsAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		w.third(t, sim.Type{Name: "two-cards", ENIs: 4, Cards: []int{2, 2}, V4: 8})
		for _, token := range []string{"a", "b", "c"} {
			_, err := w.node("i-3").CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 1})
			must(t, err)
		}
		down := true
		n := engine.New(&edited{Driver: w.Driver("i-3", w.traits), shape: func(s driver.Shape) driver.Shape {
			if down {
				s.ENIs, s.Cards, s.Builtin = 2, nil, errors.New("no answer")
			}
			return s
		}}, engine.Options{})
		if list, err := n.Interfaces(t.Context()); !errors.Is(err, cloud.ErrUnavailable) {
			t.Errorf("without the cards %d ENIs are shown, %v", len(list), err)
		}
		down = false
		shows(t, n, 4)
	})
}

func TestASweepGoesOnBehindAnENIThatCantBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Cluster: "c"})
		var ids []string
		for _, token := range []string{"a", "b", "c"} {
			i, err := w.node("i-2").CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 1})
			must(t, err)
			must(t, w.Detach(i.ID))
			ids = append(ids, i.ID)
		}
		must(t, w.Terminate("i-2"))
		time.Sleep(time.Hour)
		n := engine.New(&edited{Driver: w.Driver("i-1", w.traits), refuse: func(_, id string) error {
			if id == ids[0] {
				return &driver.Error{Kind: cloud.ErrForbidden, Detail: "UnauthorizedOperation"}
			}
			return nil
		}}, engine.Options{Cluster: "c"})
		_, err := n.Sweep(t.Context(), time.Minute)
		must(t, err)
		deleted, err := n.Sweep(t.Context(), time.Minute)
		if len(deleted) != 2 || err == nil || !strings.Contains(err.Error(), ids[0]) {
			t.Errorf("deleted %v, %v; want the two besides %s", deleted, err, ids[0])
		}
	})
}

// Some clouds tell of one instance a request: a sweep asks for few, and the next for others.
func TestASweepAsksForFewInstancesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Cluster: "ours"})
		var left []string
		for at := range 25 {
			instance := fmt.Sprintf("i-gone-%02d", at)
			if at%2 == 0 { // its node looks after its own, and may be slow
				instance = fmt.Sprintf("i-here-%02d", at)
				_, err := w.AddInstance(sim.Instance{ID: instance, Type: "small", Subnet: "a"})
				must(t, err)
			}
			if ids := w.leak(t, instance, "ours", 1); at%2 == 1 {
				left = append(left, ids...)
			}
		}
		time.Sleep(2 * time.Hour)
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		most, asked := 0, map[string]bool{}
		d.gone = func(instances []string) error {
			most = max(most, len(instances))
			for _, i := range instances {
				asked[i] = true
			}
			return nil
		}
		n := engine.New(d, engine.Options{Cluster: "ours"})
		var deleted []string
		for range 7 {
			deleted = append(deleted, w.sweep(t, n)...)
		}
		if slices.Sort(deleted); most > 10 || len(asked) != 25 || !slices.Equal(deleted, slices.Sorted(slices.Values(left))) {
			t.Errorf("up to %d instances a sweep, %d in all; deleted %v, want %v", most, len(asked), deleted, left)
		}
	})
}

// One instance that can't be told of must not keep the others' ENIs for ever.
func TestASweepGoesOnBehindInstancesThatCantBeToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Cluster: "ours"})
		for at := range 15 {
			w.leak(t, fmt.Sprintf("i-gone-%02d", at), "ours", 1)
		}
		time.Sleep(2 * time.Hour)
		d := &edited{Driver: w.Driver("i-1", w.traits), gone: func(instances []string) error {
			if slices.Contains(instances, "i-gone-03") {
				return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "bad answer"}
			}
			return nil
		}}
		n := engine.New(d, engine.Options{Cluster: "ours"})
		deleted := 0
		for range 10 {
			ids, _ := n.Sweep(t.Context(), time.Hour)
			deleted += len(ids)
		}
		if deleted == 0 {
			t.Error("nothing was deleted")
		}
	})
}

func TestADetachThatIsRefusedToTheEndIsToldInTheCloudsWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a"}})
		i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 1})
		must(t, err)
		d.refuse = func(string, string) error {
			return &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.Busy, Detail: "Eni.Locked: somebody has locked it"}
		}
		if err := n.DeleteInterface(t.Context(), i.ID); err == nil || !strings.Contains(err.Error(), "Eni.Locked") {
			t.Errorf("DeleteInterface: %v", err)
		}
	})
}

func TestUpkeepGoesOnBehindARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		for _, id := range []string{"sg-1", "sg-2"} {
			w.AddGroup(sim.Group{ID: id, Name: id})
		}
		w.o.SecurityGroups = []string{"sg-1"}
		for _, token := range []string{"a", "b", "c"} {
			_, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: 1})
			must(t, err)
		}
		first := ""
		n := engine.New(&edited{Driver: w.Driver("i-1", w.traits), refuse: func(_, id string) error {
			if first = cmp.Or(first, id); id != first {
				return nil
			}
			return &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.Unauthorized, Detail: "UnauthorizedOperation"}
		}}, engine.Options{SecurityGroups: []string{"sg-2"}})
		shows(t, n, 4)
		if changed, err := n.Upkeep(t.Context()); err == nil || len(changed) != 2 || !strings.Contains(err.Error(), first) {
			t.Errorf("changed %v, and the error is %v", changed, err)
		}
	})
}
