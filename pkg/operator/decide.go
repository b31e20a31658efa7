package operator

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// deed is what a call to the cloud has done, to be written into the status. It may be done again, of a newer copy.
type deed func(t *order.Term, view order.View, now order.Moment) order.Status

// input is all that a node's next status follows from.
type input struct {
	network  *crd.NodeNetwork
	read     order.View  // of it
	wrong    error       // why there is no view
	term     *order.Term // a copy: what a decision notes in it counts once the status is written
	now      order.Moment
	node     Node
	limits   eni.Limits
	shown    *shown // nil: no describe of this term yet
	deeds    []deed
	gone     func(id string) bool // ENIs that describes may still show, or that describes have not shown twice
	facts    order.Facts
	causes   []pool.Cause // why there is not more that the plan does not know of
	failed   *pool.Cause  // why describes failed twice, nil if they did not
	joined   time.Duration
	busy     bool     // calls are under way
	unsure   []string // tokens of ENIs that may have been made
	describe time.Time
	reclaim  amount // idle slots that the node is asked for
	ordered
	restored
}

// ordered is what there is to know besides the node.
type ordered struct {
	observe bool
	keeps   bool // there are topologies
	crosses bool // ENIs carry addresses of other subnets
	decided bool // what is kept for them was decided in this term, with these orders
	orders  claims.Orders
	claimed func(netip.Addr) bool      // an address is kept for somebody
	whose   func(subnet string) string // the topology that alone has ENIs in a subnet, "" if all may
}

// restored is what there is to know of an object that was put back from a backup.
type restored struct {
	before *order.Status // what the status was before, nil if the object was not put back
	untold bool          // the spec is one of before: what the agent wants now it has not written yet
	early  bool          // it may be: nobody has seen it come
}

// decision is what follows.
type decision struct {
	network *crd.NodeNetwork // with the next status
	view    order.View       // of that
	term    *order.Term
	before  crd.NodeNetworkStatus // that was there
	changed bool                  // it says something else than the status that is there
	urgent  bool                  // the node's pods wait for it
	awaited bool                  // pods wait for it, wherever they are
}

// errLater: another operator leads.
var errLater = errors.New("an operator with a later epoch writes this node")

// decide returns a node's next status. It is a function of its input, but for the term, which is the decision's own.
func (in input) decide() (decision, error) {
	view := in.read
	if in.wrong != nil {
		return decision{}, in.wrong
	}
	if !in.term.Led(view.Status) {
		return decision{}, errLater
	}
	view = in.disown(in.bringBack(view))
	if in.limits != (eni.Limits{}) {
		view.Status.Limits = in.limits
	}
	// With another revision the agent would take a status of before for one of now. The describe that counts then begins a fence later, and shows
	// what calls have done meanwhile.
	if !order.IsBehind(view) {
		for _, done := range in.deeds {
			view.Status = done(in.term, view, in.now)
		}
	}
	ordered := view.Status
	if in.shown != nil && in.shown.view.Err == nil && in.limits != (eni.Limits{}) {
		view.Status = in.learn(view)
	}
	if in.keeps && view.Status.Mode == order.Operator {
		view.Status = in.keep(view, ordered)
	}
	if !in.untold {
		if !in.observe {
			view.Status = in.accept(view)
		}
		view.Status = in.handOver(view)
	}
	next := in.network.DeepCopy()
	next.Status.Write(view.Status)
	in.tell(next, view)
	d := decision{network: next, view: view, term: in.term, before: in.network.Status, urgent: view.Spec.Waiting > 0}
	d.awaited = d.urgent || in.isAwaited(view.Status)
	d.changed = !sameContent(in.network.Status, next.Status)
	return d, nil
}

// isAwaited tells whether pods may wait for a status though none of the node's does: of a new node, whose agent can't tell what its pods need
// before; of one that gives idle slots for others; and for whom addresses of topologies are kept.
func (in input) isAwaited(next order.Status) bool {
	before := in.read.Status
	isFirst := len(before.ENIs) == 0 && len(next.ENIs) > 0
	return isFirst || in.reclaim.slots > 0 || !slices.Equal(before.Reserved, next.Reserved)
}

// learn returns the status with what the describe shows.
func (in input) learn(view order.View) order.Status {
	if !in.term.Lease.MayDescribe(in.shown.began.Mono, in.term.Acquired) || !in.term.Knows(view, in.now, in.shown.began) {
		return view.Status
	}
	before, isBehind := view.Status, order.IsBehind(view)
	for _, e := range in.shown.attachedNew(view.Status) {
		if in.keeps && e.Token != "" {
			e.Topology = in.whose(e.Subnet)
		}
		if !in.gone(e.ID) {
			view.Status = in.term.Made(view, in.now, string(in.network.UID), e)
		}
	}
	for _, e := range view.Status.ENIs {
		nic, there := in.shown.findENI(e.ID)
		switch {
		case e.State != order.Detached:
		case there && nic.Index >= 0:
			// Somebody has attached it again. What is accepted stays so.
			view.Status = in.term.Reattached(view, in.shown.description(view.Status), e.ID, nic.Index)
		case !there && in.gone(e.ID):
			if view.Status = in.term.Deleted(view, e.ID); isBehind {
				view.Status.Revision = before.Revision
			}
			return in.learn(view) // the list is another one now
		}
	}
	if isBehind {
		// An ENI of after the backup makes a status no newer that was put back: all else that it has is compared as what is behind.
		view.Status.Revision = before.Revision
	}
	next, told := in.term.Described(view, in.now, in.shown.description(view.Status))
	if isBehind && !told {
		return before
	}
	return next
}

// keep returns the status with what is kept for pods of topologies.
func (in input) keep(view order.View, ordered order.Status) order.Status {
	kept := claims.Keep(view, ordered, claims.Basis{Orders: in.orders, Decided: in.decided, Crosses: in.crosses, Claimed: in.claimed})
	next, _ := in.term.Reserve(view, kept, in.orders.Seize...)
	return next
}

// accept returns the status with what goes back. What an earlier leader accepted is taken over first, and that of an object whose deletion
// has begun, too: it waits for the end of that. Nothing else of such an object is accepted. By what is taken over the agent reads of this leader.
func (in input) accept(view order.View) order.Status {
	if order.IsBehind(view) {
		return view.Status // with another revision the agent would take it for one of now
	}
	if in.network.DeletionTimestamp == nil && !in.early && !in.asksFromBackup() {
		view.Status, _ = in.term.Accept(in.withoutNeeded(view))
	}
	if len(view.Status.Releasing)+len(view.Status.LeavingInterfaces) > 0 || in.term.Awaits(view) {
		view.Status, _ = in.term.Take(view)
	}
	return view.Status
}

// handOver returns the status with the mode that comes next: between Self and Operator nobody begins calls.
func (in input) handOver(view order.View) order.Status {
	next := view.Status
	switch want := view.Spec.Mode; {
	case in.observe, order.IsBehind(view): // with another revision it would count as what is now, before the describe that tells what calls of before have done
	case want == order.Operator && in.network.Status.Mode == "" && in.network.Spec.Handover == nil && !in.asksFromBackup():
		next.Mode = order.Operator // its agent has never called: it would hand over something, if only that it has nothing
	case want == order.Operator && (next.Mode == order.Self || next.Mode == order.Leaving):
		next.Mode = order.Joining
	case want == order.Operator && next.Mode == order.Joining && in.hasJoined():
		return in.takeOver(view)
	case want == order.Self && (next.Mode == order.Operator || next.Mode == order.Joining):
		next.Mode = order.Leaving
	case want == order.Self && next.Mode == order.Leaving && !in.busy && len(next.Releasing)+len(next.LeavingInterfaces)+len(next.Quarantined) == 0:
		next.Mode = order.Self
	}
	if next.Mode != view.Status.Mode {
		return in.term.Renumber(view, next)
	}
	return next
}

// hasJoined tells whether a describe has shown what the agent's last calls did, and every ENI that it had begun is ready, or does not exist.
func (in input) hasJoined() bool {
	if in.shown == nil || in.shown.view.Err != nil || in.limits == (eni.Limits{}) || in.busy || in.shown.began.Mono < in.joined+in.term.Lease.Settle {
		return false
	}
	return len(in.shown.unfinished(handoverOf(in.network))) == 0
}

// takeOver accepts what the agent had begun to release, whose calls may still be under way, and makes the operator the one who calls.
func (in input) takeOver(view order.View) order.Status {
	next := view.Status
	h := handoverOf(in.network)
	in.term.Asked(view.Status, in.shown.releases(next, h)...)
	next.Releasing = append(slices.Clone(next.Releasing), in.shown.releases(next, h)...)
	next.LeavingInterfaces = slices.Clone(next.LeavingInterfaces)
	for _, id := range h.ReleaseInterfaces {
		if hasENI(next, id) && !slices.Contains(next.LeavingInterfaces, id) {
			next.LeavingInterfaces = append(next.LeavingInterfaces, id)
		}
	}
	next.Mode = order.Operator
	return in.term.Renumber(view, next)
}
