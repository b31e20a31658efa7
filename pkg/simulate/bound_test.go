package simulate

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/google/go-cmp/cmp"
)

// counting is a world of nodes with 4 ENIs of 15 addresses in a cloud whose prices are
// simple.
func counting() World {
	w := testWorld()
	w.Limits, w.MaxPods, w.Wait = eni.Limits{ENIs: 4, V4: 15}, 56, 5*time.Second
	w.Subnets[0].CIDR = netip.MustParsePrefix("10.0.0.0/16")
	w.Mutating, w.Describing = sim.Bucket{Burst: 10, Every: time.Second}, sim.Bucket{Burst: 20, Every: time.Second / 20}
	w.Buckets = map[string]sim.Bucket{"attach": {Burst: 5, Every: time.Second}}
	// Who asks about an ENI by its ID is not counted.
	traits := sim.LikeEC2()
	look := []string{"look"}
	traits.PerCall, traits.Binds, traits.Retries = 10, false, driver.Retries{Tries: 3, First: time.Second, Most: 20 * time.Second}
	traits.Requests = map[string][]string{
		"Shape": look, "Subnets": look, "Interfaces": look, driver.InterfacesMade: nil, driver.InterfacesByID: nil,
		"Create": {"make"}, "Attach": {"attach"}, "Assign": {"add"},
	}
	w.Driver = &traits
	return w
}

// atOnce is a load of nodes that get n pods each.
func atOnce(t *testing.T, kind string, nodes, n int) Load {
	t.Helper()
	l, err := Generate(kind, Shape{Nodes: nodes, Pods: n, Duration: 20 * time.Minute, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mode is the agent's default with another mode.
func mode(m pool.Mode) Setting {
	c := agentconf.Default()
	c.Pool.Mode, c.ModeSet = m, true
	return Setting{m.String(), c}
}

// 30 pods on ENIs of 14 addresses need two new ones. Batch (three batches of 16) and
// burstable (whole ENIs, one of them idle) plan a third, so that they may do without the
// addresses of the node's own ENI, which take two requests; best effort may not.
func TestTheBoundIsThatOfTheRequestsThatAreNeeded(t *testing.T) {
	const nodes = 40
	for _, tt := range []struct {
		m             pool.Mode
		adds, planned int
	}{{pool.Batch, 0, 3}, {pool.Burstable, 0, 3}, {pool.BestEffort, 2, 2}} {
		m, planned := tt.m, tt.planned
		got := mustRun(t, counting(), atOnce(t, "start", nodes, 30), mode(m)).Served
		if got == nil || !got.All {
			t.Fatalf("%s: %+v", m, got)
		}
		want := map[string]Request{
			"add":    {Name: "add", Changes: true, Needed: tt.adds * nodes, Planned: 2 * nodes, Bound: after(tt.adds*nodes, 10)},
			"make":   {Name: "make", Changes: true, Needed: 2 * nodes, Planned: planned * nodes, Bound: seconds(80 - 10)},
			"attach": {Name: "attach", Changes: true, Needed: 2 * nodes, Planned: planned * nodes, Bound: seconds(80 - 5)},
			"look":   {Name: "look", Needed: 4 * nodes, Planned: 4 * nodes, Bound: seconds(7)}, // the subnet's range, too
		}
		sum, refused := 0, 0
		for _, r := range got.Requests {
			if r.Changes {
				sum += r.Passed
			}
			refused += r.Refused
			if r.Passed < r.Needed {
				t.Errorf("%s: %d of %d %s passed and all are served", m, r.Passed, r.Needed, r.Name)
			}
			r.Passed, r.Refused = 0, 0
			if r.Needed > 0 {
				r.Bound -= Seconds(left(r.Name))
			}
			if diff := cmp.Diff(want[r.Name], r); diff != "" {
				t.Errorf("%s (-want +got):\n%s", m, diff)
			}
		}
		if got.By != "attach" || got.Needed != (4+tt.adds)*nodes || got.Planned != (2+2*planned)*nodes || got.Made != sum || got.Refused != refused || refused == 0 {
			t.Errorf("%s: %+v", m, got)
		}
		if got.Ratio() < 1 || got.PlanBound != seconds(planned*nodes-5)+Seconds(left("attach")) && planned > 2 {
			t.Errorf("%s: reached %s, bound %s, of the plan %s", m, got.Reached, got.Bound, got.PlanBound)
		}
	}
}

// after is when n requests have passed of which burst pass at once, and one a second.
func after(n, burst int) Seconds { return seconds(max(n-burst, 0)) }

func seconds(n int) Seconds { return Seconds(time.Duration(n) * time.Second) }

// left is what a call takes when its last request of an action has passed: half of assign's
// 710 ms, and until an ENI is seen that is attached after half of create's 4.17 s: looks come
// after 0.5 s, 0.75 s and 1.125 s more. Calls that look are over then.
func left(action string) time.Duration {
	return map[string]time.Duration{"add": 355 * time.Millisecond, "make": 2375 * time.Millisecond, "attach": 2375 * time.Millisecond}[action]
}

// Nothing is served sooner than the bound says, however many nodes and pods there are,
// and with buckets that nobody empties it is the time of a call.
func TestNobodyIsFasterThanTheBound(t *testing.T) {
	for _, kind := range []string{"start", "surge"} {
		for _, nodes := range []int{1, 30} {
			for _, pods := range []int{1, 15, 56} {
				for _, m := range []pool.Mode{pool.Batch, pool.Burstable, pool.BestEffort} {
					got := mustRun(t, counting(), atOnce(t, kind, nodes, pods), mode(m)).Served
					if !got.All || got.Reached < got.Bound || got.Made < got.Needed {
						t.Errorf("%s, %d nodes with %d pods, %s: %+v", kind, nodes, pods, m, got)
					}
				}
			}
		}
	}
}

// Nodes that have rested have a pool for no pods: 8 slots of a best-effort one. Of 30
// pods 22 need addresses then: 14 of one more ENI, and what the first one has room for or
// another one.
func TestASurgeFindsWhatTheModeKeepsReady(t *testing.T) {
	ready := mode(pool.BestEffort)
	ready.Config.Pool.PreAllocate = 8
	got := mustRun(t, counting(), atOnce(t, "surge", 10, 30), ready).Served
	needed := map[string]int{}
	for _, r := range got.Requests {
		needed[r.Name] = r.Needed
	}
	if diff := cmp.Diff(map[string]int{"add": 0, "make": 20, "attach": 20, "look": 0}, needed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got = mustRun(t, counting(), atOnce(t, "surge", 10, 8), ready).Served
	if got.Needed != 0 || got.Bound != 0 || got.By != "" || got.Ratio() != 0 || got.Reached > seconds(3) {
		t.Errorf("pods for which all is ready: %+v", got)
	}
	for _, r := range got.Requests {
		if r.Name == "look" && r.Passed >= 30 {
			t.Errorf("%d looks in %s: those before the load are among them", r.Passed, got.Reached)
		}
	}
}

func TestWhereSomeAreNeverServedItSaysSo(t *testing.T) {
	w := counting()
	w.Subnets[0].CIDR = netip.MustParsePrefix("10.0.0.0/26") // 59 to give out, 10 of them to the nodes
	got := mustRun(t, w, atOnce(t, "start", 10, 8), mode(pool.BestEffort)).Served
	if got.All || got.Reached != Seconds(20*time.Minute) {
		t.Errorf("%+v", got)
	}
}

// Without a cloud calls are counted, in two buckets.
func TestWithoutPricesCallsAreCounted(t *testing.T) {
	w := counting()
	w.Driver, w.Buckets = nil, nil
	got := mustRun(t, w, atOnce(t, "start", 20, 20), mode(pool.BestEffort)).Served
	if got.By != "changes" || got.Needed != 40 || got.Bound < seconds(30) || got.Reached < got.Bound || !got.All {
		t.Errorf("%+v", got)
	}
	if r := mustRun(t, w, staying(3, 0, time.Hour), batch()); r.Served != nil {
		t.Errorf("it was not asked how long it takes: %+v", r.Served)
	}
}

func TestCloudsNameABucketForEachActionAndHaveAPriceForEachMethod(t *testing.T) {
	for name, r := range map[string]Rates{"EC2": EC2(), "BCE": BCE()} {
		w := testWorld()
		w.Mutating, w.Describing, w.Driver, w.Buckets = r.Mutating, r.Describing, r.Driver, r.Buckets
		prices, known := w.Prices(), map[string]bool{}
		for _, method := range append(describeMethods[:], create, assign, unassign, remove) {
			if len(prices[method]) == 0 {
				t.Errorf("%s: %s costs nothing", name, method)
			}
			for _, p := range prices[method] {
				known[p.Action] = true
				if b := w.bucketFor(p.Action, p.Describes); b.Every <= 0 || b.Burst < 1 {
					t.Errorf("%s: any number of %s passes", name, p.Action)
				}
			}
		}
		same := 0
		for action, want := range r.Driver.Buckets {
			if got := w.bucketFor(action, r.Driver.Describing()[action]); got.Burst != want.Burst || float64(time.Second/got.Every) != want.PerSecond {
				t.Errorf("%s: %s has %+v here, by the driver %+v", name, action, got, want)
			} else if known[action] {
				same++
			}
		}
		if same < 6 {
			t.Errorf("%s: only %d actions of calls have a bucket of the driver's", name, same)
		}
	}
	r := EC2()
	r.Level(false)
	if len(r.Buckets) != 0 {
		t.Errorf("%v left", r.Buckets)
	}
}
