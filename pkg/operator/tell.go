package operator

import (
	"fmt"
	"reflect"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of a NodeNetwork.
const (
	Satisfied = "Satisfied"
	Described = "Described"
)

// mostCauses and mostWords are how many causes an object has, and how long one is.
const (
	mostCauses = 16
	mostWords  = 256
)

// tell fills in what the protocol does not need: counts, and for people and the agent why there is not more.
func (in input) tell(next *crd.NodeNetwork, v order.View) {
	status := &next.Status
	if status.ObservedGeneration = in.network.Generation; in.untold && (v.Spec.Mode == order.Operator || v.Status.Mode != order.Self) {
		status.ObservedGeneration = -in.network.Generation // asks the agent for another spec (order.Object.IsAsked): it may have met this one earlier
	}
	status.Slots, status.Interfaces = int32(order.Have(v.Spec, v.Status)), 0
	for _, e := range v.Status.ENIs {
		if e.State == order.Attached {
			status.Interfaces++
		}
	}
	if in.node.Instance != "" {
		if in.limits != (eni.Limits{}) || status.Limits == nil || status.Instance != in.node.Instance {
			status.InstanceType = in.node.Type // else the limits that are there are those of another type, and who leads next would take them for its
		}
		status.Instance, status.Zone = in.node.Instance, in.node.Zone
	}
	if status.Reclaim, status.ReclaimIn = 0, nil; v.Status.Mode == order.Operator && in.reclaim.slots > 0 {
		status.Reclaim, status.ReclaimIn = int32(in.reclaim.slots), in.reclaim.in
	}
	status.Handover = nil
	if v.Status.Mode == order.Self && v.Spec.Mode == order.Self && len(in.unsure) > 0 {
		status.Handover = &crd.StatusHandover{Tokens: in.unsure}
	}
	if !in.describe.IsZero() {
		status.DescribedAt = &metav1.Time{Time: in.describe.Truncate(time.Second)}
	}
	causes := in.allCauses(v)
	status.Causes = nil
	for _, c := range causes {
		if len(status.Causes) < mostCauses {
			status.Causes = append(status.Causes, in.statusCause(c))
		}
	}
	if len(causes) == 0 && in.holdsCauses(v) {
		status.Causes = in.network.Status.Causes
	}
	in.setCondition(status, in.satisfied(v, causes))
	in.setCondition(status, in.described(status.Conditions))
}

// allCauses returns why the node has less than it asks for, the gravest first.
func (in input) allCauses(v order.View) (list []pool.Cause) {
	if v.Status.Mode == order.Self {
		return nil
	}
	list = append(list, in.causes...)
	if in.failed != nil {
		list = append(list, *in.failed)
	}
	if v.Status.Mode == order.Operator && order.Have(v.Spec, v.Status) < v.Spec.Slots && in.shown != nil && in.limits != (eni.Limits{}) {
		list = append(list, pool.TargetCauses(v.Spec.Pool, order.Snapshot(v.Spec, v.Status, in.facts), v.Spec.Slots)...)
	}
	var told []pool.Cause
	for _, c := range pool.Rank(list) {
		if order.ReasonOf(c.Kind) != "" {
			told = append(told, c)
		}
	}
	return told
}

func (in input) statusCause(c pool.Cause) crd.Cause {
	b := crd.Cause{Reason: string(order.ReasonOf(c.Kind)), Message: c.Words}
	if len(b.Message) > mostWords {
		b.Message = b.Message[:mostWords]
	}
	if c.Next > in.now.Mono {
		b.Until = &metav1.Time{Time: in.now.Wall.Add(c.Next - in.now.Mono).Truncate(time.Second)}
	}
	return b
}

// satisfied returns the condition of that name.
func (in input) satisfied(v order.View, causes []pool.Cause) metav1.Condition {
	c := metav1.Condition{Type: Satisfied, Status: metav1.ConditionFalse, Reason: "Growing", ObservedGeneration: in.network.Generation}
	have := order.Have(v.Spec, v.Status)
	c.Message = fmt.Sprintf("%d of %d slots", have, v.Spec.Slots)
	switch {
	case v.Status.Mode != order.Operator:
		c.Status = metav1.ConditionUnknown
		if c.Reason, c.Message = in.awaited(v); len(causes) > 0 {
			c.Message += ": " + causes[0].Words
		}
	case order.Satisfied(v.Spec, v.Status, coming(in.facts)):
		c.Status, c.Reason = metav1.ConditionTrue, Satisfied
	case len(causes) > 0:
		c.Reason, c.Message = string(order.ReasonOf(causes[0].Kind)), c.Message+": "+causes[0].Words
	case in.holdsCauses(v) && len(in.network.Status.Causes) > 0:
		told := in.network.Status.Causes[0]
		c.Reason, c.Message = told.Reason, c.Message+": "+told.Message
	}
	return c
}

// holdsCauses tells whether why the node has not more is not known yet in this term: what the leader before has told holds until a describe, or each
// of thousands of nodes whose subnet is full would be written twice, and people be told for a while that nothing is wrong.
func (in input) holdsCauses(v order.View) bool {
	return in.shown == nil && v.Status.Mode == order.Operator && order.Have(v.Spec, v.Status) < v.Spec.Slots
}

// coming returns how many addresses were asked for with the outcome open.
func coming(f order.Facts) (n int) {
	for _, c := range f.Calls {
		for _, asked := range c.Coming {
			n += asked.Count
		}
	}
	for _, p := range f.Pending {
		n += p.Slots
	}
	return n
}

// described returns the condition of that name. Until the first describe of a term what the leader before has told holds: else all nodes
// would be written twice with each change of leaders, before those whose pods wait.
func (in input) described(told []metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: Described, Status: metav1.ConditionTrue, Reason: Described, ObservedGeneration: in.network.Generation}
	switch {
	case in.failed != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(order.ReasonOf(in.failed.Kind)), in.failed.Words
	case in.shown == nil && meta.FindStatusCondition(told, Described) != nil:
		return *meta.FindStatusCondition(told, Described)
	case in.shown == nil:
		c.Status, c.Reason = metav1.ConditionUnknown, "Waiting"
	}
	return c
}

// setCondition replaces a condition. The time of its transition is kept while its status is.
func (in input) setCondition(s *crd.NodeNetworkStatus, c metav1.Condition) {
	c.LastTransitionTime = metav1.Time{Time: in.now.Wall.Truncate(time.Second)}
	if len(c.Message) > 4*mostWords {
		c.Message = c.Message[:4*mostWords]
	}
	for i, old := range s.Conditions {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		s.Conditions[i] = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}

// sameContent tells whether a status says nothing new. Words and times alone cause no write: all nodes would be written with
// every describe, and once an hour is still more than one write a second in a cluster of 5,000 nodes.
func sameContent(old, next crd.NodeNetworkStatus) bool {
	return reflect.DeepEqual(content(old), content(next))
}

// content returns the status without words and times.
func content(s crd.NodeNetworkStatus) crd.NodeNetworkStatus {
	c := (&crd.NodeNetwork{Status: s}).DeepCopy().Status
	c.DescribedAt = nil
	for i := range c.Conditions {
		c.Conditions[i].Message, c.Conditions[i].LastTransitionTime, c.Conditions[i].ObservedGeneration = "", metav1.Time{}, 0
	}
	var causes []crd.Cause
	for _, b := range c.Causes {
		causes = append(causes, crd.Cause{Reason: b.Reason})
	}
	c.Causes = causes
	return c
}
