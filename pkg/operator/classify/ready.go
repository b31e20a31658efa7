package classify

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/topology"
)

// Ready is the condition of a PodSubnetTopology that tells whether it can be served, and the reason if it can.
const Ready = "Ready"

// unreadable is the reason of one that this release can't read. The others are those of topology.Check.
const unreadable = "Unreadable"

// tellTopology returns a topology with its next status, and whether that says anything new. A time alone says nothing.
func (k *known) tellTopology(i int, now time.Time) (*crd.PodSubnetTopology, bool) {
	object, of := k.topologies[i], k.Topologies[i]
	c := metav1.Condition{Type: Ready, Status: metav1.ConditionTrue, Reason: Ready, ObservedGeneration: object.Generation,
		Message: operator.Shorten(topology.Lacking(of, k.Subnets)), LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	why := topology.Check(of, k.Topologies, k.Subnets)
	if err := k.unreadable[of.Name]; err != nil {
		why = topology.Unready{Reason: unreadable, Message: err.Error()}
	}
	if why.Reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, why.Reason, operator.Shorten(why.Message)
	}
	next := object.DeepCopy()
	zones := k.zonesOf(of)
	same := slices.Equal(zones, next.Status.Zones) && next.Status.ObservedGeneration == object.Generation
	next.Status.Zones, next.Status.ObservedGeneration = zones, object.Generation
	was := conditionOf(object)
	if c.Status == was.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	next.Status.Conditions = append(slices.DeleteFunc(next.Status.Conditions, func(c metav1.Condition) bool { return c.Type == Ready }), c)
	return next, !same || was != c
}

// writeCount puts into a topology's next status how far it is used, and tells whether that is new.
func (t *term) writeCount(next *crd.PodSubnetTopology) bool {
	if t.CountOf == nil {
		return false
	}
	count, known := t.CountOf(next.Name)
	if !known {
		return false
	}
	s, before := &next.Status, next.Status
	pods, kept, room := int32(count.Pods), int32(count.Claims), int32(count.Room)
	s.Pods, s.Claims, s.Room = &pods, &kept, &room
	return !reflect.DeepEqual([]*int32{s.Pods, s.Claims, s.Room}, []*int32{before.Pods, before.Claims, before.Room})
}

// conditionOf returns what a topology says of itself, the zero condition if nothing yet.
func conditionOf(t *crd.PodSubnetTopology) (c metav1.Condition) {
	if at := slices.IndexFunc(t.Status.Conditions, func(c metav1.Condition) bool { return c.Type == Ready }); at >= 0 {
		c = t.Status.Conditions[at]
	}
	return c
}

// mostZones is how many zones a status takes.
const mostZones = 16

// zonesOf returns the zones of a topology's subnets that are ready.
func (k *known) zonesOf(t topology.Topology) (zones []string) {
	for _, s := range k.Subnets {
		if s.Ready && slices.ContainsFunc(t.Sources, func(from topology.Source) bool { return from.Subnet == s.ID }) {
			zones = append(zones, s.Zone)
		}
	}
	slices.Sort(zones)
	zones = slices.Compact(zones)
	return zones[:min(len(zones), mostZones)]
}

// topologyNotice returns what people are told when a topology can't be served, and when it can again.
func topologyNotice(next, before *crd.PodSubnetTopology) (n operator.Notice, is bool) {
	c, was := conditionOf(next), conditionOf(before)
	n = operator.Notice{Kind: "PodSubnetTopology", Name: next.Name, UID: string(next.UID), Reason: c.Reason, Message: c.Message}
	switch {
	case c.Reason == was.Reason:
		return n, false
	case c.Status == metav1.ConditionTrue:
		n.Message = "it can be served"
		return n, was.Status == metav1.ConditionFalse
	}
	n.Warning = true
	return n, true
}

// podNotice returns what people are told of a pod that waits.
func podNotice(p Pod, reason, message string) operator.Notice {
	return operator.Notice{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Warning: true, Reason: reason,
		Message: operator.Shorten(cmp.Or(message, reason))}
}
