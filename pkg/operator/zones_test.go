package operator

import (
	"fmt"
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
	if got, known := o.ZoneLabels("a"); !slices.Equal(got.Values, []string{"zoneA", "cn-bj-a"}) || !got.Seen || !known {
		t.Errorf("%+v, %t", got, known)
	}
	if got, known := o.ZoneLabels("b"); !slices.Equal(got.Values, []string{"zoneB", "cn-bj-b"}) || got.Seen || !known {
		t.Errorf("without Nodes: %+v, %t", got, known)
	}
}

// What a pod is sent to must be a label that Nodes there will have: nobody can change it after that.
func TestAZoneWithoutNodesIsLabelledAsOthersAre(t *testing.T) {
	for _, tt := range []struct{ what, zone, label, want string }{
		{"each has its own name", "us-east-1a", "us-east-1a", "[us-east-1b]"},
		{"with the region", "a", "cn-bj-a", "[cn-bj-us-east-1b]"},
		{"in capitals", "a", "zoneA", "[zoneUS-EAST-1B]"},
		{"nothing to learn from", "a", "rack-7", "[]"},
		{"shorter than the name", "us-east-1a", "a", "[]"},
		{"no Node has a label", "a", "", "[]"},
	} {
		o := &Operator{}
		o.zones.noteNode(tt.zone, Node{Labels: map[string]string{"topology.kubernetes.io/zone": tt.label}})
		o.zones.noteAll()
		if got, _ := o.ZoneLabels("us-east-1b"); fmt.Sprint(got.Values) != tt.want || got.Seen {
			t.Errorf("%s: %+v, want %s", tt.what, got, tt.want)
		}
	}
}
