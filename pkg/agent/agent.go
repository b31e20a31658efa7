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
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// NodeCache is that of the agent. What View shows is not changed by who sees it, nor later.
type NodeCache interface {
	View(ctx context.Context, fn func(*ipam.State) error) error
	Update(ctx context.Context, fn func(*ipam.State) error) error
	Replace(ctx context.Context, renew func(old *ipam.State, err error) (*ipam.State, error)) error
}

// Kernel is the node's network. Its methods are safe to repeat.
type Kernel interface {
	// Grow adds what next needs and removes nothing.
	Grow(ctx context.Context, next *ipam.State) ([]string, error)
	// Sync makes the kernel hold what the node cache says, but for the ENIs with the
	// ids in leaving, and removes what only gone asked for.
	Sync(ctx context.Context, leaving []string, gone *ipam.State) ([]string, error)
	// Links returns the node's links by MAC: device and MTU.
	Links(ctx context.Context) (map[string]eni.Interface, error)
	// Occupancy returns what the kernel holds for single addresses, whoever's it is.
	Occupancy(ctx context.Context) (netconf.Occupancy, error)
}

// StaleAllocations are addresses whose sandboxes are gone without a DEL.
type StaleAllocations interface {
	// Reclaim asks which for the owner of each address whose sandbox is provably dead, frees
	// those that it picks, and returns them. It goes on after errors.
	Reclaim(ctx context.Context, which func(eni.Owner) bool) ([]eni.Address, error)
}

// Events is told what happens, for metrics.
type Events interface {
	Call(op, outcome string, took time.Duration)
	Step(status.Step)
	Repaired(what string, n int)
	Compared(cause string)
	Error(kind string)
	Tick(took time.Duration)
	Observe(status.Status)
}

// Parts are what the agent works with.
type Parts struct {
	As       string // what the agent is: its release and configuration
	Cache    NodeCache
	Unusable func(error) bool // tells whether the node cache must be rebuilt
	Writable func() error     // why the node cache can't be written, nil if it can. nil: nobody looks
	Kernel   Kernel
	Cloud    cloud.Cloud
	Stale    StaleAllocations
	Memory   Store
	Events   Events
	Log      *slog.Logger

	// PendingADDs returns who waits for an address besides the owners in the node cache.
	PendingADDs func(now time.Duration) ([]nodecache.PendingADD, error)
	// Publish tells people what the last tick found; why is one line for pods
	// that get no address.
	Publish func(s status.Status, why string) error
	// Beat tells people that the agent lives, each status.BeatEvery. nil: nobody asks.
	Beat func()
	// MaxPods returns how many pods the node may run and who says so.
	MaxPods func() (n int, source string)
	// FastPath tells how packets pass the node. nil: nobody looks after that.
	FastPath func() status.FastPath
	// Refused tells of a changed configuration that is not in force. nil: there can't be one.
	Refused func() *status.Refused

	// Disturbance returns what the last comparison met of what others changed in the kernel, "" for
	// nothing known. nil: nobody hears of that.
	Disturbance func() string

	Rand *rand.Rand // of jitter and tokens
	Clock
	Cluster
}

// Cluster is what knows the node's pods, and what is to know of them. Each part may be nil: then there is
// none to ask, or nobody wants to know.
type Cluster struct {
	// Pods returns the pods of the node that need addresses, as the cluster knows them,
	// and false as long as it does not.
	Pods func() ([]eni.Pod, bool)
	// Ending returns those that are being deleted, which Pods leaves out.
	Ending func() []eni.Pod
	// TopologyPods returns the pods of topologies, which Pods and Ending leave out.
	TopologyPods func() []eni.TopologyPod
	// PodIPs returns the addresses that the cluster shows of pods, whichever plugin gave them.
	PodIPs func() map[eni.Pod]netip.Addr
	// Report takes what the cluster is to know of the node, after each tick.
	Report func(health.Report)
	// Warn tells the people of a pod that it got no address: once for each time that
	// the node has none.
	Warn func(pod eni.Pod, reason, message string)

	// Object is the node's object, for where an operator calls the cloud for the node, or did. nil: there is no cluster.
	Object Object
	// Boot is the node's boot, for what the object says.
	Boot string
	// Kept keeps over boots what the agent has seen of the object. nil: nothing does.
	Kept Store
}

// Agent is the loop of one node. Its methods are for one goroutine. What it knows are values, each with
// the functions that judge it; what acts on cloud, kernel and node cache is Parts, and the tick has the order.
type Agent struct {
	Parts
	conf agentconf.Config

	supply supply // where addresses come from and go back to

	agenda            // what is due when
	record            // what outlasts the process
	reading           // the node cache as it was read last, and what it was compared with
	view     view     // of the cloud
	doubts   doubts   // what was not found where it should be
	links    links    // of the node's ENIs: which lack theirs
	desk              // calls to the cloud under way
	backoffs backoffs // what is left alone for a while
	account           // what is known of others on the same account
	outlook           // what the last plan was made from, and what it found
	fights   fights   // what is put right again and again
	news              // what people were told, so that it is not told again
	status   status.Status
	steps    int // done so far, to tell an idle tick
}

// New returns the agent of a node. What an earlier one remembered is taken over.
func New(conf agentconf.Config, p Parts) *Agent {
	a := &Agent{
		Parts: p, conf: conf, agenda: agenda{unsynced: true}, reading: reading{restarted: true}, doubts: noDoubts(),
		desk: newDesk(conf), backoffs: backoffs{}, account: account{scarce: map[string]*scarcity{}}, outlook: outlook{known: newPodSet()},
		fights: fights{}, news: news{said: map[string]string{}, warned: map[eni.Pod]time.Duration{}},
	}
	if a.Disturbance == nil {
		a.Disturbance = func() string { return "" }
	}
	if conf.Cloud.Provider != agentconf.Operator {
		a.supply = self{a, &leave{}}
		a.recall()
		a.spreadFirst()
		return a
	}
	o := newOrdered(a)
	a.Cloud, a.supply = noCloud{}, o
	a.recall()
	o.recallKept()
	o.beginLife(a.Now())
	return a
}

// Reload takes over a new configuration from the next tick on. Keys that need a restart
// stay what they were.
func (a *Agent) Reload(conf agentconf.Config) {
	conf, _ = a.conf.Reload(conf)
	a.conf = conf
	a.limit(conf)
	a.keepMode()
	if !a.view.known {
		a.describeAt = 0 // what has changed may need the cloud
	}
	// What the new periods make due is due at once.
	a.atMost(a.Now(), conf.DescribeEvery(), conf.Resync)
}

// Status returns what the last tick found.
func (a *Agent) Status() status.Status { return a.status }
