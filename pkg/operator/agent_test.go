package operator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// agent is a node's agent, as much as the operator can tell: it has the node state and follows the agent's side of the protocol.
type agent struct {
	w    *world
	name string
	conf pool.Config

	mu        sync.Mutex
	seen      *crd.NodeNetwork
	state     *ipam.State
	head      order.Head
	boot      string
	pods      int // that are to run
	started   int // so far
	mode      crd.Mode
	spare     int
	handover  *crd.Handover
	since     *metav1.Time
	filled    time.Duration // when nothing waited first
	writes    int
	ended     bool
	idle      int32
	without   int                   // slots that it was asked to do without
	told      time.Duration         // when the object said how many last
	untold    bool                  // the store was put back, and it has not written since
	old       bool                  // of a release that does not say whose status it has read
	boxes     map[netip.Addr]string // uids of the pods of topologies that have an address
	silent    bool                  // it does nothing
	every     time.Duration         // how often it acts, of 0 each 500 ms
	remembers bool                  // as the real one does: the revision that it has seen outlives the object
	empty     map[string]time.Duration
}

func newAgent(w *world, name string, conf pool.Config) *agent {
	return &agent{w: w, name: name, boxes: map[netip.Addr]string{}, conf: conf, boot: "boot-0", mode: crd.Operator, spare: 2,
		state: &ipam.State{Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: w.families}}}
}

// run is the agent's life.
func (a *agent) run(ctx context.Context) {
	go a.w.store.watchNode(ctx, a.name, func(e operator.Event) {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch {
		case a.seen == nil:
		case e.Deleted && a.seen.UID == e.Network.UID:
			if a.seen = nil; !a.remembers {
				a.head = order.Head{} // the next object begins at 0 again
			}
		case !e.Deleted && isNewer(e.Network, a.seen):
			a.untold = a.untold || isBefore(e.Network, a.seen) && a.head.Revision > 0
			a.seen = e.Network
		}
	})
	for ctx.Err() == nil {
		a.mu.Lock()
		if a.ended {
			a.state = &ipam.State{Settings: a.state.Settings}
			a.mu.Unlock()
			return
		}
		if !a.silent {
			a.tick(ctx)
		}
		every := cmp.Or(a.every, 500*time.Millisecond)
		a.mu.Unlock()
		sleep(ctx, every)
	}
}

// links returns those of the ENIs that the node has.
func (a *agent) links(enis []order.ENI) map[string]eni.Interface {
	links := map[string]eni.Interface{}
	if len(enis) == 0 {
		return links
	}
	there := map[string]bool{}
	a.w.View(0, func(tx *sim.Tx) {
		for _, nic := range tx.Interfaces() {
			there[nic.ID] = nic.Attachment != nil && nic.Attachment.Instance == "i-"+a.name
		}
	})
	for _, e := range enis {
		if there[e.ID] {
			links[e.ID] = eni.Interface{ID: e.ID, Index: e.Index, Device: fmt.Sprint("eth", e.Index), MTU: 1500, V4: e.V4}
		}
	}
	return links
}

// isBefore tells whether a copy, whatever its version, is of before another: what only grows is less.
func isBefore(n, old *crd.NodeNetwork) bool {
	return n.UID == old.UID && (n.Generation < old.Generation || n.Status.Revision < old.Status.Revision)
}

func isNewer(n, old *crd.NodeNetwork) bool {
	return len(n.ResourceVersion) > len(old.ResourceVersion) || len(n.ResourceVersion) == len(old.ResourceVersion) && n.ResourceVersion > old.ResourceVersion
}

func sleep(ctx context.Context, d time.Duration) {
	operator.Wall{}.Sleep(ctx, nil, d)
}

// tick adopts, lets pods have addresses, and writes what the node wants.
func (a *agent) tick(ctx context.Context) {
	now := a.w.since()
	if a.seen == nil {
		if a.seen, _ = a.w.store.ReadNode(ctx, a.name); a.seen == nil { // S5: not from the watch
			a.seen = &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: a.name}}
		}
	}
	v, err := crd.View(a.seen)
	if err != nil {
		a.w.complain("%s reads %v", a.name, err)
		return
	}
	links := map[string]eni.Interface{}
	for _, e := range v.Status.ENIs {
		links[e.ID] = eni.Interface{ID: e.ID, Index: e.Index, Device: fmt.Sprint("eth", e.Index), MTU: 1500, V4: e.V4, V6: e.V6}
	}
	if at := a.seen.Status.ObservedGeneration; at < 0 && a.seen.Generation <= -at {
		a.untold = true
	}
	c := order.Adopt(a.state, a.head, a.boot, v)
	if a.untold {
		c = order.Changes{}
	}
	c.Release = append(c.Release, c.Unreserve...) // what is not kept any more goes back
	for _, list := range []*[]netip.Addr{&c.Release, &c.Unreserve} {
		*list = slices.DeleteFunc(*list, func(at netip.Addr) bool { return a.boxes[at] != "" })
	}
	if err := c.Apply(a.state, order.Node{Links: a.links(c.ENIs)}, now); err != nil {
		a.w.complain("%s adopts: %v", a.name, err)
	}
	if c.Revision > 0 {
		a.head = c.Head
	}
	a.runBoxes(v)
	waiting := a.startPods(now)
	next := a.spec(v, waiting, now)
	var back []netip.Addr
	for _, line := range a.state.Addresses {
		kept := slices.ContainsFunc(v.Status.Reserved, func(r order.Reserved) bool { return r.Addr == line.Addr }) // again, as the real one finds
		if line.State == eni.Releasing && (len(back) < waiting || kept) {
			back = append(back, line.Addr)
		}
	}
	next, withdrawn := order.Withdraw(v, next, back)
	if !order.Stale(a.head, v.Status) && !a.untold && !a.old {
		next = order.Hear(v, next)
	}
	a.send(ctx, next, withdrawn, now)
}

// startPods lets pods start and end, and returns how many have no address.
func (a *agent) startPods(now time.Duration) (waiting int) {
	used := len(a.state.Used())
	for ; used < a.pods; used++ {
		a.started++
		owner := eni.Owner{Key: eni.Key{Network: "net", Container: fmt.Sprint("pod-", a.started), IfName: "eth0"}}
		if _, err := a.state.AssignPod(owner, "", now); err != nil {
			waiting = a.pods - used
			break
		}
	}
	ends := used - a.pods
	a.state.FreeIf(func(eni.Address) bool {
		ends--
		return ends >= 0
	}, now)
	if waiting == 0 && a.filled == 0 {
		a.filled = now
	}
	return waiting
}

// spec returns what the node wants: what is spare beyond the pods leaves service first.
func (a *agent) spec(v order.View, waiting int, now time.Duration) order.Spec {
	target := a.pods + a.spare
	var free []netip.Addr
	held := 0
	for _, line := range a.state.Addresses {
		if _, is := a.state.FreeSince(&line, now); is {
			free = append(free, line.Addr)
		}
		if line.State == eni.Used || line.State == eni.Free || line.State == eni.Cooling {
			held++
		}
	}
	if over := held - target - a.spare; over > 0 && v.Status.Mode == order.Operator && waiting == 0 && len(a.state.Settings.Families) == 1 {
		a.state.StartRelease(free[:min(over, len(free))], now)
	}
	asked := int(a.seen.Status.Reclaim)
	if n := min(asked-a.without, len(free)); n > 0 {
		a.spare = max(0, a.spare-n)
		a.state.StartRelease(free[:n], now)
		free = free[n:]
	} else if asked < a.without {
		a.spare += a.without - asked
	}
	a.without, target = asked, a.pods+a.spare
	a.idle = int32(len(free))
	next := order.Begin(v, a.boot)
	if v.Spec.Boot == a.boot && v.Status.Mode == order.Operator && a.mode == crd.Operator {
		next = order.PublishInterfaces(v, order.Publish(a.state, v), a.leavingENIs(v)...)
	}
	next.Mode, next.Families, next.Slots, next.Waiting, next.Pool = order.Self, a.state.Settings.Families, target, waiting, a.conf
	if a.mode == crd.Operator {
		next.Mode = order.Operator
	} else {
		next.Release, next.ReleaseInterfaces = nil, nil
	}
	if order.Stale(a.head, v.Status) || a.untold {
		if next = order.Seen(a.state, v, a.head); a.untold && reflect.DeepEqual(next, v.Spec) {
			return order.Repeat(v)
		}
	}
	return next
}

// unused returns the ENIs whose addresses all go back.
func (a *agent) unused() (ids []string) {
	for _, nic := range a.state.ENIs {
		goes := false
		stays := slices.ContainsFunc(a.state.Addresses, func(line eni.Address) bool {
			goes = goes || line.ENI == nic.Index
			return line.ENI == nic.Index && line.State != eni.Releasing
		})
		if nic.Index > 0 && goes && !stays {
			ids = append(ids, nic.ID)
		}
	}
	return ids
}

// send writes a spec that says something new. Only its answer lets what was withdrawn be free again.
func (a *agent) send(ctx context.Context, next order.Spec, withdrawn []netip.Prefix, now time.Duration) {
	object := a.seen.DeepCopy()
	object.Spec.Write(next)
	switch {
	case next.Waiting == 0:
		a.since = nil
	case a.since == nil:
		a.since = &metav1.Time{Time: time.Now()}
	}
	object.Spec.WaitingSince = a.since
	object.Spec.Handover = a.handover
	if asked := object.Status.Reclaim; asked != object.Spec.SeenReclaim || a.told == 0 || now-a.told > time.Minute { // of itself it is written seldom
		object.Spec.IdleSlots, object.Spec.SeenReclaim = a.idle, asked
	}
	if a.seen.Status.Mode == crd.Operator && a.mode == crd.Operator {
		object.Spec.Handover, a.handover = nil, nil
	}
	if a.seen.ResourceVersion != "" && reflect.DeepEqual(object.Spec, a.seen.Spec) {
		return
	}
	a.writes++
	answer, err := a.w.store.put(object)
	if errors.Is(err, operator.ErrConflict) {
		if newest, err := a.w.store.ReadNode(ctx, a.name); err == nil && isNewer(newest, a.seen) {
			a.seen = newest
		}
		return
	}
	if err != nil {
		return
	}
	a.untold = false
	if object.Spec.IdleSlots != a.seen.Spec.IdleSlots {
		a.told = now
	}
	a.seen = answer
	if v, err := crd.View(answer); err == nil {
		a.state.CancelRelease(order.Confirmed(v, withdrawn), now)
	}
}

// set changes how many pods are to run.
func (a *agent) set(pods int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods, a.filled = pods, 0
}

// restart ends the process; the node cache stays, or with a boot nothing does.
func (a *agent) restart(boots bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = nil
	if boots {
		a.state = &ipam.State{Settings: a.state.Settings, ENIs: a.state.ENIs}
		a.head, a.boot = order.Head{}, fmt.Sprint("boot-", a.started+1)
	}
}

// reads takes in what the store has, as a watch does that began again: a store that was put back counts too.
func (a *agent) reads(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.w.store.ReadNode(ctx, a.name)
	if err != nil || a.seen == nil || n.UID != a.seen.UID {
		a.seen = nil
		return
	}
	if !isNewer(n, a.seen) && n.ResourceVersion != a.seen.ResourceVersion || isBefore(n, a.seen) {
		a.untold = a.head.Revision > 0
	}
	a.seen = n
}

// violation says which address pods have or may get that is not on an ENI of the node.
func (a *agent) violation(on map[netip.Addr]string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.state.Addresses {
		// What is held nobody gets but a pod for which it is kept: checkBoxes looks after those.
		general := line.State == eni.Used || line.State == eni.Free || line.State == eni.Cooling
		if general && !line.Lost && on[line.Addr] != a.name {
			return fmt.Sprintf("%s of %s is %s and is on %q", line.Addr, a.name, line.State, on[line.Addr])
		}
	}
	return ""
}

// addresses returns what the node state has.
func (a *agent) addresses() (list []netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.state.Addresses {
		list = append(list, line.Addr)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// used returns the pods' addresses.
func (a *agent) used() (list []netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.state.Used() {
		list = append(list, line.Addr)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// change changes who calls.
func (a *agent) change(mode crd.Mode, h *crd.Handover) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode, a.handover = mode, h
}

// end ends the agent for good.
func (a *agent) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}
