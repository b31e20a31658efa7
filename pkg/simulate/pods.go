package simulate

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// pod is a pod of the load as its node sees it.
type pod struct {
	Pod
	owner  eni.Owner
	since  time.Duration // when the agent last heard that it wants an address, since boot
	begin  time.Duration // from when on it waits: its first ADD
	waits  bool          // that got no address
	adding bool          // an ADD waits for an address
	served bool
	gone   bool
}

// spread is how far apart the pods start that are there before the load begins.
const spread = 100 * time.Millisecond

// The kubelet tries a failed sandbox again after backOff and up to half as much
// more: workerBackOffPeriod and its jitter of its pod workers.
const backOff = 10 * time.Second

// planArrivals plans that the k-th of the pods is bound to the node, and the next one
// after it.
func (n *node) planArrivals(pods []Pod, k int) {
	if k == len(pods) {
		return
	}
	p := pods[k]
	add := p.Start
	if p.Start == 0 {
		add = -restTime + time.Duration(k)*spread
	}
	n.clock.planAt(add-n.world.Lead, func() {
		n.planLife(k, p, add)
		n.planArrivals(pods, k+1)
	})
}

// planLife plans the life of a pod that is bound to the node now, and whose first ADD
// comes at a time.
func (n *node) planLife(k int, of Pod, add time.Duration) {
	p := &pod{Pod: of, owner: eni.Owner{Key: eni.Key{Network: "pods", Container: strconv.Itoa(k), IfName: "eth0"}},
		since: n.sinceBoot(), begin: max(add, 0)}
	n.meter.demand++
	n.pending = append(n.pending, p)
	if add > n.clock.now {
		n.wakeAgent()
	}
	n.clock.planAt(add, func() {
		if n.meter.hasBegun() {
			n.meter.pods++
		}
		n.runADD(p)
	})
	n.clock.planAt(p.End, func() { n.runDEL(p) })
}

// runADD is an ADD of the plugin: it takes an address or waits for one, and fails after
// a time.
func (n *node) runADD(p *pod) {
	if p.gone || n.takeAddress(p) {
		return
	}
	p.adding, p.since = true, n.sinceBoot()
	if !p.waits { // it waits once, however many ADDs it takes
		p.waits = true
		n.meter.changeNode(n, func() { n.waiting++ })
	}
	n.wakeAgent()
	n.clock.planAt(n.clock.now+n.world.Wait, func() {
		if !p.adding || n.takeAddress(p) {
			return
		}
		p.adding, p.since = false, n.sinceBoot()
		n.meter.failedADD()
		n.wakeAgent()
		n.clock.planAt(n.clock.now+backOff+time.Duration(n.rand.Int64N(int64(backOff/2))), func() { n.runADD(p) })
	})
}

// takeAddress gives the pod an address if there is one.
func (n *node) takeAddress(p *pod) bool {
	if n.book == nil {
		return false
	}
	n.ownBook() // the agent may still read what View showed it
	_, err := n.book.AssignPod(p.owner, "", n.sinceBoot())
	var none *ipam.Exhausted
	if errors.As(err, &none) {
		n.retryAfter(none.NextFree)
	}
	if err != nil {
		return false
	}
	p.served, p.adding = true, false
	n.meter.changeNode(n, func() {
		n.used++
		n.endPending(p)
	})
	n.meter.noteWait(n.clock.now - p.begin)
	n.race.notePodServed(n.play)
	n.wakeAgent()
	return true
}

// ownBook makes the book one that may be changed.
func (n *node) ownBook() {
	if n.seen {
		n.book, n.seen = n.book.Clone(), false
	}
}

// retryAfter lets those that wait look again when the next address has rested.
func (n *node) retryAfter(rest time.Duration) {
	at := n.clock.now + rest + time.Millisecond
	if rest > 0 && n.retryAt != at {
		n.retryAt = at
		n.clock.planAt(at, n.servePending)
	}
}

// servePending lets those that wait look again, the longest waiting first.
func (n *node) servePending() {
	for _, p := range slices.Clone(n.pending) {
		if p.adding && !n.takeAddress(p) {
			return // nor is there one for the next
		}
	}
}

// runDEL is a DEL of the plugin.
func (n *node) runDEL(p *pod) {
	p.gone = true
	n.meter.demand--
	if p.served {
		n.ownBook()
		n.book.Free(p.owner.Key, n.sinceBoot())
		n.meter.changeNode(n, func() { n.used-- })
	} else {
		p.adding = false
		n.meter.changeNode(n, func() { n.endPending(p) })
		n.meter.noteNever(n.clock.now - p.begin)
	}
	n.wakeAgent()
}

// endPending takes the pod from those without an address.
func (n *node) endPending(p *pod) {
	if i := slices.Index(n.pending, p); i >= 0 {
		n.pending = slices.Delete(n.pending, i, i+1)
	}
	if p.waits {
		p.waits = false
		n.waiting--
	}
}
