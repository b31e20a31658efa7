package operator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

var lease = order.Lease{Duration: 15 * time.Second, Settle: 10 * time.Second, Fence: 6 * time.Minute}

const timeout = 5 * time.Second

// world is an account, a cluster's objects, its agents, and operators that lead one after the other.
type world struct {
	*testing.T
	*sim.Account
	store    *store
	claims   *claimStore // nil: there are no topologies
	agents   []*agent
	start    time.Time
	traits   driver.Traits
	prefixes bool
	families []eni.Family
	checks   time.Duration
	effect   func(do func(context.Context) error, ctx context.Context) error // wraps what changes the cloud, if it is there
	admit    func(ctx context.Context, action string)                        // is told what was admitted, if it is there
	wrap     func(driver.Driver) driver.Driver                               // what the operators' requests go through, if it is there

	mu    sync.Mutex
	wrong []string
	lead  *leader
	epoch int64
}

// setup is what worlds differ in.
type setup struct {
	nodes   int
	account sim.Options
	buckets map[string]cloud.Bucket
	subnets []sim.Subnet
	typ     sim.Type
	seed    uint64
	conf    pool.Config

	prefixes bool
	families []eni.Family // of pods, IPv4 where none are named
	likeBCE  bool
	cross    bool // ENIs carry addresses of other subnets
	perScan  int

	checks time.Duration // how often it is looked whether pods have their addresses, of 0 each 250 ms

	lieIn []string // the subnets of the instances' primary ENIs, those of the first subnet where there are none
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	s.account.VPC = sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, V6: []netip.Prefix{netip.MustParsePrefix("2001:db8::/48")}}
	if len(s.families) == 0 {
		s.families = []eni.Family{eni.IPv4}
	}
	s.account.Seed = s.seed
	w := &world{T: t, prefixes: s.prefixes, families: s.families, checks: cmp.Or(s.checks, 250*time.Millisecond), Account: sim.NewAccount(s.account), store: newStore(s.seed), start: time.Now(), traits: sim.LikeEC2()}
	if s.likeBCE {
		w.traits = sim.LikeBCE()
	}
	w.traits.CrossSubnet = s.cross
	if w.traits.Buckets = s.buckets; s.perScan > 0 {
		w.traits.PerScan = s.perScan
	}
	if len(s.subnets) == 0 {
		s.subnets = []sim.Subnet{{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/16")}}
	}
	for _, n := range s.subnets {
		n.Tags = forPods
		w.must(w.AddSubnet(n))
	}
	if s.typ.Name == "" {
		s.typ = sim.Type{Name: "small", ENIs: 4, V4: 10, V6: 10}
	}
	w.AddType(s.typ)
	if s.conf.Scale.Batch == 0 {
		s.conf.Scale.Batch = 8
	}
	for i := range s.nodes {
		name := fmt.Sprintf("node-%03d", i)
		subnet := s.subnets[0].ID
		if len(s.lieIn) > 0 {
			subnet = s.lieIn[i]
		}
		_, err := w.AddInstance(sim.Instance{ID: "i-" + name, Type: s.typ.Name, Subnet: subnet})
		w.must(err)
		w.store.nodes[name] = operator.Node{Name: name, Instance: "i-" + name, Type: s.typ.Name, Zone: w.zone()}
		w.agents = append(w.agents, newAgent(w, name, s.conf))
	}
	return w
}

// forPods are the tags of subnets that ENIs may lie in.
var forPods = map[string]string{"pods": "yes"}

func (w *world) zone() (zone string) {
	w.View(0, func(tx *sim.Tx) { zone = tx.Subnets()[0].Zone })
	return zone
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) since() time.Duration { return time.Since(w.start) }

func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf("%s: ", w.since())+fmt.Sprintf(format, args...))
}

// elsewhere is a driver of a process on an instance of the VPC that is no node.
type elsewhere struct{ driver.Driver }

func (elsewhere) Self(context.Context) (driver.Self, error) {
	return driver.Self{Instance: "i-0", VPC: "vpc"}, nil
}

// effects is a driver whose changes tests hear of.
type effects struct {
	driver.Driver
	effect func(do func(context.Context) error, ctx context.Context) error
}

func (d effects) Create(ctx context.Context, c driver.Create) (i driver.Interface, err error) {
	return i, d.effect(func(ctx context.Context) error { i, err = d.Driver.Create(ctx, c); return err }, ctx)
}

func (d effects) Attach(ctx context.Context, a driver.Attach) (id string, err error) {
	return id, d.effect(func(ctx context.Context) error { id, err = d.Driver.Attach(ctx, a); return err }, ctx)
}

func (d effects) Assign(ctx context.Context, a driver.Assign) (got driver.Assigned, err error) {
	return got, d.effect(func(ctx context.Context) error { got, err = d.Driver.Assign(ctx, a); return err }, ctx)
}

func (d effects) Unassign(ctx context.Context, u driver.Unassign) error {
	return d.effect(func(ctx context.Context) error { return d.Driver.Unassign(ctx, u) }, ctx)
}

func (d effects) Detach(ctx context.Context, i driver.Interface, token string) error {
	return d.effect(func(ctx context.Context) error { return d.Driver.Detach(ctx, i, token) }, ctx)
}

func (d effects) Delete(ctx context.Context, id, token string) error {
	return d.effect(func(ctx context.Context) error { return d.Driver.Delete(ctx, id, token) }, ctx)
}

// leader is one operator with its lease.
type leader struct {
	*operator.Operator
	gate *operator.Gate

	mu      sync.Mutex
	renewed time.Time
	paused  bool // it renews no more, and does not know
	ended   chan struct{}
	cancel  context.CancelFunc // kills it
	stop    context.CancelFunc // ends it as a signal does: the lease is held on
	lose    context.CancelFunc // the lease is held no longer
	err     error              // that it has ended with
}

// lead starts an operator with a lease that is another's no more.
func (w *world) leadWith(ctx context.Context, change func(*operator.Options)) *leader {
	gate := operator.NewGate(operator.Wall{})
	admit := gate.Admit
	if told := w.admit; told != nil {
		admit = func(ctx context.Context, action string) error {
			err := gate.Admit(ctx, action)
			if err == nil {
				told(ctx, action)
			}
			return err
		}
	}
	d := driver.Driver(elsewhere{w.Driver("", w.traits)})
	if w.effect != nil {
		d = effects{d, w.effect}
	}
	if w.wrap != nil {
		d = w.wrap(d)
	}
	region := engine.NewRegion(d, engine.Options{SubnetTags: forPods, Prefixes: w.prefixes, IPv6: slices.Contains(w.families, eni.IPv6), Cluster: "blue", Admit: admit, Limit: timeout})
	o := operator.Options{Region: region, Objects: w.store, Lease: lease, Timeout: timeout, Gate: gate, Actions: w.traits.ActionsOf, Share: 100}
	if w.claims != nil {
		o.Claims, o.Families, o.Tell = w.claims, w.families, w.claims.hear
	}
	if change != nil {
		change(&o)
	}
	op, err := operator.New(o)
	w.must(err)
	l := &leader{Operator: op, gate: gate, renewed: time.Now(), ended: make(chan struct{})}
	ctx, l.cancel = context.WithCancel(ctx)
	soft, stop := context.WithCancel(ctx)
	l.stop = stop
	held, lose := context.WithCancel(ctx)
	l.lose = lose
	w.mu.Lock()
	w.lead = l
	w.mu.Unlock()
	acquired := l.renewed
	go l.renew(ctx)
	go func() {
		defer close(l.ended)
		err := op.Run(soft, operator.Lead{Held: held, Epoch: w.lastEpoch(), Acquired: acquired, Renewed: l.renewedAt, Number: func(_ context.Context, epoch int64) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.epoch = epoch
			return nil
		}})
		if l.err = err; !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "later epoch") {
			w.complain("the operator ends: %v", err)
		}
	}()
	return l
}

func (w *world) lastEpoch() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epoch
}

// leading returns the operator that leads, the last one.
func (w *world) leading() *leader {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lead
}

func (l *leader) renewedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}

func (l *leader) renew(ctx context.Context) {
	for ctx.Err() == nil {
		l.mu.Lock()
		if !l.paused {
			l.renewed = time.Now()
		}
		l.mu.Unlock()
		sleep(ctx, 2*time.Second)
	}
}

func (l *leader) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = true
}

// kill ends an operator. What it has sent goes on in the account.
func (l *leader) kill() {
	l.cancel()
	<-l.ended
}

// begin starts the agents, and the check of all that pods have.
func (w *world) begin(ctx context.Context) {
	w.beginWith(ctx, w.agents...)
}

// beginWith begins with some of the agents.
func (w *world) beginWith(ctx context.Context, agents ...*agent) {
	for _, a := range agents {
		go a.run(ctx)
	}
	go func() {
		for ctx.Err() == nil {
			w.checkPods()
			sleep(ctx, w.checks)
		}
	}()
}

// places returns which node has each secondary address.
func (w *world) places() map[netip.Addr]string {
	on := map[netip.Addr]string{}
	for at, id := range w.enisOf() {
		on[at] = id.node
	}
	return on
}

func (w *world) checkPods() {
	on := w.places()
	for _, a := range w.agents {
		// What came in this very moment the places of before lack.
		if a.violation(on) == "" {
			continue
		}
		if bad := a.violation(w.places()); bad != "" {
			w.complain("%s", bad)
		}
	}
}

// check is called at the end, when nothing is under way any more.
func (w *world) check() {
	w.Helper()
	w.checkPods()
	if err := w.Check(); err != nil {
		w.Errorf("the account: %v", err)
	}
	on := w.places()
	for _, a := range w.agents {
		var there []netip.Addr
		for addr, name := range on {
			if name == a.name {
				there = append(there, addr)
			}
		}
		slices.SortFunc(there, netip.Addr.Compare)
		if got := a.addresses(); !slices.Equal(got, there) {
			n := w.store.node(a.name)
			w.Errorf("%s has %v in its state, and in the cloud %v\n%+v\n%+v", a.name, got, there, n.Spec, n.Status)
		}
		if err := a.state.Check(); err != nil {
			w.Errorf("%s: %v", a.name, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, bad := range append(w.wrong, w.store.wrong...) {
		if i < 5 {
			w.Error(bad)
		}
	}
}

// isQuiet tells whether every node has what it asks for and nothing goes back.
func (w *world) isQuiet() bool {
	for _, a := range w.agents {
		n := w.store.node(a.name)
		if n == nil || n.Status.ObservedGeneration != n.Generation || len(n.Status.Releasing)+len(n.Spec.Release)+len(n.Status.Quarantined)+len(n.Status.LeavingInterfaces) > 0 {
			return false
		}
		v, err := crdView(n)
		a.mu.Lock()
		used, adopted := len(a.state.Used()), a.head.Revision == n.Status.Revision
		ok := err == nil && order.Satisfied(v.Spec, v.Status, 0) && used == a.pods && adopted
		a.mu.Unlock()
		if !ok {
			return false
		}
	}
	return true
}

// until waits until something holds, and tells after how long. It gives up after most.
func (w *world) until(most time.Duration, holds func() bool) time.Duration {
	w.Helper()
	begin := time.Now()
	for !holds() {
		if time.Since(begin) > most {
			for _, a := range w.agents {
				n := w.store.node(a.name)
				if n == nil {
					continue
				}
				w.Logf("%s wants %d pods, has %d used of %d: %+v\n%+v", a.name, a.pods, len(a.state.Used()), len(a.state.Addresses), n.Spec, n.Status)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.Fatalf("it does not hold after %s; %v", most, w.wrong)
		}
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
	}
	return time.Since(begin)
}

// play runs a world in virtual time.
func play(t *testing.T, s setup, run func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		ctx, cancel := context.WithCancel(context.Background())
		defer func() {
			cancel()
			if l := w.leading(); l != nil {
				<-l.ended
			}
			time.Sleep(time.Minute) // what the account and the watches still do
		}()
		run(ctx, w)
	})
}

func mustPrefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func batchOf(n int) (c pool.Config) {
	c.Scale.Batch = n
	return c
}

// dies is a driver of a process that ends before it attaches an ENI.
type dies struct{ driver.Driver }

func (dies) Attach(context.Context, driver.Attach) (string, error) {
	return "", &driver.Error{Kind: cloud.ErrUnknown, Detail: "the process has ended"}
}

// begunByTheAgent lets the agent begin an ENI with the token begun-1, and the release of a free address, which it returns.
func (w *world) begunByTheAgent(ctx context.Context, d driver.Driver, a *agent) netip.Addr {
	w.Helper()
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	own := engine.New(dies{d}, engine.Options{SubnetTags: forPods, Cluster: "blue"})
	if _, err := own.CreateInterface(short, cloud.Create{Token: "begun-1", Subnet: "a", V4: 3}); !errors.Is(err, cloud.ErrUnknown) {
		w.Fatalf("the agent's call ends with %v", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.state.Addresses {
		if _, free := a.state.FreeSince(&line, w.since()); free {
			a.state.StartRelease([]netip.Addr{line.Addr}, w.since())
			return line.Addr
		}
	}
	w.Fatal("there is no free address")
	return netip.Addr{}
}

// goOn has a leader that was paused renew again.
func (l *leader) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused, l.renewed = false, time.Now()
}
