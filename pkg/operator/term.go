package operator

import (
	"cmp"
	"context"
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
	ctx   context.Context
	under *sync.WaitGroup

	members map[string]*member
	nodes   map[string]Node
	subnets map[string]*subnet
	dirty   map[string]bool // members to look at
	looks
	running map[*job]bool
	sweepAt time.Duration            // 0: not before a node is gone
	scanAt  time.Duration            // when all members are gone through next
	starved map[string]time.Duration // by zone whose pods wait for what no subnet has, or did: when they were last seen to
}

// looks is what is known of describes.
type looks struct {
	under  bool
	all    time.Duration // when the next describe of everything is due
	shown  time.Time     // when the last that succeeded began
	misses int           // in a row
	failed *pool.Cause   // why, from the second on
	pause  time.Duration // none before that
}

func (t *term) now() order.Moment {
	now := t.o.Clock.Now()
	return order.Moment{Mono: now.Sub(t.lead.Acquired), Wall: now}
}

// mayCall returns why no job may send a request now (S6).
func (t *term) mayCall() error {
	if !t.o.Lease.MayCall(t.now().Mono, t.lead.Renewed().Sub(t.lead.Acquired), t.o.Timeout) {
		return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "the lease may run out before the request ends"}
	}
	return nil
}

// patience is how long the loop sleeps at most: Healthy goes by it.
const patience = time.Minute

// loop turns until the term ends.
func (t *term) loop() {
	for t.ctx.Err() == nil {
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
	scans := now >= t.scanAt
	if scans {
		t.dirtyDue(now)
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
	if scans {
		t.scanAt = now + scanEvery
		wait = min(wait, t.scan(now))
	} else {
		wait = min(wait, t.scanAt-now)
	}
	return max(wait, time.Nanosecond)
}

// scanEvery is how often all members are gone through at most, however many events there are.
const scanEvery = 100 * time.Millisecond

// dirtyDue has the members looked at whose time has come.
func (t *term) dirtyDue(now time.Duration) {
	for name, node := range t.members {
		if node.due > 0 && node.due <= now {
			t.dirty[name] = true
		}
	}
}

// scan begins what is due for all members together, and returns how long until something is due.
func (t *term) scan(now time.Duration) time.Duration {
	t.sweep()
	for _, s := range t.subnets {
		s.emptied.is = s.emptied.is && now < s.emptied.until
	}
	wait := t.describe(now)
	if t.sweepAt > 0 {
		wait = min(wait, max(0, t.sweepAt-now))
	}
	for _, node := range t.members {
		if node.due > 0 {
			wait = min(wait, max(0, node.due-now))
		}
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
	for _, n := range all.Networks {
		t.takeEvent(Event{Network: n})
	}
}

// takeEvent takes in a change. It may come late or twice.
func (t *term) takeEvent(change Event) {
	switch {
	case change.Node != nil && change.Deleted:
		delete(t.nodes, change.Node.Name)
	case change.Node != nil:
		t.nodes[change.Node.Name] = *change.Node
		t.takeNode(change.Node.Name)
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
	if node != nil && node.network != nil && node.network.UID == copied.UID && !isNewer(copied, node.network) {
		return
	}
	t.dirty[copied.Name] = true
	if node == nil {
		node = newMember(t.nodes[copied.Name], order.NewTerm(t.o.Lease, t.epoch, 0))
		t.members[copied.Name] = node
		node.takeCopy(copied)
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

// enterRegion makes the engine know the node, and which ENI an operator before may have begun.
func (t *term) enterRegion(node *member) {
	if node.node.Instance == "" {
		return
	}
	tokens := []string{order.Token(string(node.network.UID), node.network.Status.Created)}
	if h := node.network.Spec.Handover; h != nil {
		tokens = append(tokens, h.Tokens...)
	}
	node.client = t.o.Region.Node(cloud.Instance{ID: node.node.Instance, Type: node.node.Type, Zone: node.node.Zone})
	node.client.Recall(cloud.Notes{Begun: tokens})
}

// takeNode takes in what a Node says. With another instance it is another node.
func (t *term) takeNode(name string) {
	node := t.members[name]
	if node == nil {
		return
	}
	before := node.node.Instance
	node.node = t.nodes[name]
	t.dirty[name] = true
	switch {
	case before == node.node.Instance:
	case before == "":
		t.enterRegion(node)
	default:
		node.node.Instance = before
		node.left, node.next = true, node.network
	}
}

// replaceMember ends a member whose object or instance is another one now, and begins with what there is.
func (t *term) replaceMember(name string, node *member) {
	t.o.Gate.setFresh(name, nil)
	if node.isBusy() || node.writing {
		return
	}
	if node.client != nil {
		t.o.Region.Forget(node.node.Instance)
	}
	delete(t.members, name)
	if node.next != nil {
		t.takeNetwork(node.next)
	}
}

// isNewer tells whether a copy is newer than another of the same object: resourceVersions of one kind are ordered.
func isNewer(a, b *crd.NodeNetwork) bool {
	x, y := a.ResourceVersion, b.ResourceVersion
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) > 0
}
