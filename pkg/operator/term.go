package operator

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// term is the state of a term. Only its loop touches it.
type term struct {
	*Operator
	lead  Lead
	epoch int64
	ctx   context.Context         // of all that is under way
	stop  context.Context         // ends when nothing new is to begin
	end   context.CancelCauseFunc // has stop end
	endBy time.Duration           // until when what is under way then has time to end, 0 before
	under *sync.WaitGroup

	members map[string]*member
	guests  map[string]*member // nodes without an object, where the operator observes
	nodes   map[string]Node
	subnets map[string]*subnet
	dirty   map[string]bool // members to look at
	index
	looks
	running  map[*job]bool
	sweeps   sweeps
	scanAt   time.Duration // when dues are asked next
	reclaims bool          // nodes are asked for idle slots, or do without some
}

// index is what is kept of all members so that nobody need go through them.
type index struct {
	claims   map[string]*member // by instance: whom it is described for
	tally    tally
	due      *dues                    // when members are to be looked at though nothing changed
	describe *dues                    // when they are to be described
	starving map[string]*member       // whose pods wait
	lacking  map[string]*member       // whose pods wait for what no subnet has, and who do without something for such pods
	starved  map[string]time.Duration // by zone whose pods wait for what no subnet has, or did: when they were last seen to
}

func newIndex() index {
	return index{claims: map[string]*member{}, tally: tally{}, due: newDues(), describe: newDues(), starving: map[string]*member{}, lacking: map[string]*member{},
		starved: map[string]time.Duration{}}
}

// note keeps what the index has of a member, nil if it is there no more.
func (x *index) note(name string, m *member, now order.Moment) {
	delete(x.starving, name)
	delete(x.lacking, name)
	if m == nil {
		x.due.set(name, 0)
		x.describe.set(name, 0)
		return
	}
	x.tally.exchange(m, m.portions())
	x.due.set(name, m.due)
	at := time.Duration(0)
	if m.client != nil && m.isKnown() {
		if t, is := m.describeDue(m.view, now); is {
			at = max(t, 1)
		}
	}
	x.describe.set(name, at)
	if m.network != nil && m.view.Spec.Waiting > 0 {
		x.starving[name] = m
	}
	if m.lacksRoom() || m.asksBack > 0 {
		x.lacking[name] = m
	}
}

// looks is what is known of describes.
type looks struct {
	under  bool
	all    time.Duration // when the next describe of everything is due
	shown  time.Time     // when the last that succeeded began
	whole  misses        // of describes of everything
	some   misses        // of describes of some nodes
	failed *pool.Cause   // why they fail, once that is told
}

// misses are failures in a row.
type misses struct {
	count int
	since time.Duration // when the first of them ended
	until time.Duration // until when it is not tried again
}

// add returns them with one more, that ended now.
func (m misses) add(now time.Duration) misses {
	if m.count == 0 {
		m.since = now
	}
	m.count++
	m.until = now + min(time.Minute, time.Second<<min(m.count, 6))
	return m
}

func (t *term) now() order.Moment {
	now := t.o.Clock.Now()
	return order.Moment{Mono: now.Sub(t.lead.Acquired), Wall: now}
}

// mayCall returns why no request may be sent now (S6).
func (t *term) mayCall() error {
	if t.stop.Err() != nil {
		return errStops
	}
	if !t.o.Lease.MayCall(t.now().Mono, t.lead.Renewed().Sub(t.lead.Acquired), t.o.Timeout) {
		return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "the lease may run out before the request ends"}
	}
	return nil
}

// patience is how long the loop sleeps at most: Healthy goes by it.
const patience = time.Minute

// loop turns until the term ends.
func (t *term) loop() {
	for t.ctx.Err() == nil && !t.hasEnded() {
		wait := t.turn()
		t.o.Clock.Sleep(t.ctx, t.wake, min(wait, patience))
	}
}

// turn does what there is to do, and returns how long nothing is to be done if nothing happens.
func (t *term) turn() time.Duration {
	t.mu.Lock()
	inbox := t.inbox
	t.inbox, t.turned = nil, t.o.Clock.Now()
	t.mu.Unlock()
	for _, do := range inbox {
		do(t)
	}
	now, wait := t.now().Mono, patience
	if t.stop.Err() != nil {
		return t.endTurn()
	}
	scans := now >= t.scanAt
	if scans {
		for _, name := range t.due.take(now) {
			t.dirty[name] = true
		}
	}
	for name := range t.dirty {
		delete(t.dirty, name)
		t.reconcile(name)
	}
	if scans {
		t.reclaim()
	}
	// A job that turns out to need nothing makes room for another one.
	for {
		jobs, next := t.o.Gate.grantAll()
		for _, ticket := range jobs {
			t.beginJob(ticket)
		}
		if next > 0 {
			wait = min(wait, next)
		}
		if len(jobs) == 0 {
			break
		}
	}
	if len(t.dirty) > 0 {
		wait = 0
	}
	if t.reclaims || len(t.lacking) > 0 {
		wait = min(wait, askEvery)
	}
	if scans {
		t.scanAt = now + scanEvery
		wait = min(wait, t.scan(now))
	} else {
		wait = min(wait, t.scanAt-now)
	}
	return max(wait, time.Nanosecond)
}

// scanEvery is how often it is asked at most who is due and what nodes are asked for, however many events there are; askEvery how often the
// latter is asked at least, where pods wait for it.
const (
	scanEvery = 100 * time.Millisecond
	askEvery  = time.Second
)

// scan begins what is due for all members together, and returns how long until something is due.
func (t *term) scan(now time.Duration) time.Duration {
	for _, s := range t.subnets {
		s.emptied.is = s.emptied.is && now < s.emptied.until
	}
	wait := min(t.describeMembers(now), t.readOlder(now), t.sweep(now))
	if at, is := t.due.next(); is {
		wait = min(wait, max(0, at-now))
	}
	return wait
}

// takeAll begins with all objects.
func (t *term) takeAll(all Cluster) {
	t.looks.all = t.o.Lease.Settle
	for _, n := range all.Nodes {
		t.takeEvent(Event{Node: &n})
	}
	for _, s := range all.Subnets {
		t.takeEvent(Event{Subnet: s})
	}
	// Of two that name one instance the one comes first that was served last.
	served := func(n *crd.NodeNetwork) bool {
		return n.Status.Instance != "" && n.Status.Instance == t.nodes[n.Name].Instance
	}
	slices.SortFunc(all.Networks, func(a, b *crd.NodeNetwork) int {
		if served(a) != served(b) && served(a) {
			return -1
		} else if served(a) != served(b) {
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	for _, n := range all.Networks {
		t.takeEvent(Event{Network: n})
	}
}

// takeEvent takes in a change. It may come late or twice.
func (t *term) takeEvent(change Event) {
	switch {
	case change.Node != nil && change.Deleted:
		delete(t.nodes, change.Node.Name)
		t.dropGuest(change.Node.Name)
	case change.Node != nil:
		// Most of what a Node tells is how it is doing.
		if before, known := t.nodes[change.Node.Name]; !known || !before.isSame(*change.Node) {
			t.nodes[change.Node.Name] = *change.Node
			t.takeNode(change.Node.Name)
		}
	case change.Subnet != nil:
		t.takeSubnet(change.Subnet, change.Deleted)
	case change.Network != nil && change.Deleted:
		if node := t.members[change.Network.Name]; node != nil && node.network != nil && node.network.UID == change.Network.UID {
			node.network, node.left = nil, true
			t.dirty[change.Network.Name] = true
		}
	case change.Network != nil:
		t.takeNetwork(change.Network)
	}
}

// takeNetwork takes in a copy of an object, unless a newer one is known.
func (t *term) takeNetwork(copied *crd.NodeNetwork) {
	node := t.members[copied.Name]
	if node != nil && node.network != nil && node.network.UID == copied.UID {
		if !isNewer(copied, node.network) {
			t.noteOlder(node, copied)
			return
		}
		if isPutBack(copied, node.network) {
			node.notePutBack(copied)
		}
	}
	t.dirty[copied.Name] = true
	if node == nil {
		t.dropGuest(copied.Name)
		node = newMember(t.nodeFor(copied), order.NewTerm(t.o.Lease, t.epoch, 0))
		t.members[copied.Name] = node
		node.takeCopy(copied)
		node.recallLimits(copied)
		t.enterRegion(node)
		return
	}
	if node.network == nil || node.network.UID != copied.UID {
		// Calls for the object before may be under way: another member comes when they have ended.
		node.left, node.next = true, copied
		return
	}
	node.takeCopy(copied)
}

// nodeFor returns the Node that an object is of. One that has gone before its object has the instance that it was served for.
func (t *term) nodeFor(n *crd.NodeNetwork) Node {
	node, known := t.nodes[n.Name]
	if !known && n.DeletionTimestamp != nil {
		node.Instance, node.Type, node.Zone = n.Status.Instance, n.Status.InstanceType, n.Status.Zone
	}
	node.Name = n.Name
	return node
}

// enterRegion makes the engine know the node, and which ENI an operator before may have begun.
func (t *term) enterRegion(node *member) {
	if node.node.Instance == "" {
		return
	}
	tokens := []string{order.Token(string(node.network.UID), node.network.Status.Created)}
	tokens = append(tokens, handoverOf(node.network).Tokens...)
	// Two that call for one instance would have each other's addresses. Who had it first keeps it, and the other one waits.
	if holder := t.claims[node.node.Instance]; holder != nil && holder != node {
		node.rival, node.node.Instance = holder.node.Name, ""
		return
	}
	node.rival, t.claims[node.node.Instance] = "", node
	node.client = t.o.Region.Node(cloud.Instance{ID: node.node.Instance, Type: node.node.Type, Zone: node.node.Zone})
	node.client.Recall(cloud.Notes{Begun: tokens, Limits: node.limits})
}

// takeNode takes in what a Node says. With another instance it is another node.
func (t *term) takeNode(name string) {
	node := t.members[name]
	if node == nil {
		t.takeGuest(name)
		return
	}
	before := node.node.Instance
	node.node = t.nodes[name]
	t.dirty[name] = true
	switch {
	case before == node.node.Instance:
	case before == "":
		node.recallLimits(node.network)
		t.enterRegion(node)
	default:
		node.node.Instance = before
		node.left, node.next = true, node.network
	}
}

// replaceMember ends a member whose object or instance is another one now, and begins with what there is.
func (t *term) replaceMember(name string, node *member) {
	t.o.Gate.setFresh(name, nil)
	// A describe that is under way must find it still, or it fails for all.
	if node.isBusy() || node.writing || node.client != nil && t.looks.under {
		return
	}
	delete(t.members, name)
	if node.client != nil {
		t.o.Region.Forget(node.node.Instance)
		delete(t.claims, node.node.Instance)
	}
	t.tally.exchange(node, nil)
	t.note(name, nil, t.now())
	if node.next != nil {
		t.takeNetwork(node.next)
	}
	for other, n := range t.nodes {
		if node.client != nil && n.Instance == node.node.Instance {
			t.takeNode(other) // it may have waited for the instance
		}
	}
	t.takeGuest(name)
}

// isNewer tells whether a copy is newer than another of the same object: resourceVersions of one kind are ordered.
func isNewer(a, b *crd.NodeNetwork) bool {
	x, y := a.ResourceVersion, b.ResourceVersion
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) > 0
}
