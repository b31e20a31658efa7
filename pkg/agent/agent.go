// Package agent is the companion sync loop of one node: it looks at the node
// cache, the cloud and the pods, sizes the pool, and moves addresses and ENIs
// until they are as they should be.
//
// Each tick starts from what is there and not from what an earlier tick wanted.
// To grow: cloud, kernel, cache. To shrink: cache (releasing), kernel, cloud,
// cache (gone). So a crash anywhere leaves an idle address, never one that two
// pods use. Calls to the cloud run beside the loop, one at a time for an ENI;
// everything else is done by the tick itself.
package agent

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/enipool/enipool/pkg/status"
	"golang.org/x/time/rate"
)

// Book is the node cache. What View shows is not changed by who sees it, nor later.
type Book interface {
	View(ctx context.Context, fn func(*ipam.State) error) error
	Update(ctx context.Context, fn func(*ipam.State) error) error
	Replace(ctx context.Context, renew func(old *ipam.State, err error) (*ipam.State, error)) error
}

// Kernel is the node's network. Its methods are safe to repeat.
type Kernel interface {
	// Grow adds what next needs and removes nothing.
	Grow(ctx context.Context, next *ipam.State) ([]string, error)
	// Sync makes the kernel hold what the book says, but for the ENIs with the
	// ids in leaving, and removes what only gone asked for.
	Sync(ctx context.Context, leaving []string, gone *ipam.State) ([]string, error)
	// Links returns the node's links by MAC: device and MTU.
	Links(ctx context.Context) (map[string]eni.Interface, error)
	// Occupancy returns what the kernel holds for single addresses, whoever's it is.
	Occupancy(ctx context.Context) (netconf.Occupancy, error)
}

// Orphans are addresses whose sandboxes are gone without a DEL.
type Orphans interface {
	// Reclaim asks which for the owner of each address whose sandbox is provably dead, frees
	// those that it picks, and returns them. It goes on after errors.
	Reclaim(ctx context.Context, which func(eni.Owner) bool) ([]eni.Address, error)
}

// Events is told what happens, for metrics.
type Events interface {
	Call(op, outcome string, took time.Duration)
	Step(action, outcome string)
	Repaired(what string, n int)
	Compared(cause string)
	Error(kind string)
	Tick(took time.Duration)
	Observe(status.Status)
}

// Parts are what the agent works with.
type Parts struct {
	Book     Book
	Unusable func(error) bool // tells whether the book must be rebuilt
	Writable func() error     // why the book can't be written, nil if it can. nil: nobody looks
	Kernel   Kernel
	Cloud    cloud.Cloud
	Orphans  Orphans
	Memory   Store
	Events   Events
	Log      *slog.Logger

	// Wants returns who waits for an address besides the owners in the book.
	Wants func(now time.Duration) ([]nodecache.Waiter, error)
	// Publish tells people what the last tick found; why is one line for pods
	// that get no address.
	Publish func(s status.Status, why string) error
	// Beat tells people that the loop lives, each status.BeatEvery. nil: nobody asks.
	Beat func()
	// MaxPods returns how many pods the node may run and who says so.
	MaxPods func() (n int, source string)
	// FastPath tells how packets pass the node. nil: nobody looks after that.
	FastPath func() status.FastPath
	// Refused tells of a changed configuration that is not in force. nil: there can't be one.
	Refused func() *status.Refused
	Now     func() time.Duration // since boot
	Rand    *rand.Rand           // of jitter and tokens

	// Pods returns the pods of the node that need addresses, as the cluster knows them,
	// and false as long as it does not. nil: there is no cluster to ask.
	Pods func() ([]eni.Pod, bool)
	// Ending returns those that are being deleted, which Pods leaves out. nil: nobody knows them.
	Ending func() []eni.Pod
	// Report takes what the cluster is to know of the node, after each tick. nil: nobody
	// wants to.
	Report func(health.Report)
	// Warn tells the people of a pod that it got no address: once for each time that
	// the node has none. nil: nobody does.
	Warn func(pod eni.Pod, reason, message string)

	// Occupied sends when others changed what they hold of the pool's addresses. nil: it
	// is looked at with each resync only.
	Occupied <-chan struct{}

	// Disturbed sends when others changed the kernel so that it should be compared with
	// the book, and Disturbance returns what the last comparison met of that, "" for
	// nothing known. nil: it is compared at each resync only.
	Disturbed   <-chan struct{}
	Disturbance func() string

	// Wall is the time of day, and Beside runs a call to the cloud beside the loop,
	// for limit at most. nil: the machine's clock, and a goroutine.
	Wall   func() time.Time
	Beside func(ctx context.Context, limit time.Duration, call func(context.Context))
}

// Agent is the loop of one node. Its methods are for one goroutine.
type Agent struct {
	Parts
	conf agentconf.Config

	mem    memory
	view   view
	calls  map[object]*call // under way, by what they are about; see calls.go
	done   chan result
	budget *rate.Limiter

	backoffs backoffs // what is left alone for a while

	doubts doubts                    // what was not found where it should be
	warned map[eni.Pod]time.Duration // pods whose people were told, when they last lacked an address
	said   map[string]string         // the step last logged of an ENI: a retry is not news
	scarce map[string]*scarcity      // subnets that had no more, by ID

	eager      eagerness     // to see the subnets
	pressure   pressure      // of looks and of requests for addresses
	giving     pressure      // of releases
	period     period        // of describes that nothing asks for
	describeAt time.Duration // when the cloud is to be looked at again
	urgent     bool          // then because a call's outcome asks for it
	againAt    time.Duration // and once more for late effects, 0 for not
	resyncAt   time.Duration // when the kernel and the orphans are
	othersAt   time.Duration // when what others hold is
	occupied   bool          // others changed what they hold since it was looked at
	sightDue   bool          // a describe came that the book was not compared with
	unsynced   bool          // the book shrank and the kernel does not know yet
	disturbed  bool          // others changed the kernel, and it was not compared since
	unsaved    bool          // the memory changed and is not written down
	savedFor   int           // the demand that the memory was last written down with
	served     int           // addresses that pods had, or that cooled down after one, when the last tick looked
	restarted  bool          // no tick has seen the book yet
	rebuilt    bool          // this tick built the book: the next one uses it
	gone       *ipam.State   // what the book was before its settings changed
	fights     fights        // what is put right again and again

	hungry      bool          // something could not begin for want of budget or a free hand
	cooledAt    time.Duration // when the next address has rested, 0 for none
	links       links         // of the node's ENIs: which lack theirs
	wrongVPC    string        // what is wrong with the VPC's ranges, "" if nothing is
	lines, enis int           // of the book that was compared with the view last

	book      *ipam.State // as last read, nil if it could not be
	bookErr   error
	planned   bool   // this tick could make a plan: the book can be used
	exhausted bool   // no subnet of the node has more: it releases what it can spare
	sized     bool   // the limits of the instance were known to a plan
	known     podSet // kept for lookForPods, which fills it anew in each tick
	decision  scale.Decision
	demand    demand
	waiting   []nodecache.Waiter // that have no address
	causes    []pool.Cause       // why the node can't have one more address, ranked
	blockers  []pool.Cause       // why the target is out of reach
	status    status.Status
	steps     int // done so far, to tell an idle tick
}

// New returns the agent of a node. What an earlier one remembered is taken over.
func New(conf agentconf.Config, p Parts) *Agent {
	a := &Agent{
		Parts: p, conf: conf, calls: map[object]*call{}, done: make(chan result, 64), backoffs: backoffs{},
		doubts: noDoubts(), said: map[string]string{}, scarce: map[string]*scarcity{},
		warned: map[eni.Pod]time.Duration{}, known: newPodSet(), fights: fights{},
		unsynced: true, restarted: true,
	}
	if a.Wall == nil {
		a.Wall = time.Now
	}
	if a.Beside == nil {
		a.Beside = beside
	}
	if a.Disturbance == nil {
		a.Disturbance = func() string { return "" }
	}
	a.budget = rate.NewLimiter(rate.Limit(conf.Cloud.CallsPerSec), conf.Cloud.CallsBurst)
	a.recall()
	return a
}

// Reload takes over a new configuration from the next tick on. Keys that need a restart
// stay what they were.
func (a *Agent) Reload(conf agentconf.Config) {
	conf, _ = a.conf.Reload(conf)
	a.conf = conf
	a.budget.SetLimit(rate.Limit(conf.Cloud.CallsPerSec))
	a.budget.SetBurst(conf.Cloud.CallsBurst)
	a.keepMode()
	// What the new periods make due is due at once.
	a.describeAt, a.resyncAt = min(a.describeAt, a.Now()+conf.DescribeEvery()), min(a.resyncAt, a.Now()+conf.Resync)
	a.othersAt = min(a.othersAt, a.Now()+conf.Resync)
}

// Status returns what the last tick found.
func (a *Agent) Status() status.Status { return a.status }
