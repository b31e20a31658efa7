package operator

import "time"

// lateNode is how long a Node may lack its provider ID or its zone before that is told: its kubelet makes it without them, and the cloud's controller
// adds them when it has seen the instance.
const lateNode = time.Minute

// noteNode keeps since when the Node lacks one of them.
func (m *member) noteNode(now time.Duration) {
	switch {
	case m.node.Instance != "" && m.node.Zone != "":
		m.bare = 0
	case m.bare == 0:
		m.bare = max(now, 1)
	}
}

// isLate tells whether that is for too long. What the object tells already stands, whoever leads now.
func (m *member) isLate(now time.Duration) bool {
	if m.network != nil {
		if told := reasonOfNode(m.network.Status).Reason; told == "InstanceUnknown" || told == "NoSubnet" {
			return true
		}
	}
	return m.bare == 0 || now >= m.bare+lateNode
}
