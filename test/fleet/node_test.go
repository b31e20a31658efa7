package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// node is a node without a kernel: its node cache is in memory, its links are what the account has attached, and pods take addresses as
// soon as there are some.
type node struct {
	w        *world
	name     string
	instance string
	phase    time.Duration // how much longer ago it booted than others: what they do at whole seconds has an order
	conf     agentconf.Config

	mu      sync.Mutex
	state   *ipam.State // never changed once others may have seen it
	memory  []byte
	kept    []byte // on its disk
	boots   int
	pods    []*pod
	serial  int
	jump    time.Duration // of its time of day
	life    *life
	deleted bool
	seed    uint64
}

// pod is a sandbox, and its address once it has one.
type pod struct {
	owner eni.Owner
	since time.Duration
	addr  netip.Addr
}

// life is one run of a node's agent. After its end none of its effects count.
type life struct {
	n      *node
	killAt int // effects until it is killed, -1 for never
	before bool
	dead   bool
	object *object
	woken  chan struct{}
	cancel context.CancelFunc
	ended  chan struct{}
}

var errKilled = errors.New("the agent was killed")

func (n *node) now() time.Duration { return time.Since(n.w.began) + time.Hour + n.phase }

// start runs a new agent. It is killed before, or after, so many effects of it.
func (n *node) start(killAt int, before bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &life{n: n, killAt: killAt, before: before, woken: make(chan struct{}, 1), ended: make(chan struct{})}
	l.object = &object{p: l, name: n.name}
	n.life = l
	n.serial++
	seed, boot := uint64(n.serial), fmt.Sprintf("boot-%d-of-%s", n.boots, n.name)
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(n.w.ctx)
	go func() {
		defer close(l.ended)
		a := agent.New(n.conf, agent.Parts{
			Cache: l, Unusable: nodecache.Unusable, Kernel: l, Stale: l, Memory: l, Events: silent{}, Log: n.w.logOf(n.name),
			PendingADDs: l.pendingADDs, Publish: func(status.Status, string) error { return nil },
			MaxPods: func() (int, string) { return 110, "test" },
			Rand:    rand.New(rand.NewPCG(n.seed, seed)),
			Clock:   nodeClock{agent.NewRealClock(n.now, agent.Signals{Wake: l.woken}), n},
			Cluster: agent.Cluster{Object: l.object, Boot: boot, Kept: disk{l}},
		})
		go l.object.run(ctx)
		_ = a.Run(ctx) // what goes wrong shows in the world
	}()
}

// nodeClock shows a time of day that may have been set.
type nodeClock struct {
	agent.Clock
	n *node
}

// Wall implements agent.Clock.
func (c nodeClock) Wall() time.Time {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	return time.Now().Add(c.n.jump)
}

// kill ends the agent as SIGKILL does, stop as SIGTERM does.
func (n *node) kill() {
	n.mu.Lock()
	n.life.dead = true
	n.mu.Unlock()
	n.stop()
}

func (n *node) stop() {
	n.life.cancel()
	<-n.life.ended
}

func (n *node) isDead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.dead
}

// reboot begins a new boot: no pod is left, nor what was in memory. What is on the disk is.
func (n *node) reboot() {
	n.kill()
	n.mu.Lock()
	n.boots++
	if n.state, n.memory = nil, nil; n.w.diskless {
		n.kept = nil
	}
	for _, p := range n.pods {
		n.w.disown(p.addr)
		p.addr, p.since = netip.Addr{}, n.now()
	}
	n.mu.Unlock()
	n.start(-1, false)
}

// setPods brings the node to so many pods. Those that end are not always the latest.
func (n *node) setPods(count int, rng *rand.Rand) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.pods) > count {
		i := rng.IntN(len(n.pods))
		n.end(n.pods[i])
		n.pods = slices.Delete(n.pods, i, i+1)
	}
	for len(n.pods) < count {
		n.serial++
		n.pods = append(n.pods, &pod{since: n.now(), owner: eni.Owner{Key: eni.Key{Network: "pods", Container: fmt.Sprintf("%s-%d", n.name, n.serial), IfName: "eth0"}}})
	}
	n.serve()
	n.life.wakeUp()
}

// end is a DEL. The caller holds the lock.
func (n *node) end(p *pod) {
	if p.addr.IsValid() {
		next := n.state.Clone()
		next.Free(p.owner.Key, n.now())
		n.state = next
		n.w.disown(p.addr)
	}
}

// serve lets pods that have no address take one. The caller holds the lock.
func (n *node) serve() {
	if n.state == nil || n.deleted {
		return
	}
	next := n.state.Clone()
	took := false
	for _, p := range n.pods {
		if p.addr.IsValid() {
			continue
		}
		lease, err := next.AssignPod(p.owner, "", n.now())
		if err != nil {
			break
		}
		p.addr, took = lease.Addresses[0].Addr, true
		n.w.own(p.addr, n, p)
	}
	if took {
		n.state = next
		n.life.wakeUp()
	}
}

// tryAgain lets pods without an address try again: one may have cooled down.
func (n *node) tryAgain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serve()
}

func (l *life) wakeUp() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// do carries out an effect of the agent, unless it is dead, or is killed in this moment.
func (l *life) do(f func() error) error {
	if !l.mayDo(true) {
		return errKilled
	}
	err := f()
	if !l.mayDo(false) {
		return errKilled
	}
	return err
}

func (l *life) mayDo(before bool) bool {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if before && l.killAt >= 0 {
		l.killAt--
	}
	l.dead = l.dead || l.killAt == 0 && before == l.before
	return !l.dead
}

// pendingADDs are the pods without an address.
func (l *life) pendingADDs(time.Duration) (list []nodecache.PendingADD, err error) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	for _, p := range l.n.pods {
		if !p.addr.IsValid() {
			list = append(list, nodecache.PendingADD{Owner: p.owner, Since: p.since})
		}
	}
	return list, nil
}

// View, Update and Replace are the node cache.
func (l *life) View(_ context.Context, f func(*ipam.State) error) error {
	l.n.mu.Lock()
	state := l.n.state
	l.n.mu.Unlock()
	if state == nil {
		return nodecache.ErrMissing
	}
	return f(state)
}

// Update implements agent.NodeCache, as the next one does.
func (l *life) Update(ctx context.Context, f func(*ipam.State) error) error {
	return l.Replace(ctx, func(old *ipam.State, err error) (*ipam.State, error) {
		if err == nil {
			err = f(old)
		}
		return old, err
	})
}

func (l *life) Replace(_ context.Context, f func(*ipam.State, error) (*ipam.State, error)) error {
	return l.do(func() error {
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		var old *ipam.State
		err := nodecache.ErrMissing
		if l.n.state != nil {
			old, err = l.n.state.Clone(), nil
		}
		next, err := f(old, err)
		if err != nil {
			return err
		}
		l.n.state = next.Clone()
		l.n.serve()
		l.wakeUp()
		return nil
	})
}

// Grow, Sync, Links and Occupancy are the kernel.
func (l *life) Grow(context.Context, *ipam.State) ([]string, error) {
	return nil, l.do(func() error { return nil })
}

// Sync implements agent.Kernel.
func (l *life) Sync(context.Context, []string, *ipam.State) ([]string, error) {
	return nil, l.do(func() error { return nil })
}

// Links implements agent.Kernel: what is attached is there at once.
func (l *life) Links(context.Context) (map[string]eni.Interface, error) {
	links := map[string]eni.Interface{}
	l.n.w.account.View(0, func(tx *sim.Tx) {
		for _, i := range tx.InterfacesOf(l.n.instance, "", "") {
			if i.Attachment != nil && i.Attachment.Instance == l.n.instance && i.Status == sim.InUse {
				links[i.MAC] = eni.Interface{Device: "eth" + strconv.Itoa(i.Attachment.Index), MTU: 9001}
			}
		}
	})
	return links, nil
}

// Occupancy implements agent.Kernel.
func (l *life) Occupancy(context.Context) (netconf.Occupancy, error) { return netconf.Occupancy{}, nil }

// Reclaim implements agent.StaleAllocations: each sandbox ends with a DEL.
func (l *life) Reclaim(context.Context, func(eni.Owner) bool) ([]eni.Address, error) { return nil, nil }

// Load and Save are the agent's memory.
func (l *life) Load() ([]byte, error) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	return l.n.memory, nil
}

// Save implements agent.Store.
func (l *life) Save(text []byte) error {
	return l.do(func() error {
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		l.n.memory = slices.Clone(text)
		return nil
	})
}

// disk is what outlasts a boot.
type disk struct{ l *life }

// Load implements agent.Store.
func (d disk) Load() ([]byte, error) {
	d.l.n.mu.Lock()
	defer d.l.n.mu.Unlock()
	return d.l.n.kept, nil
}

// Save implements agent.Store.
func (d disk) Save(text []byte) error {
	return d.l.do(func() error {
		d.l.n.mu.Lock()
		defer d.l.n.mu.Unlock()
		d.l.n.kept = slices.Clone(text)
		return nil
	})
}

// silent are metrics that nobody reads.
type silent struct{}

func (silent) Call(string, string, time.Duration) {}
func (silent) Step(status.Step)                   {}
func (silent) Repaired(string, int)               {}
func (silent) Compared(string)                    {}
func (silent) Error(string)                       {}
func (silent) Tick(time.Duration)                 {}
func (silent) Observe(status.Status)              {}

var _ *slog.Logger
