package kube

import (
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/health"
)

// What of a Node is ours. Patches touch nothing else of it.
const (
	// Condition is True while pods of the node can't get addresses, like NetworkUnavailable.
	Condition corev1.NodeConditionType = "EnipoolAddressesUnavailable"
	// NetworkReady is True once pods of the node can get addresses: some were there, and the network configuration is
	// where runtimes find it. That a node is full does not make it False: Condition tells that.
	NetworkReady corev1.NodeConditionType = "enipool.io/NetworkReady"
	// Taint is the key of the taint that keeps new pods off meanwhile. Its effect is
	// NoSchedule: it never evicts a pod.
	Taint = "enipool.io/addresses-unavailable"
	// Resource is how many pods can have addresses, for the scheduler.
	Resource corev1.ResourceName = "enipool.io/pod-addresses"
)

var ourTaint = corev1.Taint{Key: Taint, Effect: corev1.TaintEffectNoSchedule}

// resourceQuantity is a number of addresses in the way of the API.
func resourceQuantity(n int) corev1.ResourceList {
	return corev1.ResourceList{Resource: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

// publishedNumber returns the number that makes the scheduler's sum come out right. It takes
// off what pods asked for; pods that did not ask, because they are older than
// enipool, have to be taken off here. It is never less than what pods asked for: a
// kubelet that is restarted turns away what does not fit, though it is running.
func publishedNumber(capacity, silent, asked int) int { return max(capacity-silent, asked) }

// conditionFor returns the condition that says what a report says, as it follows on
// the one that the node has.
func conditionFor(r health.Report, was corev1.NodeCondition, now metav1.Time) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: Condition, Status: corev1.ConditionFalse, Reason: r.Reason, Message: r.Message, LastHeartbeatTime: now, LastTransitionTime: now}
	if r.Faulty {
		c.Status = corev1.ConditionTrue
	}
	if c.Status == was.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c
}

// Network is whether pods of the node can have networks of enipool, and why.
type Network struct {
	Ready           bool
	Reason, Message string
}

// condition returns the condition that says so, as it follows on the one that the node has.
func (w Network) condition(was corev1.NodeCondition, now metav1.Time) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: NetworkReady, Status: corev1.ConditionFalse, Reason: w.Reason, Message: w.Message, LastHeartbeatTime: now, LastTransitionTime: now}
	if w.Ready {
		c.Status = corev1.ConditionTrue
	}
	if c.Status == was.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c
}

// sameCondition reports whether two conditions say the same, whenever they were said.
func sameCondition(a, b corev1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// statusPatch is a strategic merge patch of a node's status. Lists are merged by
// their key, so the conditions and resources of others stay as they are.
type statusPatch struct {
	Status struct {
		Capacity    corev1.ResourceList    `json:"capacity,omitempty"`
		Allocatable corev1.ResourceList    `json:"allocatable,omitempty"`
		Conditions  []corev1.NodeCondition `json:"conditions,omitempty"`
	} `json:"status"`
	noResource bool // the resource goes, by a patch of its own
}

func (p statusPatch) empty() bool { return p.keepsAll() && !p.noResource }

// keepsAll tells whether the patch sets nothing.
func (p statusPatch) keepsAll() bool { return p.Status.Conditions == nil && p.Status.Capacity == nil }

// showsResource tells whether the scheduler counts the node's addresses by the Node: as long as that has any, it looks at no device.
func showsResource(n *corev1.Node) bool {
	_, capacity := n.Status.Capacity[Resource]
	_, allocatable := n.Status.Allocatable[Resource]
	return capacity || allocatable
}

// offersNumber reports whether a node has this number of addresses for the scheduler. The
// kubelet makes allocatable from capacity, but some time later.
func offersNumber(n *corev1.Node, number int) bool {
	for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
		if q, ok := list[Resource]; !ok || q.Value() != int64(number) {
			return false
		}
	}
	return true
}

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// taintPatch returns the JSON patch that adds our taint or takes it away, nil if
// there is nothing to do. A node's taints have no key to merge by, so the patch
// tests that they are still what it was made from, and fails if they are not.
func taintPatch(have []corev1.Taint, want bool) []operation {
	i := slices.IndexFunc(have, func(t corev1.Taint) bool { return t.MatchTaint(&ourTaint) })
	switch {
	case want == (i >= 0):
		return nil
	case !want:
		at := "/spec/taints/" + strconv.Itoa(i)
		return []operation{{"test", at + "/key", Taint}, {"test", at + "/effect", ourTaint.Effect}, {"remove", at, nil}}
	case len(have) == 0:
		return []operation{{"test", "/spec/taints", json.RawMessage("null")}, {"add", "/spec/taints", []corev1.Taint{ourTaint}}}
	}
	return []operation{{"add", "/spec/taints/-", ourTaint}} // a second one of ours would be refused
}

// removesTaint reports whether a patch takes our taint away.
func removesTaint(patch []operation) bool {
	return slices.ContainsFunc(patch, func(o operation) bool { return o.Op == "remove" })
}
