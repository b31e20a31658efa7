package placement

import "time"

// Use is what a subnet is for.
type Use string

// The uses. Shared: ENIs of nodes. Exclusive: topologies alone. Disabled: nothing new.
const (
	Shared    Use = "Shared"
	Exclusive Use = "Exclusive"
	Disabled  Use = "Disabled"
)

// Settings are what people say of a subnet.
type Settings struct {
	Use          Use
	Weight       int               // the highest goes first
	NodeSelector map[string]string // labels that a node must have
	KeepFree     int               // addresses that are left for load balancers and others
	IsolateBelow int               // with less room it gets no new ENI
}

// Subnet is what placement knows of one.
type Subnet struct {
	ID, Zone string
	Settings
	Free      int           // addresses, as the last describe showed
	Granted   int           // addresses that calls took since that describe was sent, those under way included
	Released  int           // addresses that calls gave back since, as the cloud has confirmed
	Attached  []Target      // ENIs that are to have more
	State     State         // after what the cloud refused and showed
	RetryAt   time.Duration // before that a Full subnet is not asked
	Described bool          // false: nothing is known of it, or it was missing in the last two
}

// Target is how many addresses an ENI has, and how many it is to have: all that fit in burstable,
// and those that were taken away to make room for a topology.
type Target struct{ Attached, Target int }

// Owed returns how many addresses the subnet's ENIs are still to get. They are not for others.
func (s Subnet) Owed() (sum int) {
	for _, e := range s.Attached {
		sum += max(0, e.Target-e.Attached)
	}
	return sum
}

// Room returns how many addresses are left for what is new. It is below zero where more was
// taken than there should be.
func (s Subnet) Room() int {
	return s.Free - s.Granted + s.Released - s.KeepFree - s.Owed()
}

// Node is who an ENI is for.
type Node struct {
	Zone   string
	Labels map[string]string
}

// For tells whether new ENIs of the node may lie in the subnet, room apart.
func (s Subnet) For(n Node, now time.Duration) bool {
	if s.Use != Shared || s.Zone != n.Zone || !s.Described {
		return false
	}
	for label, value := range s.NodeSelector {
		if n.Labels[label] != value {
			return false
		}
	}
	return s.State == Ready || s.State == Full && now >= s.RetryAt
}
