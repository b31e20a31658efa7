package operator

import (
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/quota"
)

// Notice is something that a person may have to know of an object.
type Notice struct {
	Kind, Name, UID string // of the object: NodeNetwork, Subnet, PodSubnetTopology or Pod
	Namespace       string // of a Pod
	Warning         bool
	Reason          string
	Message         string
}

// TellAgain is how long after a notice of a pod that waits the same is told again. An API server drops an event after an hour, and then nothing in a
// pod that has waited since the evening says what for.
const TellAgain = 30 * time.Minute

// Meter is told of what happens, for metrics. Its methods return at once and may be called from several goroutines.
type Meter interface {
	// Waited is told how long a call of a class was waited for.
	Waited(of quota.Class, took time.Duration)
	// Described is told how long a describe of everything took.
	Described(took time.Duration)
	// Conflicted is told that another version of an object was there than the one that was decided from.
	Conflicted()
	// LeaksDeleted is told how many ENIs were deleted that nobody had finished or that an instance had left.
	LeaksDeleted(n int)
}

// unmetered is a Meter that nobody looks at.
type unmetered struct{}

func (unmetered) Waited(quota.Class, time.Duration) {}
func (unmetered) Described(time.Duration)           {}
func (unmetered) Conflicted()                       {}
func (unmetered) LeaksDeleted(int)                  {}

// The states of a Subnet object that are told.
const (
	full    = "Full"
	low     = "Low"
	missing = "Missing"
)

// subnetNotices returns what people are told when a subnet's state changes.
func subnetNotices(s *crd.Subnet, before crd.SubnetStatus) []Notice {
	is := s.Status
	if is.State == before.State {
		return nil
	}
	n := Notice{Kind: "Subnet", Name: s.Name, UID: string(s.UID), Warning: true}
	switch troubled := slices.Contains([]string{full, low, missing}, before.State); {
	case is.State == full:
		n.Reason, n.Message = "SubnetFull", fmt.Sprintf("no address is left for nodes; %d are owed to ENIs that are there, and %d nodes' ENIs lie in it. Give the nodes of zone %s another subnet, or delete what else uses addresses here",
			is.Owed, is.Interfaces, is.Zone)
	case is.State == low:
		n.Reason, n.Message = "Isolated", fmt.Sprintf("%d addresses are left, fewer than isolateBelow %d: no new ENI is made here, and those that are here still grow", is.Room, s.Spec.IsolateBelow)
	case is.State == missing:
		n.Reason, n.Message = "SubnetMissing", "the cloud does not show it any more; it counts again when it does"
	case is.State == "Ready" && troubled:
		n.Warning, n.Reason, n.Message = false, "Recovered", fmt.Sprintf("%d addresses are left for new ENIs", is.Room)
	default:
		return nil
	}
	return []Notice{n}
}

// nodeNotices returns what people are told when a node can't have more, and when it can again.
func nodeNotices(n *crd.NodeNetwork, before crd.NodeNetworkStatus) []Notice {
	was, is := noticeOf(before), noticeOf(n.Status)
	about := Notice{Kind: "NodeNetwork", Name: n.Name, UID: string(n.UID)}
	switch {
	case is.Reason == was.Reason:
		return nil
	case order.Reason(is.Reason).Lasts():
		about.Warning, about.Reason, about.Message = true, is.Reason, is.Message
	case is.Status != "Unknown" && order.Reason(was.Reason).Lasts():
		about.Reason, about.Message = "Recovered", is.Message
	default:
		return nil
	}
	return []Notice{about}
}

// noticeOf returns that condition. Of a node whose calls go over it says what that waits for; what people have to do is the cause.
func noticeOf(s crd.NodeNetworkStatus) condition {
	c := reasonOfNode(s)
	if c.Status == "Unknown" && len(s.Causes) > 0 {
		c.Reason = s.Causes[0].Reason
	}
	return c
}

// reasonOfNode returns the condition that tells whether a node has what it asks for.
func reasonOfNode(s crd.NodeNetworkStatus) (c condition) {
	if at := slices.IndexFunc(s.Conditions, func(c condition) bool { return c.Type == Satisfied }); at >= 0 {
		c = s.Conditions[at]
	}
	return c
}

// leakDeleted returns what people are told of an ENI that was made for a node and attached nowhere.
func leakDeleted(n *crd.NodeNetwork, id string) Notice {
	return Notice{Kind: "NodeNetwork", Name: n.Name, UID: string(n.UID), Reason: "LeakDeleted",
		Message: fmt.Sprintf("ENI %s was made for the node and attached nowhere, and nobody finished it", id)}
}

// writeRefused returns what people are told of a status that the API server does not take.
func writeRefused(n *crd.NodeNetwork, err error) Notice {
	return Notice{Kind: "NodeNetwork", Name: n.Name, UID: string(n.UID), Warning: true, Reason: "Refused", Message: fmt.Sprint("its status can't be written: ", err)}
}

// tellPeople passes notices on.
func (o *Operator) tellPeople(list ...Notice) {
	for _, n := range list {
		o.o.Tell(n)
	}
}
