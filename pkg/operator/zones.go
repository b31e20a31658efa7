package operator

import (
	"slices"
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

// ZoneLabels returns the values that the label topology.kubernetes.io/zone of Nodes has for a zone, false before all Nodes were read. A
// zone without Nodes has its own name.
func (o *Operator) ZoneLabels(zone string) ([]string, bool) {
	z := &o.zones
	z.mu.Lock()
	defer z.mu.Unlock()
	if list := z.of[zone]; len(list) > 0 {
		return slices.Clone(list), z.known
	}
	return []string{zone}, z.known
}
