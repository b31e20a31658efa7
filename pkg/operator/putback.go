package operator

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// backed is what there is to do about a node's object of before: the API server's store was put back from a backup, and this operator
// goes on leading.
type backed struct {
	before  *order.Status // that the object gets again: of the status this operator is the only one who writes. nil: it has it
	putBack int64         // the generation of the spec that was put back: until the agent writes another nothing is accepted. 0: none
	met     meeting
	older   time.Duration // when to read the object, for the watch told of an older copy than is known and of none since. 0: it did not
}

// meeting is when this term met an object first, and with which generation.
type meeting struct {
	generation int64
	at         time.Duration // 0: it has not
}

// meet notes the object's generation when it is met first.
func (m *member) meet(now time.Duration) {
	if m.met.at == 0 {
		m.met = meeting{m.network.Generation, max(now, 1)}
	}
}

// acceptsFrom returns from when on what the spec releases is accepted, 0 for at once. A spec that was there when the object was met may be one
// of before, which a backup has brought back: what it releases may serve pods by now. An agent that does not say whose status it has read has
// some time to write another one.
func (m *member) acceptsFrom() time.Duration {
	if m.network.Generation > m.met.generation || m.network.Spec.SeenEpoch > 0 {
		return 0
	}
	return m.met.at + m.term.Lease.Settle
}

// isPutBack tells whether a copy with a later version shows what was before: what the API server only lets grow is less.
func isPutBack(copied, known *crd.NodeNetwork) bool {
	return copied.Generation < known.Generation || copied.Status.Revision < known.Status.Revision
}

// notePutBack notes that a copy is one of before, before it is taken in. A status that was behind its agent had come from a backup too, and no describe had
// said yet what is true of it: it is nothing to be brought back, for with a new number the agent would take it for one of now.
func (m *member) notePutBack(copied *crd.NodeNetwork) {
	if m.before == nil && m.wrong == nil && !order.IsBehind(m.view) {
		before := m.view.Status
		m.before = &before
	}
	m.putBack = max(copied.Generation, 1)
}

// noteOlder takes in that the watch told of an older copy than is known. It lags, as a rule, and tells of that one soon.
func (t *term) noteOlder(node *member, copied *crd.NodeNetwork) {
	switch {
	case copied.ResourceVersion == node.network.ResourceVersion:
		node.older = 0
	case node.older == 0:
		node.older = t.now().Mono + t.o.Lease.Settle
	}
}

// readOlder reads the objects of which the watch still tells what is older than is known, and returns when the next one is due.
func (t *term) readOlder(now time.Duration) (wait time.Duration) {
	wait = patience
	for name, node := range t.members {
		switch {
		case node.older == 0:
		case node.older > now:
			wait = min(wait, node.older-now)
		default:
			node.older = 0
			if node.network != nil {
				t.readAgain(name, node.network)
			}
		}
	}
	return wait
}

func (t *term) readAgain(name string, known *crd.NodeNetwork) {
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, writeLimit)
		defer cancel()
		if newest, err := t.o.Objects.ReadNode(ctx, name); err == nil {
			t.post(func(t *term) { t.takeRead(known, newest) })
		}
	})
}

// takeRead takes in what the store itself has, which was asked when known was the newest copy. What is older than that then was put back.
func (t *term) takeRead(known, newest *crd.NodeNetwork) {
	node := t.members[newest.Name]
	if node == nil || node.network == nil || node.network.UID != newest.UID || node.network.ResourceVersion != known.ResourceVersion || !isNewer(known, newest) {
		t.takeNetwork(newest)
		return
	}
	node.notePutBack(newest)
	node.takeCopy(newest)
	t.dirty[newest.Name] = true
}

// bringBack returns the view with the status that the object had before it was put back, as a new one.
func (in input) bringBack(view order.View) order.View {
	if in.before == nil || view.Status.Revision >= in.before.Revision {
		return view
	}
	was := order.View{Spec: view.Spec, Status: *in.before}
	taken := false
	if view.Status, taken = in.term.Take(was); !taken {
		view.Status = in.term.Renumber(was, was.Status)
	}
	return view
}

// asksFromBackup tells whether an object was made again from a backup, and its agent has not written since: a node has nothing to release
// when its agent makes its object. What the spec says goes back may serve pods by now.
func (in input) asksFromBackup() bool {
	return in.network.Generation <= 1 && len(in.network.Spec.Release)+len(in.network.Spec.ReleaseInterfaces) > 0
}

// disown returns the view without what a status from a backup has accepted: such a status has taken in more changes of the spec than the
// object has had.
func (in input) disown(view order.View) order.View {
	observed := in.network.Status.ObservedGeneration
	if !in.observe && !order.IsBehind(view) && max(observed, -observed) > in.network.Generation {
		view.Status, _ = in.term.Disown(view, in.now)
	}
	return view
}
