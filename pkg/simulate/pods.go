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
	since  time.Duration // since boot: when the agent last heard that it needs an address
	begin  time.Duration // its first ADD, from when on it waits
	waits  bool          // its first ADD found no address, and none has got one yet
	adding bool          // an ADD waits for an address now
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
	if n.state == nil {
		return false
	}
	n.ownState() // the agent may still read what View showed it
	_, err := n.state.AssignPod(p.owner, "", n.sinceBoot())
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

// ownState copies the node state if the agent may still read it, so that it may be changed.
func (n *node) ownState() {
	if n.seen {
		n.state, n.seen = n.state.Clone(), false
	}
}

// retryAfter lets the pending ADDs try again when the next address has cooled down.
func (n *node) retryAfter(cooldown time.Duration) {
	at := n.clock.now + cooldown + time.Millisecond
	if cooldown > 0 && n.retryAt != at {
		n.retryAt = at
		n.clock.planAt(at, n.servePending)
	}
}

// servePending lets the pending ADDs try again, the longest waiting first.
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
		n.ownState()
		n.state.Free(p.owner.Key, n.sinceBoot())
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
