package simulate

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/aws"
	"github.com/enipool/enipool/pkg/cloud/bce"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	fakebce "github.com/enipool/enipool/test/fakecloud/bce"
	fakeec2 "github.com/enipool/enipool/test/fakecloud/ec2"
	"github.com/google/go-cmp/cmp"
)

// jumps is a clock that never waits: whoever does puts it forward.
type jumps struct {
	mu sync.Mutex
	at time.Time
}

func (j *jumps) Now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.at
}

func (j *jumps) Wait(ctx context.Context, d time.Duration) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at = j.at.Add(d)
	return ctx.Err()
}

// wired is a node whose engine has a cloud's own driver, over HTTP.
type wired struct {
	*engine.Node
	account *sim.Account
	clock   *jumps
	world   World // that is simulated in its place
	again   repeats
}

// repeats counts requests that the SDK of AWS made once more by itself: now and then, on a busy
// machine, a connection is closed while it reads an answer.
type repeats struct {
	mu sync.Mutex
	of map[string]int // by action
}

// count returns the handler's like that counts what is asked again.
func (r *repeats) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if try := q.Header.Get("Amz-Sdk-Request"); !strings.Contains(try, "attempt=1;") && try != "attempt=1" {
			body, _ := io.ReadAll(q.Body)
			q.Body = io.NopCloser(bytes.NewReader(body))
			if form, err := url.ParseQuery(string(body)); err == nil {
				r.mu.Lock()
				r.of[form.Get("Action")]++
				r.mu.Unlock()
			}
		}
		h.ServeHTTP(w, q)
	})
}

// taken returns what was counted, and begins anew.
func (r *repeats) taken() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of
	r.of = map[string]int{}
	return of
}

func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWired makes an account with an instance of a type.
func newWired(t *testing.T, r Rates, l eni.Limits, typ sim.Type, o sim.Options) *wired {
	t.Helper()
	w := testWorld()
	w.Limits, w.Driver = l, r.Driver
	w.Subnets = []Subnet{{ID: "subnet-1", CIDR: netip.MustParsePrefix("10.0.0.0/22"), Reserved: 5}}
	clock := &jumps{at: time.Now()}
	o.Clock = clock
	a := sim.NewAccount(o)
	a.AddGroup(sim.Group{ID: "g-1"})
	a.AddType(typ)
	must(t, a.AddSubnet(sim.Subnet{ID: "subnet-1", V4: w.Subnets[0].CIDR, Zone: "cn-bj-d"}))
	_, err := a.AddInstance(sim.Instance{ID: "i-1", Type: typ.Name, Subnet: "subnet-1", Groups: []string{"g-1"}})
	must(t, err)
	return &wired{account: a, clock: clock, world: w, again: repeats{of: map[string]int{}}}
}

func (w *wired) open(d driver.Driver) *wired {
	w.Node = engine.New(d, engine.Options{Subnets: []string{"subnet-1"}, Clock: w.clock})
	return w
}

func onEC2(t *testing.T) *wired {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_CA_BUNDLE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	typ := sim.Type{Name: "test.large", ENIs: 4, V4: 15, CPUs: 2, Memory: 4096}
	w := newWired(t, EC2(), eni.Limits{ENIs: 4, V4: 15}, typ, sim.Options{Region: "eu-test-1", NewID: sim.EC2ID, Reserve: sim.EC2Reserve})
	e := fakeec2.New(w.account, fakeec2.Options{Role: "node"})
	return w.open(aws.New(aws.Options{Endpoint: serve(t, w.again.count(e.Handler())), Metadata: serve(t, e.Metadata("i-1"))}))
}

func onBCE(t *testing.T) *wired {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("BCE_ACCESS_KEY_ID", "key")
	t.Setenv("BCE_SECRET_ACCESS_KEY", "secret")
	var typ sim.Type
	for _, known := range fakebce.Types() {
		if known.Name == "bcc.g5.c4m16" {
			typ = known
		}
	}
	w := newWired(t, BCE(), eni.Limits{ENIs: 5, V4: 16, NoPrimary: true}, typ, sim.Options{Region: "bj", NewID: fakebce.NewID})
	e := fakebce.New(w.account, fakebce.Options{})
	d, err := bce.New(bce.Options{Endpoint: serve(t, e.Handler()), Metadata: serve(t, e.Metadata("i-1"))})
	must(t, err)
	return w.open(d)
}

// asks are the requests that a call makes of the cloud's API, those that an SDK repeats once.
func (w *wired) asks(t *testing.T, call func() error) map[string]int {
	t.Helper()
	before := w.account.Calls()
	w.again.taken()
	must(t, call())
	asked := w.account.Calls()
	for action, more := range w.again.taken() {
		asked[action] -= more
	}
	for action := range asked {
		asked[action] -= before[action]
	}
	maps.DeleteFunc(asked, func(action string, n int) bool { return n == 0 || action == "Metadata" })
	return asked
}

// takes lets the account need as long for what a call begins as the simulation does.
func (w *wired) takes(method string) {
	half := w.world.leastTime(method) - w.world.leastTime(method)/2
	w.account.SetTimes(0, half, half)
}

// What is simulated is what ships: the requests of each call are those that the driver of the
// cloud sends, with one ENI as with many addresses.
func TestCallsCostWhatTheDriversOfTheCloudsAskFor(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *wired{"EC2": onEC2, "BCE": onBCE} {
		t.Run(name, func(t *testing.T) {
			w, ctx := open(t), t.Context()
			tolls := newTolls(w.world)
			same := func(call part, do func() error) {
				t.Helper()
				simulated := map[string]int{}
				for _, f := range tolls.requestsOf(call) {
					simulated[f.action] = f.count
				}
				if diff := cmp.Diff(w.asks(t, do), simulated); diff != "" {
					t.Errorf("%+v (-the driver sends +is simulated):\n%s", call, diff)
				}
			}
			same(part{method: interfaces}, func() error { _, err := w.Interfaces(ctx); return err })
			same(part{method: describeMethods[0]}, func() error { _, err := w.Limits(ctx); return err })
			same(part{method: describeMethods[2]}, func() error { _, err := w.Subnets(ctx); return err })
			must(t, w.clock.Wait(ctx, settled))
			for _, n := range []int{1, w.world.Limits.PerENI(eni.IPv4)} {
				var made cloud.Interface
				w.takes(create)
				same(part{create, n}, func() (err error) {
					made, err = w.CreateInterface(ctx, cloud.Create{Token: "t" + string(rune('0'+n)), Subnet: "subnet-1", V4: n})
					return err
				})
				must(t, w.clock.Wait(ctx, settled))
				same(part{unassign, n}, func() error { return w.UnassignAddresses(ctx, made.ID, made.Addresses) })
				same(part{assign, n}, func() error { _, err := w.AssignAddresses(ctx, made.ID, eni.IPv4, n); return err })
				w.takes(remove)
				same(part{remove, n}, func() error { return w.DeleteInterface(ctx, made.ID) })
			}
			must(t, w.account.Check())
		})
	}
}
