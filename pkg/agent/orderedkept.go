package agent

import (
	"encoding/json"

	"github.com/enipool/enipool/pkg/order"
)

// kept is what outlasts a boot of what the agent has seen. A boot ends node cache and memory: without it a node whose object was put back, or is no
// more, at the same time would take for its own what calls that nobody else remembers may still take away.
type kept struct {
	head order.Head
	told bool // that it can't be written
}

// keptHead is how that is written. The disk may be a copy of another node's: what that has seen says nothing.
type keptHead struct {
	Node     string `json:"node"`
	Revision int64  `json:"revision"`
	Epoch    int64  `json:"epoch"`
}

// recallKept reads what an earlier agent kept, of whichever boot.
func (o *ordered) recallKept() {
	if o.Kept == nil {
		return
	}
	var is keptHead
	text, err := o.Kept.Load()
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &is)
	}
	switch {
	case err != nil:
		o.Log.Warn("what the node has seen of its object before a boot can't be read; going on without", "error", err)
	case is.Node == o.conf.Node:
		o.kept.head = order.Head{Revision: is.Revision, Epoch: is.Epoch}
	}
}

// keep writes down what has been seen. Pods don't wait for a disk that takes nothing: the memory has it, until a boot.
func (o *ordered) keep(head order.Head) {
	if o.Kept == nil || o.kept.head == head {
		return
	}
	o.kept.head = head
	text, err := json.Marshal(keptHead{o.conf.Node, head.Revision, head.Epoch})
	if err == nil {
		err = o.Kept.Save(text)
	}
	if err != nil && !o.kept.told {
		o.Log.Warn("what the node has seen of its object can't be kept over a boot: should the cluster be restored from a backup and the node boot, its pods "+
			"may get addresses that are not its any more; make room or let the agent write there", "error", err)
	}
	o.kept.told = err != nil
}
