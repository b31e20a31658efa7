package operator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/quota"
)

// apart is how long after a write of a node the next one comes, unless pods wait for it.
const apart = time.Second

// reconcile decides what comes next for a node: a write, or what waits in the queue.
func (t *term) reconcile(name string) {
	node := t.members[name]
	if node == nil {
		return
	}
	node.due, node.calm = 0, false
	defer func() {
		if t.members[name] == node {
			t.note(name, node, t.now())
			t.noteClaimNode(name, node)
		}
	}()
	t.tally.exchange(node, node.portions(t.lies()))
	switch {
	case node.left:
		t.replaceMember(name, node)
		return
	case node.writing:
		return // its end comes here again
	}
	now := t.now()
	node.noteNode(now.Mono)
	if node.isGoing() {
		if t.sendOff(node); node.seenGone {
			t.o.Gate.setFresh(name, nil)
			node.due = max(node.asked, 1)
			return
		}
		node.due = node.asked
	}
	node.meet(now.Mono)
	next, err := t.inputOf(node, now).decide()
	if err != nil {
		if node.said != err.Error() {
			node.said = err.Error()
			t.o.Log.Warn("nothing is done for a node", "node", name, "error", err)
		}
		t.o.Gate.setFresh(name, nil)
		if errors.Is(err, errLater) {
			t.end(err) // who leads now is above that, or this operator once it has stood for election again
		}
		return
	}
	held := node.holdsNews(next, now.Mono)
	node.unsaid = next.changed && !held && !hasSameAddresses(node.view.Status, next.view.Status)
	if next.changed && !held && !node.answered.covers(node.network.Status, next.network.Status) {
		t.o.Gate.setFresh(name, nil)
		if node.barred > now.Mono {
			node.due = node.barred
			return
		}
		if wait := node.wrote + apart - now.Mono; (!next.urgent || node.answered != nil) && node.wrote > 0 && wait > 0 {
			node.due = node.wrote + apart
			return
		}
		if !t.park(name, next.awaited) {
			t.write(node, next)
		}
		return
	}
	node.term, node.deeds, node.said = next.term, nil, ""
	if held {
		node.due = node.held + unhurried
	}
	t.settleMember(node, next.view, now)
}

// settleMember sets what waits in the queue for a node whose status says all there is to say, and when to look at it again.
func (t *term) settleMember(node *member, view order.View, now order.Moment) {
	if view.Status.Mode == order.Joining && node.joined == 0 {
		node.joined = max(now.Mono, 1)
		t.o.Region.Forget(node.node.Instance) // its agent has made calls since: what the engine knows is of before them
		t.enterRegion(node)
	} else if view.Status.Mode != order.Joining {
		node.joined = 0
	}
	node.noteShort(order.Have(view.Spec, view.Status) < view.Spec.Slots, now.Mono)
	// A place that is refused is a cause that the object tells: it is decided again with that.
	node.noteGiving(view.Status, now.Mono)
	steps, noPlace := t.plan(node, view, now)
	if noPlace != node.noPlace {
		node.noPlace = noPlace
		t.dirty[node.network.Name] = true
	}
	var list []quota.Request
	node.wants = map[string]int{}
	for _, s := range steps {
		list = append(list, s.Request)
		if s.Class == quota.Starving && len(s.bring) == 0 {
			node.wants[s.Subnet] += s.takes()
		}
	}
	t.skipBegun(node, view, now)
	t.o.Gate.setFresh(node.network.Name, list)
	for _, at := range node.nextTries() {
		if at > now.Mono && (node.due == 0 || at < node.due) {
			node.due = at
		}
	}
	if at := node.acceptsFrom(); at > now.Mono && len(view.Spec.Release)+len(view.Spec.ReleaseInterfaces) > 0 && (node.due == 0 || at < node.due) {
		node.due = at
	}
	at, describes := node.describeDue(view, now)
	if describes && at > now.Mono && (node.due == 0 || at < node.due) {
		node.due = at
	}
	node.calm = !describes && node.due == 0 && len(steps) == 0 && !node.isBusy() && !node.isGoing() && !noPlace.Is() && t.looks.failed == nil && node.before == nil && node.putBack == 0 && (node.shown == nil || len(node.shown.looseENIs()) == 0 && !node.shown.showsMore(view.Status)) &&
		len(node.network.Status.Causes) == 0 && (view.Status.Mode == order.Self || order.Have(view.Spec, view.Status) >= view.Spec.Slots)
}

// nextTries returns when what was refused may be tried again.
func (node *member) nextTries() []time.Duration {
	list := []time.Duration{node.noNew.Next}
	if node.bare > 0 {
		list = append(list, node.bare+lateNode)
	}
	for _, p := range node.pauses {
		list = append(list, p.until, p.why.Next)
	}
	for _, c := range node.noMore {
		list = append(list, c.Next)
	}
	return append(list, slices.Collect(maps.Values(node.stays))...)
}

// inputOf returns what the node's next status follows from.
func (t *term) inputOf(node *member, now order.Moment) input {
	in := input{network: node.network, read: node.view, wrong: node.wrong, term: node.term.Copy(), now: now, node: node.node, limits: node.limits, shown: node.shown, deeds: node.deeds, gone: node.isGone,
		causes: node.ownCauses(now.Mono), failed: t.looks.failed, joined: node.joined, busy: node.isBusy(), unsure: node.unsureTokens(), ordered: t.orderedFor(node), reclaim: amount{node.asksIn, node.asksBack}, restored: restored{node.before, node.putBack > 0, now.Mono < node.acceptsFrom()}}
	if node.shown != nil {
		in.describe = node.shown.began.Wall
	}
	if node.joined == 0 {
		in.joined = now.Mono // it is seen joining now, if it is
	}
	if node.noPlace.Is() {
		in.causes = append(in.causes, node.noPlace)
	}
	in.facts = t.factsOf(node, node.view, now)
	return in
}

// writeLimit is how long a write may take.
const writeLimit = 10 * time.Second

// write writes a status beside the loop.
func (t *term) write(node *member, next decision) {
	node.writing = true
	t.writes++
	done := len(node.deeds)
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, writeLimit)
		defer cancel()
		written, err := t.o.Objects.WriteNode(ctx, next.network)
		var newest *crd.NodeNetwork
		if err != nil && !errors.Is(err, ErrGone) {
			// After a conflict, or where nobody knows, what is there now decides. The write may have used up its time.
			again, cancel := context.WithTimeout(t.ctx, writeLimit)
			defer cancel()
			var wrong error
			if newest, wrong = t.o.Objects.ReadNode(again, next.network.Name); errors.Is(wrong, ErrGone) {
				err = ErrGone
			}
		}
		t.post(func(t *term) { t.wrote(node, next, done, written, newest, err) })
	})
}

// wrote takes in how a write has ended.
func (t *term) wrote(node *member, next decision, done int, written, newest *crd.NodeNetwork, err error) {
	node.writing = false
	t.writes--
	now := t.now()
	t.dirty[next.network.Name] = true
	switch {
	case errors.Is(err, ErrGone):
		node.network, node.left = nil, true
	case err == nil:
		t.keep(node, next, done, written, now)
	case newest != nil && newest.Status.Revision == next.network.Status.Revision && newest.Status.Epoch == next.network.Status.Epoch && sameContent(newest.Status, next.network.Status):
		t.keep(node, next, done, newest, now) // the answer got lost
	default:
		if newest != nil {
			t.takeRead(next.network, newest)
		}
		if errors.Is(err, ErrConflict) {
			t.o.Meter.Conflicted()
		} else {
			t.bar(node, next.network, now, err)
		}
	}
}

// longestPause is how long a node waits at most whose status the API server does not take.
const longestPause = time.Minute

// bar keeps a node's writes back for a while, each time for longer: what is refused would be refused at once again, and take the
// others' share of the requests.
func (t *term) bar(node *member, of *crd.NodeNetwork, now order.Moment, err error) {
	node.pause = min(max(2*node.pause, apart), longestPause)
	node.barred = now.Mono + node.pause
	if node.said != err.Error() {
		node.said = err.Error()
		t.tellPeople(writeRefused(of, err))
		t.o.Log.Warn("a node's status can't be written; it is tried again", "node", of.Name, "again in", node.pause, "error", err)
	}
}

// keep makes a decision that was written count.
func (t *term) keep(node *member, next decision, done int, written *crd.NodeNetwork, now order.Moment) {
	node.wrote, node.barred, node.pause, node.said, node.held = max(now.Mono, 1), 0, 0, "", 0
	node.term, node.deeds, node.before = next.term, node.deeds[done:], nil
	t.noteAnswer(node, next.network, written, now)
	t.tellPeople(nodeNotices(written, next.before)...)
	t.takeNetwork(written)
}
