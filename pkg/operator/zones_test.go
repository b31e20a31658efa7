package operator

import (
	"slices"
	"testing"
)

func TestAZoneHasTheLabelsOfItsNodes(t *testing.T) {
	o := &Operator{}
	in := func(label string) Node {
		return Node{Labels: map[string]string{"topology.kubernetes.io/zone": label}}
	}
	o.zones.noteNode("a", in("zoneA"))
	if _, known := o.ZoneLabels("a"); known {
		t.Error("known before all Nodes were read")
	}
	for _, label := range []string{"cn-bj-a", "zoneA", ""} {
		o.zones.noteNode("a", in(label))
	}
	o.zones.noteNode("", in("zoneB"))
	o.zones.noteAll()
	if got, known := o.ZoneLabels("a"); !slices.Equal(got, []string{"zoneA", "cn-bj-a"}) || !known {
		t.Errorf("%q, %t", got, known)
	}
	if got, known := o.ZoneLabels("b"); !slices.Equal(got, []string{"b"}) || !known {
		t.Errorf("without Nodes: %q, %t", got, known)
	}
}
