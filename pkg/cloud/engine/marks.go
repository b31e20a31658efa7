package engine

import (
	"slices"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// keepMark remembers the mark of an ENI that a call makes or finishes.
func (n *Node) keepMark(id string, m driver.Mark) {
	if m.Token == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.marks[id] = m
}

// withMarks gives ENIs back the marks that somebody has taken: tags and descriptions are for
// anyone in the account to change, and an ENI that nobody knows for the node's would take a
// place there and serve no pod. Who wants an ENI left alone has a tag for that. One that somebody has
// detached and taken the mark of they keep: it takes no place, and nobody here may delete it.
func (n *Node) withMarks(raw []driver.Interface) []driver.Interface {
	n.mu.Lock()
	defer n.mu.Unlock()
	raw = slices.Clone(raw)
	for k := range raw {
		m, known := n.memory.marks[raw[k].ID]
		if !known || raw[k].Mark.Token != "" {
			continue
		}
		_, making := n.memory.making[m.Token]
		_, left := n.memory.left[raw[k].ID]
		if raw[k].State != driver.Loose || making || left {
			raw[k].Mark = m
		}
	}
	return raw
}
