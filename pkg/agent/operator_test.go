package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// testOperator is the operator of one node and the store of its object. It is small: it decides by the functions of
// pkg/order, and calls the cloud for one thing after the other.
type testOperator struct {
	n    *testNode
	boot string

	mu      sync.Mutex
	is      order.Object // the truth, of version "" before an agent made it
	version int
	shown   order.Object // what watches have told
	lagging bool         // they tell nothing new
	older   bool         // its kinds do not have what this agent says of the leader
	deaf    bool         // the API server does not answer agents, and tells nothing
	away    bool         // the operator does nothing
	meddles int          // so many writes of agents conflict, with changes that others make
	blocks  []order.Cause
	full    bool // its cloud has no more
	writes  int  // of specs
	refused int  // of those, for their version
	uids    int
	firsts  int             // how often agents asked for the first copy
	over    *order.Handover // the last one
	turn    int

	term  *order.Term
	cloud *engine.Node
	stop  context.CancelFunc
	ended chan struct{}
}

var testLease = order.Lease{Duration: 15 * time.Second, Settle: 10 * time.Second, Fence: 6 * time.Minute}

// operate gives the node an operator, which acts each second.
func (n *testNode) operate() *testOperator {
	account := n.w.account
	op := &testOperator{n: n, boot: "boot-1", cloud: engine.New(account.NodeDriver(n.name), account.NodeOptions(n.name)), ended: make(chan struct{})}
	op.term = order.NewTerm(testLease, 1, n.w.now())
	n.operator = op
	var ctx context.Context
	ctx, op.stop = context.WithCancel(context.Background())
	go func() {
		defer close(op.ended)
		for ctx.Err() == nil {
			if !op.isAway() {
				op.act(ctx)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second + 77*time.Microsecond):
			}
		}
	}()
	return op
}

// succeed makes another leader: it knows nothing of what the one before it did.
func (op *testOperator) succeed() {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.term = order.NewTerm(testLease, op.term.Epoch+1, op.n.w.now())
}

func (op *testOperator) end() {
	op.stop()
	<-op.ended
}

func (op *testOperator) isAway() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.away
}

func (op *testOperator) hasNone() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.full
}

// set changes what it does, or the object, and wakes the agent.
func (op *testOperator) set(change func(*testOperator)) {
	op.mu.Lock()
	change(op)
	op.show()
	op.mu.Unlock()
	op.n.wake()
}

// show lets watches tell of the truth.
func (op *testOperator) show() {
	if !op.lagging && !op.deaf {
		op.shown = op.is
	}
}

// put is a write of either side.
func (op *testOperator) put(next order.Object) order.Object {
	op.version++
	next.Version = strconv.Itoa(op.version)
	op.is = next
	op.show()
	return next
}

// object returns the truth.
func (op *testOperator) object() order.Object {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.is
}

// writeStatus puts a status that was decided from a copy.
func (op *testOperator) writeStatus(from order.Object, next order.Status) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if from.Version != op.is.Version {
		return false
	}
	if next.Mode == from.Status.Mode && !order.Follows(from.Status, next) {
		op.n.w.t.Errorf("%+v follows on %+v", next, from.Status)
	}
	changed := op.is
	changed.Status, changed.Observed, changed.Causes = next, from.Generation, op.blocks
	op.put(changed)
	op.n.wake()
	return true
}

// handedOver returns what an agent has handed over last.
func (op *testOperator) handedOver() *order.Handover {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.over
}

func (op *testOperator) moment() order.Moment {
	return order.Moment{Mono: op.n.w.now(), Wall: time.Now()}
}

// act does one thing after the other, each from the newest copy.
func (op *testOperator) act(ctx context.Context) {
	now := op.object()
	if now.Version == "" {
		return
	}
	switch {
	case now.Spec.Mode == order.Self:
		if now.Status.Mode == order.Operator {
			next := now.Status
			next.Mode = order.Self
			op.writeStatus(now, next)
		}
		return
	case now.Status.Mode != order.Operator:
		op.join(ctx, now)
		return
	}
	if op.turn++; op.turn%10 == 1 {
		op.describe(ctx)
	}
	if now = op.object(); now.Spec.Mode != order.Operator {
		return
	}
	if next, is := op.term.Accept(now.View); is && !op.writeStatus(now, next) {
		return
	}
	op.release(ctx)
	op.grow(ctx)
	if now = op.object(); !now.Answered() {
		op.writeStatus(now, now.Status)
	}
}

// join takes the node over: what its agent has told the cloud is accepted.
func (op *testOperator) join(ctx context.Context, now order.Object) {
	limits, err := op.cloud.Limits(ctx)
	list, wrong := op.cloud.Interfaces(ctx)
	if err != nil || wrong != nil {
		return
	}
	next := now.Status
	next.Mode, next.Limits, next.Epoch = order.Operator, limits, op.term.Epoch
	next.Revision = max(next.Revision, now.Spec.SeenRevision) + 1
	next.ENIs = nil
	for _, nic := range list {
		if nic.Index >= 0 {
			next.ENIs = append(next.ENIs, orderENI(nic))
		}
	}
	if h := now.Handover; h == nil { // no agent has called: there is nothing to wait for
		next.ENIs = nil
	} else {
		next.Releasing = append(next.Releasing, h.Release...)
		next.LeavingInterfaces = append(next.LeavingInterfaces, h.ReleaseInterfaces...)
	}
	op.writeStatus(now, next)
}

func orderENI(nic cloud.Interface) order.ENI {
	e := order.ENI{ID: nic.ID, Index: nic.Index, MAC: nic.MAC, Subnet: nic.Subnet, State: order.Attached, Token: nic.Token, V4: nic.V4, V6: nic.V6}
	e.Addresses = hostPrefixes(nic.Addresses)
	return e
}

func hostPrefixes(addrs []netip.Addr) (list []netip.Prefix) {
	for _, a := range addrs {
		list = append(list, netip.PrefixFrom(a, a.BitLen()))
	}
	return list
}

func (op *testOperator) describe(ctx context.Context) {
	began := op.moment()
	list, err := op.cloud.Interfaces(ctx)
	if err != nil {
		return
	}
	d := order.Description{Began: began, Shown: map[string][]netip.Prefix{}}
	for _, nic := range list {
		if nic.Index >= 0 {
			d.Shown[nic.ID] = hostPrefixes(nic.Addresses)
		}
	}
	now := op.object()
	if len(now.Status.ENIs) == 0 {
		next := now.Status
		for _, nic := range list {
			if nic.Index >= 0 {
				next.ENIs = append(next.ENIs, orderENI(nic))
			}
		}
		next.Revision++
		op.writeStatus(now, next)
		return
	}
	if next, is := op.term.Described(now.View, op.moment(), d); is {
		op.writeStatus(now, next)
	}
}

// release unassigns what is accepted.
func (op *testOperator) release(ctx context.Context) {
	now := op.object()
	if next, is := op.term.Take(now.View); is && !op.writeStatus(now, next) {
		return
	}
	now = op.object()
	for id, addrs := range op.term.Unassignable(now.View) {
		op.term.Asked(now.Status, addrs...)
		var list []netip.Addr
		for _, p := range addrs {
			list = append(list, p.Addr())
		}
		op.n.mayGo(list)
		if err := op.cloud.UnassignAddresses(ctx, id, list); err != nil {
			continue
		}
		op.term.Answered(addrs...)
		for at := op.object(); !op.writeStatus(at, op.term.Unassigned(at.View, op.moment(), addrs...)); at = op.object() {
		}
	}
	for _, id := range op.term.Deletable(now.View) {
		op.n.mayLose(id)
		if err := op.cloud.DeleteInterface(ctx, id); err != nil {
			continue
		}
		for at := op.object(); !op.writeStatus(at, op.term.Deleted(at.View, id)); at = op.object() {
		}
	}
}

// grow does the steps of its half of the plan.
func (op *testOperator) grow(ctx context.Context) {
	list, err := op.cloud.Subnets(ctx)
	if err != nil {
		return
	}
	var facts order.Facts
	for _, s := range list {
		facts.Subnets = append(facts.Subnets, pool.Subnet{ID: s.ID, Free: s.Free, New: s.New})
	}
	now := op.object()
	if op.hasNone() {
		return
	}
	for _, step := range order.Plan(now.Spec, now.Status, facts) {
		if step.Do == pool.Create {
			token := order.Token(now.UID, now.Status.Created)
			nic, err := op.cloud.CreateInterface(ctx, cloud.Create{Token: token, Subnet: step.Subnet, V4: step.V4, V6: step.V6})
			if err == nil {
				for at := op.object(); !op.writeStatus(at, op.term.Made(at.View, op.moment(), now.UID, orderENI(nic))); at = op.object() {
				}
			}
			return // the next one has another token
		}
		addrs, _ := op.cloud.AssignAddresses(ctx, step.ENI, step.Family, step.Count)
		if len(addrs) > 0 {
			for at := op.object(); !op.writeStatus(at, op.term.Assigned(at.View, op.moment(), step.ENI, hostPrefixes(addrs)...)); at = op.object() {
			}
		}
	}
}

// objectOf is the object as one process sees it.
type objectOf struct {
	op *testOperator
	p  process

	watched, read bool
	first         order.Object // as it was read last, where it is not watched
}

func (o *objectOf) Newest() (order.Object, bool) {
	o.op.mu.Lock()
	defer o.op.mu.Unlock()
	o.watched = true
	return o.op.shown, !o.op.deaf || o.op.shown.Version != ""
}

func (o *objectOf) First() (order.Object, bool) {
	o.op.mu.Lock()
	o.op.firsts++
	watched, read := o.watched, o.read
	o.op.mu.Unlock()
	if watched {
		return o.Newest()
	}
	if !read {
		o.ReadAgain()
	}
	return o.first, o.read
}

func (o *objectOf) ReadAgain() {
	o.op.mu.Lock()
	defer o.op.mu.Unlock()
	if !o.op.deaf {
		o.first, o.read = o.op.is, true
	}
}

func (o *objectOf) Wrong() error {
	o.op.mu.Lock()
	defer o.op.mu.Unlock()
	if o.op.deaf {
		return errDeaf
	}
	return nil
}

var errDeaf = errors.New("connection refused")

func (o *objectOf) Write(_ context.Context, from order.Object, spec order.Spec, asks order.Asks) (written order.Object, err error) {
	o.p.ownTime("write", from.Version)
	failed := o.p.do(func() error {
		o.op.mu.Lock()
		defer o.op.mu.Unlock()
		written, err = o.op.writeSpec(from, spec, asks)
		return nil
	})
	if failed != nil {
		return order.Object{}, failed
	}
	return written, err
}

func (op *testOperator) writeSpec(from order.Object, spec order.Spec, asks order.Asks) (order.Object, error) {
	if op.deaf {
		return order.Object{}, context.DeadlineExceeded
	}
	if op.meddles > 0 {
		op.meddles--
		op.put(op.is)
	}
	op.writes++
	if from.Version != op.is.Version {
		op.refused++
		return order.Object{}, order.ErrConflict
	}
	next := op.is
	if next.Version == "" {
		op.uids++
		next.UID = "uid-" + strconv.Itoa(op.uids)
	}
	spec.Release, spec.ReleaseInterfaces = slices.Clone(spec.Release), slices.Clone(spec.ReleaseInterfaces)
	if asks.Handover != nil {
		op.over = asks.Handover
	}
	if op.older {
		spec.SeenEpoch = 0
	}
	next.Spec, next.Asks, next.Generation = spec, asks, next.Generation+1
	return op.put(next), nil
}
