package operator

import (
	"maps"
	"time"
)

// past is what a term remembers of nodes and objects that have gone, and when it looks for what they have left.
type past struct {
	ends    map[string]ended // by name of the node
	leavers leavers
	sweeps  sweeps
	calls   []Ended // the last of this term, the oldest first
}

// ended is what is known of an object that is no more, when nothing was open in it: who makes it again remembers its revision, which is no sign that
// the store was put back.
type ended struct {
	instance string
	revision int64
	at       time.Duration
}

// Ends are remembered for a while, and where they are many no longer: who makes its object again later waits for the fence.
const (
	endedFor  = time.Hour
	mostEnded = 1000
)

// noteEnded remembers how the object of a member that goes has ended. Only this operator writes the status, so the last copy that it has is the last one that
// there was. Of one whose end left something open nothing is remembered.
func (t *term) noteEnded(name string, node *member) {
	now := t.now()
	gone := node.network == nil || node.next != nil && node.next.UID != node.network.UID
	if !gone || node.wrong != nil || node.putBack > 0 || !node.hasEnded(now) {
		return
	}
	if len(t.ends) >= mostEnded {
		maps.DeleteFunc(t.ends, func(_ string, e ended) bool { return now.Mono > e.at+endedFor })
	}
	if t.ends == nil {
		t.ends = map[string]ended{}
	}
	if len(t.ends) < mostEnded {
		t.ends[name] = ended{node.node.Instance, node.view.Status.Revision, now.Mono}
	}
}

// followEnded lets a new object's member know of the object before. That counts for the next object alone: what comes after that may be a store that was put back.
func (t *term) followEnded(node *member) {
	before, is := t.ends[node.node.Name]
	if delete(t.ends, node.node.Name); is && before.instance == node.node.Instance {
		node.term.Follow(before.revision, before.at)
	}
}
