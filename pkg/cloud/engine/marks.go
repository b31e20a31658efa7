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

// withMarks restores the marks of ENIs from memory where somebody has removed them: anyone in the
// account can change tags and descriptions, and an attached ENI without its mark would take room
// and serve no pod. (To keep enipool off an ENI there is a tag.) An ENI that somebody has
// detached and unmarked stays unmarked: it takes no room, and enipool must not delete it.
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
