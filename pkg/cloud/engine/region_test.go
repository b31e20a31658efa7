package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// region is the cloud of all instances, by a driver that runs on none of them.
func (w *world) region(o engine.Options) *engine.Region {
	o.Subnets = []string{"a", "b"}
	o.Prefixes, o.IPv6 = w.o.Prefixes, w.o.IPv6
	if o.Times = w.o.Times; o.Times == (driver.Times{}) {
		o.Times = driver.Times{Poll: time.Millisecond, Slow: 5 * time.Millisecond, Usual: time.Millisecond, Settle: 20 * time.Millisecond, Wait: 10 * time.Second}
	}
	return engine.NewRegion(elsewhere{w.Driver("", w.traits)}, o)
}

// elsewhere is a driver of a process on an instance of the VPC that is no node.
type elsewhere struct{ driver.Driver }

func (elsewhere) Self(context.Context) (driver.Self, error) {
	return driver.Self{Instance: "i-0", VPC: "vpc"}, nil
}

// Shape is that of a virtual machine: where no page shows primary ENIs, pods have none there.
func (d elsewhere) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	shape, err := d.Driver.Shape(ctx, s)
	shape.NoPrimary = d.Traits().HidesPrimary
	return shape, err
}

func TestARegionOfTheEngineKeepsItsContract(t *testing.T) {
	for name, open := range variants() {
		t.Run(name, func(t *testing.T) {
			cloudtest.RegionContractIn(t, synctest.Test, func(t *testing.T) cloudtest.RegionSubject {
				w := open(t)
				return cloudtest.RegionSubject{Region: w.region(engine.Options{Cluster: "blue"}), Instances: []string{"i-1", "i-2"}, Nobody: "i-9", Type: "small", Subnets: []string{"a", "b"},
					Types: func() int { return w.Calls()[sim.ActShape] },
					Lag:   w.Options().Lag, Check: w.Check, Stop: w.Stop, Looks: func() int { return w.Calls()[sim.ActDescribe] }}
			})
		})
	}
	t.Run("one NIC", func(t *testing.T) {
		cloudtest.RegionContractIn(t, synctest.Test, func(*testing.T) cloudtest.RegionSubject {
			return cloudtest.RegionSubject{Region: engine.NewRegion(newNimbusCloud().driver("i-1"), engine.Options{}), Instances: []string{"i-1", "i-2"}, Nobody: "i-9"}
		})
	})
}

// paging is a driver whose pages tests hear of, and make fail.
type paging struct {
	elsewhere
	before func(driver.Scan) error
}

func (d paging) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	if err := d.before(s); err != nil {
		return driver.Page{}, err
	}
	return d.elsewhere.Page(ctx, s)
}

// many is a Region of nodes i-1 to i-7, each with an ENI besides its own, of which a request
// names three and shows five ENIs, and what its pages were asked for.
func many(t *testing.T, before func(driver.Scan) error) (w *world, r *engine.Region, scans *[]driver.Scan) {
	t.Helper()
	traits := sim.LikeEC2()
	traits.PerScan, traits.PageSize = 3, 5
	w = newWorld(t, traits, sim.Options{}, engine.Options{})
	scans = &[]driver.Scan{}
	d := paging{elsewhere{w.Driver("", traits)}, func(s driver.Scan) error {
		*scans = append(*scans, s)
		return before(s)
	}}
	r = engine.NewRegion(d, engine.Options{Subnets: []string{"a"}})
	for n := 1; n <= 7; n++ {
		id := fmt.Sprintf("i-%d", n)
		if n > 2 {
			_, err := w.AddInstance(sim.Instance{ID: id, Type: "small", Subnet: "a"})
			must(t, err)
		}
		_, err := r.Node(cloud.Instance{ID: id}).CreateInterface(t.Context(), cloud.Create{Token: "t-" + id, Subnet: "a", V4: 2})
		must(t, err)
	}
	return w, r, scans
}

func TestManyNodesAreDescribedByTheFewestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, scans := many(t, func(driver.Scan) error { return nil })
		for _, step := range []struct {
			nodes []string
			want  []driver.Scan
		}{
			// How many pages the VPC has is not known: by name all of them take more.
			{nil, []driver.Scan{{VPC: "vpc"}, {VPC: "vpc"}, {VPC: "vpc"}}},
			// All that are attached nowhere are known from there, so that names do.
			{[]string{"i-2", "i-5"}, []driver.Scan{{Attached: []string{"i-2", "i-5"}}}},
			{nil, []driver.Scan{{VPC: "vpc"}, {VPC: "vpc"}, {VPC: "vpc"}}},
		} {
			*scans = nil
			described := w.Calls()[sim.ActDescribe]
			views, err := r.Look(t.Context(), step.nodes)
			must(t, err)
			got := slices.Clone(*scans)
			for at := range got {
				got[at].Next = ""
			}
			if !slices.EqualFunc(got, step.want, func(a, b driver.Scan) bool {
				return a.VPC == b.VPC && slices.Equal(a.Attached, b.Attached) && len(a.Made) == len(b.Made)
			}) {
				t.Errorf("a look at %v asks for %+v, want %+v", step.nodes, got, step.want)
			}
			if n := w.Calls()[sim.ActDescribe] - described; n != len(step.want) {
				t.Errorf("a look at %v takes %d requests, want %d", step.nodes, n, len(step.want))
			}
			for id, v := range views {
				if len(v.Interfaces) != 2 || v.Err != nil || v.Interfaces[1].Token != "t-"+id {
					t.Errorf("the view of %s is %+v", id, v)
				}
			}
		}
		// Its mark alone tells of an ENI that somebody has detached.
		list, err := r.Node(cloud.Instance{ID: "i-5"}).Interfaces(t.Context())
		must(t, err)
		time.Sleep(time.Minute) // then it is no call of this Region any more
		must(t, w.Detach(list[1].ID))
		*scans = nil
		views, err := r.Look(t.Context(), []string{"i-2", "i-5"})
		must(t, err)
		if v := views["i-5"].Interfaces; len(v) != 2 || v[1].ID != list[1].ID || v[1].Index != -1 {
			t.Errorf("an ENI that was detached is shown as %+v", v)
		}
		if len(*scans) != 2 || !slices.Equal((*scans)[1].Made, []string{"i-5"}) {
			t.Errorf("it is looked for by %+v", *scans)
		}
	})
}

func TestAPageThatIsLostLetsTheLookBeginAnew(t *testing.T) {
	for lost, good := range map[int]bool{1: true, 2: true, 3: false} {
		synctest.Test(t, func(t *testing.T) {
			left := 0
			_, r, scans := many(t, func(s driver.Scan) error {
				if s.Next != "" && left > 0 {
					left--
					return &driver.Error{Kind: cloud.ErrUnavailable, Why: cloud.PageLost}
				}
				return nil
			})
			left = lost
			*scans = nil
			views, err := r.Look(t.Context(), nil)
			if good != (err == nil) || good && len(views) != 7 || !good && !errors.Is(err, cloud.ErrUnavailable) {
				t.Errorf("after %d lost pages a look has %d views, %v", lost, len(views), err)
			}
			if want := 2*lost + 3; good && len(*scans) != want {
				t.Errorf("after %d lost pages it took %d requests, want %d", lost, len(*scans), want)
			}
		})
	}
}

func TestAListWhosePagesGetLostIsNotComplete(t *testing.T) {
	for lost, good := range map[int]bool{0: true, 2: true, 3: false} {
		synctest.Test(t, func(t *testing.T) {
			left := 0
			w, r, _ := many(t, func(s driver.Scan) error {
				if s.Next != "" && left > 0 {
					left--
					return &driver.Error{Kind: cloud.ErrUnavailable, Why: cloud.PageLost}
				}
				return nil
			})
			must(t, w.Update(func(tx *sim.Tx) error {
				_, err := tx.Create(sim.Create{Subnet: "a", Tags: map[string]string{"whose": "nobody knows"}})
				return err
			}))
			left = lost
			shown := map[string]cloud.Listed{}
			complete, err := r.List(t.Context(), func(some []cloud.Listed) error {
				for _, i := range some {
					shown[i.ID] = i
				}
				return nil
			})
			must(t, err)
			if complete != good || good && len(shown) != 15 || !good && len(shown) != 5 {
				t.Errorf("after %d lost pages a list of %d ENIs is complete: %v", lost, len(shown), complete)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		_, r, _ := many(t, func(driver.Scan) error { return &driver.Error{Kind: cloud.ErrThrottled} })
		complete, err := r.List(t.Context(), func([]cloud.Listed) error { return nil })
		if complete || !errors.Is(err, cloud.ErrThrottled) {
			t.Errorf("a list that is throttled is complete: %v, %v", complete, err)
		}
	})
}

// What was done while the pages came counts over them, however long they took.
func TestWhatIsDoneDuringALongLookIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var during func()
		w, r, _ := many(t, func(s driver.Scan) error {
			if s.Next != "" && during != nil {
				during()
				during = nil
				time.Sleep(time.Minute)
			}
			return nil
		})
		n := r.Node(cloud.Instance{ID: "i-1"})
		list, err := n.Interfaces(t.Context())
		must(t, err)
		var late []netip.Addr
		during = func() {
			late, err = n.AssignAddresses(t.Context(), list[1].ID, eni.IPv4, 1)
			must(t, err)
		}
		_, err = r.Look(t.Context(), nil)
		must(t, err)
		before := w.Calls()[sim.ActDescribe]
		must(t, n.UnassignAddresses(t.Context(), list[1].ID, late))
		if asked := w.Calls()[sim.ActDescribe] - before; asked != 0 || len(late) != 1 {
			t.Errorf("to release %v it has to look %d times: the look has made it forget", late, asked)
		}
	})
}

// gate is an Admit that counts, and that refuses an action.
type gate struct {
	mu     sync.Mutex
	passed map[string]int
	ended  map[string]int
	refuse string
}

func (g *gate) end(action string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.ended[action]++
	}
}

func (g *gate) admit(_ context.Context, action string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if action == g.refuse {
		return errors.New("no token is left")
	}
	g.passed[action]++
	return nil
}

func TestEachRequestIsAdmittedByItsAction(t *testing.T) {
	for name, traits := range map[string]driver.Traits{"like EC2": sim.LikeEC2(), "like BCE": sim.LikeBCE()} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, traits, sim.Options{}, engine.Options{IPv6: true})
			g := &gate{passed: map[string]int{}, ended: map[string]int{}}
			r := w.region(engine.Options{Admit: g.admit, Ended: g.end, Cluster: "c", SecurityGroups: []string{"g"}})
			w.AddGroup(sim.Group{ID: "g"})
			n := r.Node(cloud.Instance{ID: "i-1"})
			_, err := n.Limits(t.Context())
			must(t, err)
			made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 2, V6: 1})
			must(t, err)
			must(t, n.UnassignAddresses(t.Context(), made.ID, made.Addresses[:1]))
			_, err = r.AssignExactly(t.Context(), "i-1", made.ID, made.Addresses[:1], cloud.Origin{})
			must(t, err)
			_, err = r.Look(t.Context(), nil)
			must(t, err)
			_, err = r.Subnets(t.Context())
			must(t, err)
			_, err = r.Alive(t.Context(), []string{"i-9"})
			must(t, err)
			_, _, err = r.Sweep(t.Context(), time.Hour)
			must(t, err)
			must(t, n.DeleteInterface(t.Context(), made.ID))
			_, err = r.List(t.Context(), func([]cloud.Listed) error { return nil })
			must(t, err)
			if traits.Types {
				_, err = r.Limits(t.Context(), []string{"small", "large"})
				must(t, err)
			}
			if in := netip.MustParsePrefix("10.0.1.64/28"); traits.Keeps {
				must(t, r.Reserve(t.Context(), "a", in))
				must(t, r.Unreserve(t.Context(), "a", in))
			}
			if !maps.Equal(g.passed, w.Calls()) || len(g.passed) < 10 {
				t.Errorf("%s: admitted were %v, made %v", name, g.passed, w.Calls())
			}
			if !maps.Equal(g.ended, w.Calls()) {
				t.Errorf("%s: of these it was told how they ended: %v, made %v", name, g.ended, w.Calls())
			}
			before := w.Calls()
			g.refuse = sim.ActCreate
			_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "u", Subnet: "a", V4: 2})
			if !errors.Is(err, cloud.ErrThrottled) || w.Calls()[sim.ActCreate] != before[sim.ActCreate] {
				t.Errorf("%s: what is not admitted is %v, made %v", name, err, w.Calls())
			}
		})
	}
}

// hanging is a driver whose Assign answers when ctx ends.
type hanging struct{ elsewhere }

func (hanging) Assign(ctx context.Context, _ driver.Assign) (driver.Assigned, error) {
	<-ctx.Done()
	return driver.Assigned{}, &driver.Error{Kind: cloud.ErrUnknown, Detail: ctx.Err().Error()}
}

// Each request ends by its limit, counted from when it was admitted, and its outcome is unknown then.
func TestAnAdmittedRequestEndsByItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		var admitted time.Time
		o := engine.Options{Subnets: []string{"a"}, Limit: 5 * time.Second, Admit: func(_ context.Context, action string) error {
			time.Sleep(time.Minute)
			if action == sim.ActAssign {
				admitted = time.Now()
			}
			return nil
		}}
		n := engine.NewRegion(hanging{elsewhere{w.Driver("", w.traits)}}, o).Node(cloud.Instance{ID: "i-1"})
		list, err := n.Interfaces(t.Context())
		must(t, err)
		for range 2 {
			// What came after all is looked for a little longer.
			_, err = n.AssignAddresses(t.Context(), list[0].ID, eni.IPv4, 1)
			if took := time.Since(admitted); !errors.Is(err, cloud.ErrUnknown) || took < o.Limit {
				t.Errorf("after %s: %v", took, err)
			}
		}
	})
}

// A move has one outcome, too. Of an ENI that nobody of this cluster has made nothing is taken.
func TestALostAnswerToAMoveIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		r := w.region(engine.Options{})
		made, err := r.Node(cloud.Instance{ID: "i-1"}).CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 1})
		must(t, err)
		theirs, err := r.Node(cloud.Instance{ID: "i-2"}).CreateInterface(t.Context(), cloud.Create{Token: "u", Subnet: "a", V4: 2})
		must(t, err)
		w.FailNext(sim.ActAssign, sim.Fault{Answer: sim.Lost})
		from := cloud.Origin{ENI: theirs.ID}
		got, err := r.AssignExactly(t.Context(), "i-1", made.ID, theirs.Addresses[:1], from)
		must(t, err)
		if !slices.Equal(got, theirs.Addresses[:1]) || w.Calls()[sim.ActAssign] != 1 {
			t.Errorf("a move without an answer returns %v after %d requests", got, w.Calls()[sim.ActAssign])
		}
		w.FailNext(sim.ActAssign, sim.Fault{Err: cloud.ErrThrottled})
		if got, err = r.AssignExactly(t.Context(), "i-1", made.ID, theirs.Addresses[1:], from); !errors.Is(err, cloud.ErrThrottled) || len(got) > 0 {
			t.Errorf("a move that is throttled returns %v, %v", got, err)
		}
		for whose, tags := range map[string]map[string]string{
			"nobody's": nil, "another cluster's": {"enipool/token": "v", "enipool/node": "i-7", "enipool/cluster": "green"},
		} {
			var foreign sim.Interface
			must(t, w.Update(func(tx *sim.Tx) error {
				foreign, err = tx.Create(sim.Create{Subnet: "a", Tags: tags, AddressRequest: sim.AddressRequest{CountV4: 1}})
				return err
			}))
			if got, err = r.AssignExactly(t.Context(), "i-1", made.ID, foreign.V4, cloud.Origin{ENI: foreign.ID}); !errors.Is(err, cloud.ErrForbidden) || len(got) > 0 {
				t.Errorf("of %s ENI %v are taken, %v", whose, got, err)
			}
		}
		must(t, w.Check())
	})
}

// stale is a driver whose list of reservations is that of a while ago.
type stale struct {
	elsewhere
	shown []driver.Reservation
}

func (d *stale) Reservations(context.Context, string) ([]driver.Reservation, error) {
	return slices.Clone(d.shown), nil
}

func TestReservationsAreTrueThoughAnswersLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		d := &stale{elsewhere: elsewhere{w.Driver("", sim.LikeEC2())}}
		r := engine.NewRegion(d, engine.Options{Cluster: "blue", Subnets: []string{"a"}})
		in := netip.MustParsePrefix("10.0.1.64/28")
		isIn := func(list []cloud.Reservation) bool {
			return len(list) == 1 && list[0] == cloud.Reservation{ID: list[0].ID, Range: in, Ours: true} && list[0].ID != ""
		}
		for range 2 {
			must(t, r.Reserve(t.Context(), "a", in))
		}
		if list, err := r.Reserved(t.Context(), "a"); err != nil || !isIn(list) || w.Calls()[sim.ActReserve] != 1 {
			t.Errorf("%+v are reserved by %d requests, %v", list, w.Calls()[sim.ActReserve], err)
		}
		d.shown, _ = d.elsewhere.Reservations(t.Context(), "a")
		must(t, r.Unreserve(t.Context(), "a", in))
		if list, err := r.Reserved(t.Context(), "a"); err != nil || len(list) > 0 {
			t.Errorf("%+v are reserved, %v", list, err)
		}
		must(t, r.Reserve(t.Context(), "a", in)) // what is shown is the one before
		if list, err := d.elsewhere.Reservations(t.Context(), "a"); err != nil || len(list) != 1 || list[0].Note != "enipool/blue" {
			t.Errorf("%+v are reserved, %v", list, err)
		}
	})
}

func TestALostAnswerToAReservationIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		r := w.region(engine.Options{Cluster: "blue"})
		in := netip.MustParsePrefix("10.0.1.64/28")
		w.FailNext(sim.ActReserve, sim.Fault{Err: cloud.ErrThrottled})
		if err := r.Reserve(t.Context(), "a", in); !errors.Is(err, cloud.ErrThrottled) {
			t.Errorf("a reservation that is throttled is %v", err)
		}
		for _, f := range []sim.Fault{{Answer: sim.Lost}, {Answer: sim.Lost, Later: 2 * time.Millisecond}} {
			w.FailNext(sim.ActReserve, f)
			must(t, r.Reserve(t.Context(), "a", in))
			w.FailNext(sim.ActUnreserve, f)
			must(t, r.Unreserve(t.Context(), "a", in))
		}
		w.FailNext(sim.ActReserve, sim.Fault{Answer: sim.Lost, Later: time.Hour})
		if err := r.Reserve(t.Context(), "a", in); !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("what does not come in time is %v", err)
		}
		theirs := netip.MustParsePrefix("10.0.1.128/28")
		must(t, w.Update(func(tx *sim.Tx) error {
			_, err := tx.Reserve(sim.Reservation{Subnet: "a", Range: theirs, Description: "printers"})
			return err
		}))
		must(t, r.Reserve(t.Context(), "a", theirs)) // it is
		if err := r.Unreserve(t.Context(), "a", theirs); !errors.Is(err, cloud.ErrForbidden) {
			t.Errorf("the end of others' reservation is %v", err)
		}
		must(t, w.Check())
	})
}

// An assignment by name has one outcome, so that describes tell it after a lost answer.
func TestALostAnswerToAnAssignmentByNameIsNoError(t *testing.T) {
	for name, fault := range map[string]sim.Fault{"done": {Answer: sim.Lost}, "done later": {Answer: sim.Lost, Later: 2 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
			r := w.region(engine.Options{})
			made, err := r.Node(cloud.Instance{ID: "i-1"}).CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 1})
			must(t, err)
			want := netip.MustParseAddr("10.0.1.77")
			w.FailNext(sim.ActAssign, fault)
			got, err := r.AssignExactly(t.Context(), "i-1", made.ID, []netip.Addr{want}, cloud.Origin{})
			must(t, err)
			if !slices.Equal(got, []netip.Addr{want}) || w.Calls()[sim.ActAssign] != 1 {
				t.Errorf("%s: an assignment without an answer returns %v after %d requests", name, got, w.Calls()[sim.ActAssign])
			}
			w.FailNext(sim.ActAssign, sim.Fault{Answer: sim.Lost, Later: time.Hour})
			got, err = r.AssignExactly(t.Context(), "i-1", made.ID, []netip.Addr{want.Next()}, cloud.Origin{})
			if !errors.Is(err, cloud.ErrUnknown) || len(got) > 0 {
				t.Errorf("%s: what does not come in time returns %v, %v", name, got, err)
			}
		})
	}
}

// A sweep of a Region says whether there are instances that it has not asked about, however many have left ENIs, and how many are alive.
func TestSweepsOfARegionComeToAllInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Cluster: "blue"})
		gone := ""
		for i := range 24 {
			id := fmt.Sprintf("i-node-%02d", i)
			_, err := w.AddInstance(sim.Instance{ID: id, Type: "small", Subnet: "a"})
			must(t, err)
			made, err := engine.New(w.Driver(id, w.traits), w.o).CreateInterface(t.Context(), cloud.Create{Token: id, Subnet: "a", V4: 1})
			must(t, err)
			must(t, w.Detach(made.ID))
			if i == 23 {
				must(t, w.Terminate(id))
				gone = made.ID
			}
		}
		time.Sleep(2 * time.Hour)
		r := w.region(engine.Options{Cluster: "blue"})
		var all []string
		rounds := 1
		for ; rounds < 20; rounds++ {
			deleted, more, err := r.Sweep(t.Context(), time.Hour)
			must(t, err)
			if all = append(all, deleted...); !more {
				break
			}
			time.Sleep(time.Minute)
		}
		if !slices.Equal(all, []string{gone}) || rounds > 7 {
			t.Errorf("%d rounds have deleted %v, want %s", rounds, all, gone)
		}
		if _, more, err := r.Sweep(t.Context(), time.Hour); err != nil || !more {
			t.Errorf("the next sweep does not begin with all: %v, %v", more, err)
		}
	})
}

// What an instance carries its type tells: of thousands of nodes each would ask once more.
func TestNodesOfATypeThatIsKnownDoNotAskForIt(t *testing.T) {
	w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
	r := w.region(engine.Options{})
	ids := map[string]string{}
	assign := func(instance string) {
		t.Helper()
		n := r.Node(cloud.Instance{ID: instance, Type: "small"})
		if ids[instance] == "" {
			list, err := n.Interfaces(t.Context())
			must(t, err)
			ids[instance] = list[0].ID
		}
		got, err := n.AssignAddresses(t.Context(), ids[instance], eni.IPv4, 3)
		must(t, err)
		if len(got) != 3 {
			t.Errorf("%s got %v", instance, got)
		}
	}
	early := r.Node(cloud.Instance{ID: "i-1", Type: "small"}) // it is there before its type is known
	limits, err := r.Limits(t.Context(), []string{"small"})
	must(t, err)
	assign("i-1")
	assign("i-2")
	if n := w.Calls()[sim.ActShape]; n != 1 {
		t.Errorf("types were asked for %d times, want once", n)
	}
	if own, err := early.Limits(t.Context()); err != nil || own != limits["small"] {
		t.Errorf("the node's own limits are %+v, %v; those of its type %+v", own, err, limits["small"])
	}
}

// A zone has one name, whichever of them the cloud says of a subnet.
func TestSubnetsHaveTheOneNameOfAZone(t *testing.T) {
	w := newWorld(t, sim.LikeBCE(), sim.Options{Region: "cn-bj-"}, engine.Options{Subnets: []string{"a"}})
	w.traits.Zone = func(name string) string { return name[strings.LastIndexAny(name, "-e")+1:] }
	r := engine.NewRegion(w.Driver("i-1", w.traits), w.o)
	list, err := r.Subnets(t.Context())
	must(t, err)
	if len(list) == 0 || list[0].Zone != r.ZoneName(list[0].Zone) || r.ZoneName("zonea") != r.ZoneName("cn-bj-a") || list[0].Zone != "a" {
		t.Errorf("%+v", list)
	}
}
