package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// maxPods is how many pods a node may run.
const maxPods = 110

const mergePatch = types.StrategicMergePatchType

func roomFor(pods int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("384Gi"),
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
}

// node is a node without a kernel: the agent and its way to the API server are the real ones, its node cache is in memory, and
// its links are what the account has attached. In place of a kubelet and a runtime pods take addresses as soon as there are some.
type node struct {
	bed     *bed
	name    string
	cluster *kube.Node
	agent   *agent.Agent
	woken   chan struct{} // for the agent
	changed chan struct{} // the node cache has changed

	mu     sync.Mutex
	state  *ipam.State // never changed once others may have seen it
	memory []byte
	tally
}

// tally is what became of a node's pods.
type tally struct {
	pods        int             // that are to have addresses
	served      map[string]bool // by UID
	first, last time.Time       // when a pod got an address
	calls       int             // that had assigned addresses, of all nodes, when the first did
}

func newNode(b *bed, name string, seed uint64) (n *node, err error) {
	n = &node{bed: b, name: name, woken: make(chan struct{}, 1), changed: make(chan struct{}, 1), tally: tally{served: map[string]bool{}}}
	config := rest.CopyConfig(b.config)
	config.QPS, config.Burst = 0, 0 // what a process of its own has
	if n.cluster, err = kube.New(kube.Options{Node: name, Config: config, Taint: true}); err != nil {
		return nil, err
	}
	conf := agentconf.Default()
	conf.Node, conf.ModeSet, conf.Cloud.Provider, conf.Settings.SNAT = name, true, agentconf.Operator, false
	n.agent = agent.New(conf, agent.Parts{
		Cache: n, Unusable: nodecache.Unusable, Kernel: n, Stale: n, Memory: n, Events: silent{}, Log: slog.New(slog.DiscardHandler),
		PendingADDs: func(time.Duration) ([]nodecache.PendingADD, error) { return nil, nil }, // the cluster tells of all pods
		Publish:     func(status.Status, string) error { return nil },
		MaxPods:     func() (int, string) { return maxPods, "bench" },
		Rand:        rand.New(rand.NewPCG(seed, 1)),
		Clock:       agent.NewRealClock(nodecache.SinceBoot, agent.Signals{Wake: n.woken}),
		Cluster: agent.Cluster{Pods: n.cluster.Pods, Ending: n.cluster.Ending, PodIPs: n.cluster.PodIPs, TopologyPods: n.cluster.TopologyPods, Report: n.cluster.Report, Warn: n.cluster.Warn,
			Object: n.cluster.Object(), Boot: "boot-of-" + name},
	})
	return n, nil
}

// start begins the node's life, which ends with the bed's.
func (n *node) start() {
	ctx, life := n.bed.ctx, &n.bed.life
	life.Go(func() { n.bed.report.noteWrong(n.cluster.Run(ctx)) })
	life.Go(func() { _ = n.agent.Run(ctx) }) // its last write may find nobody
	life.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-n.cluster.Changed():
			case <-n.cluster.Object().Changed():
			case <-n.changed:
			}
			n.startPods()
			signalTo(n.woken)
		}
	})
}

func signalTo(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (n *node) wants(pods int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods += pods
}

// startPods gives addresses to the pods that have none, as their ADDs would.
func (n *node) startPods() {
	list, known := n.cluster.Pods()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !known || n.state == nil || len(n.served) == len(list) {
		return
	}
	next := n.state.Clone()
	for _, p := range list {
		if n.served[p.UID] {
			continue
		}
		owner := eni.Owner{Key: eni.Key{Network: "pods", Container: p.UID, IfName: "eth0"}, Namespace: p.Namespace, Pod: p.Name, UID: p.UID}
		lease, err := next.AssignPod(owner, "", nodecache.SinceBoot())
		if err != nil {
			break // nor is there one for the next
		}
		n.note(p, lease)
	}
	if len(next.Touched()) > 0 {
		n.state = next
	}
}

// note counts a pod that has its address.
func (n *node) note(p eni.Pod, lease ipam.Lease) {
	n.last = time.Now()
	if n.first.IsZero() {
		n.first, n.calls = n.last, n.bed.account.Calls()[sim.ActAssign]
	}
	n.served[p.UID] = true
	if n.bed.sizes.phases && len(lease.Addresses) > 0 {
		n.bed.phases <- phase{p.Namespace, p.Name, p.UID, lease.Addresses[0].Addr.String()}
	}
}

// result returns what became of the node's pods so far.
func (n *node) result() (t tally, served int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tally, len(n.served)
}

// View, Update and Replace are the node cache.
func (n *node) View(_ context.Context, fn func(*ipam.State) error) error {
	n.mu.Lock()
	state := n.state
	n.mu.Unlock()
	if state == nil {
		return nodecache.ErrMissing
	}
	return fn(state)
}

// Update implements agent.NodeCache.
func (n *node) Update(ctx context.Context, fn func(*ipam.State) error) error {
	return n.Replace(ctx, func(old *ipam.State, err error) (*ipam.State, error) {
		if err == nil {
			err = fn(old)
		}
		return old, err
	})
}

// Replace implements agent.NodeCache.
func (n *node) Replace(_ context.Context, fn func(*ipam.State, error) (*ipam.State, error)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var old *ipam.State
	err := nodecache.ErrMissing
	if n.state != nil {
		old, err = n.state.Clone(), nil
	}
	next, err := fn(old, err)
	if err != nil {
		return err
	}
	n.state = next.Clone()
	signalTo(n.changed)
	return nil
}

// Grow, Sync, Links and Occupancy are the kernel.
func (n *node) Grow(context.Context, *ipam.State) ([]string, error) { return nil, nil }

// Sync implements agent.Kernel.
func (n *node) Sync(context.Context, []string, *ipam.State) ([]string, error) { return nil, nil }

// Links implements agent.Kernel: what is attached is there at once.
func (n *node) Links(context.Context) (map[string]eni.Interface, error) {
	links := map[string]eni.Interface{}
	n.bed.account.View(0, func(tx *sim.Tx) {
		for _, i := range tx.InterfacesOf("i-"+n.name, "", "") {
			if i.Attachment != nil && i.Attachment.Instance == "i-"+n.name && i.Status == sim.InUse {
				links[i.MAC] = eni.Interface{Device: "eth" + strconv.Itoa(i.Attachment.Index), MTU: 9001}
			}
		}
	})
	return links, nil
}

// Occupancy implements agent.Kernel.
func (n *node) Occupancy(context.Context) (netconf.Occupancy, error) { return netconf.Occupancy{}, nil }

// Reclaim implements agent.StaleAllocations: pods stay.
func (n *node) Reclaim(context.Context, func(eni.Owner) bool) ([]eni.Address, error) { return nil, nil }

// Load and Save are the agent's own file.
func (n *node) Load() ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.memory, nil
}

// Save implements agent.Store.
func (n *node) Save(text []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory = append([]byte(nil), text...)
	return nil
}

// silent are metrics that nobody reads.
type silent struct{}

// Call implements agent.Events, as the others do.
func (silent) Call(string, string, time.Duration) {}

// Step implements agent.Events.
func (silent) Step(status.Step) {}

// Repaired implements agent.Events.
func (silent) Repaired(string, int) {}

// Compared implements agent.Events.
func (silent) Compared(string) {}

// Error implements agent.Events.
func (silent) Error(string) {}

// Tick implements agent.Events.
func (silent) Tick(time.Duration) {}

// Observe implements agent.Events.
func (silent) Observe(status.Status) {}
