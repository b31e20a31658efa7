package operator

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// zoneLabels are the labels that Nodes have for their zones, by the name that subnets have: a cloud may have several for one zone.
type zoneLabels struct {
	mu    sync.Mutex
	known bool // all Nodes were read once
	of    map[string][]string
}

func (z *zoneLabels) noteNode(zone string, n Node) {
	label := n.Labels[corev1.LabelTopologyZone]
	if zone == "" || label == "" {
		return
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.of == nil {
		z.of = map[string][]string{}
	}
	if !slices.Contains(z.of[zone], label) {
		z.of[zone] = append(z.of[zone], label)
	}
}

func (z *zoneLabels) noteAll() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.known = true
}

// ZoneLabels are the values that the label topology.kubernetes.io/zone of Nodes has for a zone.
type ZoneLabels struct {
	Values []string // none where nobody can tell which one the first Node there will have
	Seen   bool     // a Node of the zone was seen
}

// ZoneLabels returns the labels of Nodes for a zone, false before all Nodes were read. Those of a zone in which no Node was seen are as those of the other
// zones: a zone "b" has "cn-bj-b" and "zoneB" where "a" has "cn-bj-a" and "zoneA". What no Node will ever have would keep a pod from all.
func (o *Operator) ZoneLabels(zone string) (ZoneLabels, bool) {
	z := &o.zones
	z.mu.Lock()
	defer z.mu.Unlock()
	if list := z.of[zone]; len(list) > 0 {
		return ZoneLabels{slices.Clone(list), true}, z.known
	}
	var list []string
	for _, other := range slices.Sorted(maps.Keys(z.of)) {
		for _, label := range z.of[other] {
			if is, can := labelAlike(label, other, zone); can && !slices.Contains(list, is) {
				list = append(list, is)
			}
		}
	}
	return ZoneLabels{Values: list}, z.known
}

// labelAlike returns the label of a zone that is to it as another zone's label is to that one, false if that does not end with its zone.
func labelAlike(label, of, zone string) (string, bool) {
	at := len(label) - len(of)
	switch {
	case at < 0:
	case label[at:] == of:
		return label[:at] + zone, true
	case label[at:] == strings.ToUpper(of):
		return label[:at] + strings.ToUpper(zone), true
	}
	return "", false
}
