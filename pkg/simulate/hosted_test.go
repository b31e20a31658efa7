package simulate

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// By hand: each node of 30 pods has 6 of topologies, which need an ENI and one call to fill it, beside one call for the 24 others. On EC2 that
// is 300 assigns, of which 80 pass at once and 4 a second: the last after 55 s.
func TestPodsOfTopologiesHaveENIsOfTheirOwn(t *testing.T) {
	w := ec2World(eni.Limits{ENIs: 15, V4: 50})
	f := Fleet{Nodes: 150, Pods: 30, Cold: true, Share: 80, Topologies: Hosted{Pods: 6, Places: 49}}
	r := operate(t, w, f)
	first := r.Topologies.First
	if !r.Served.All || r.Topologies.Moved != nil || first.Pods != 900 || first.Without != 0 || first.Made != 150 || first.Assigned != 150 || first.Unassigned != 0 {
		t.Errorf("%+v, %+v", r.Topologies, r.Served)
	}
	if r.Waits.Waited != 150*30 || r.Calls.Attachments != 150 || r.Calls.Assign != 300 || first.Requests["AssignPrivateIpAddresses"] != 150 || first.Requests["AttachNetworkInterface"] != 150 {
		t.Errorf("%+v, %+v, %+v", r.Waits, r.Calls, first.Requests)
	}
	if bound := Seconds(55*time.Second + 300*time.Millisecond); r.Served.Bound != bound || r.Served.Reached < bound || first.Max != r.Served.Reached {
		t.Errorf("served after %s, the last of topologies after %s, with a bound of %s", r.Served.Reached, first.Max, r.Served.Bound)
	}
	if again := operate(t, w, f); !reflect.DeepEqual(r, again) {
		t.Error("the same arguments give another result")
	}
}

// A kept address is taken from the one node before the other gets it, by one call for all of a node; an elastic pod does not wait for that.
func TestDrainedNodesLoseTheirPodsOfTopologies(t *testing.T) {
	w := ec2World(eni.Limits{ENIs: 15, V4: 50})
	f := Fleet{Nodes: 10, Pods: 30, Cold: true, Share: 80, Topologies: Hosted{Pods: 6, Places: 49, Drained: 2, Keeps: true}}
	assigned, unassigned := 600*time.Millisecond, 100*time.Millisecond
	for _, keeps := range []bool{true, false} {
		f.Topologies.Keeps = keeps
		r := operate(t, w, f)
		m := r.Topologies.Moved
		if m == nil || m.Pods != 12 || m.Without != 0 || m.Unassigned != 2 || m.Made != 0 || m.Requests["UnassignPrivateIpAddresses"] != 2 || m.Requests["AssignPrivateIpAddresses"] != m.Assigned {
			t.Fatalf("keeps %t: %+v", keeps, m)
		}
		want := assigned
		if keeps {
			want += unassigned
		}
		// Those that come to one of the 8 other nodes together are one call.
		if time.Duration(m.P50) != want || m.Assigned < 8 || m.Assigned > 12 {
			t.Errorf("keeps %t: half waited %s, want %s; %+v", keeps, m.P50, want, m)
		}
		if last := r.Series[len(r.Series)-1]; last.Waiting != 0 || r.Calls.Unassign != 2 || !r.Served.All {
			t.Errorf("keeps %t: %+v, %+v", keeps, last, r.Calls)
		}
	}
}

// A node with more pods of topologies than an ENI carries has two; with prefixes an ENI carries as many single addresses.
func TestPodsOfTopologiesFillWholeENIs(t *testing.T) {
	w := ec2World(eni.Limits{ENIs: 8, V4: 10})
	f := Fleet{Nodes: 3, Pods: 30, Cold: true, Share: 80, Topologies: Hosted{Pods: 12, Places: 12}}
	r := operate(t, w, f)
	if first := r.Topologies.First; !r.Served.All || first.Made != 6 || first.Assigned < 6 || first.Without != 0 {
		t.Errorf("%+v, %+v", r.Topologies.First, r.Served)
	}
	prefixes := eni.Limits{ENIs: 8, V4: 145, V4Block: eni.Block{Bits: 28, Size: 16}}
	for places, want := range map[Hosted]int{{Pods: 9}: 9, {Pods: 10}: 18, {Pods: 5, Drained: 2}: 18, {Pods: 3, Drained: 2}: 9} {
		for _, l := range []eni.Limits{w.Limits, prefixes} {
			if got := places.PlacesFor(4, l); got != want {
				t.Errorf("%+v of %+v: %d places, want %d", places, l, got, want)
			}
		}
	}
}

func TestWhatTopologiesCanNotHaveIsRefused(t *testing.T) {
	w := ec2World(eni.Limits{ENIs: 4, V4: 15})
	for want, h := range map[string]Hosted{
		"topology-share: 30 of 30 pods": {Pods: 30, Places: 28},
		"topology-places: 14: a node has up to 15 pods of topologies, and its kept ENIs carry 14": {Pods: 15, Places: 14},
		"topology-places: 14: a node has up to 20 pods of topologies, and its kept ENIs carry 14": {Pods: 10, Places: 14, Drained: 2},
		"topology-places: 42: leave 14 addresses of a node for its 25 other pods":                 {Pods: 5, Places: 42},
		"drain: 4: must be less than the 4 nodes":                                                 {Pods: 5, Places: 14, Drained: 4},
	} {
		f := Fleet{Nodes: 4, Pods: 30, Share: 80, Topologies: h}
		if _, err := Operate(context.Background(), w, f, batchSetting(), time.Minute); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", h, err, want)
		}
	}
	w.MaxENIs = 11
	f := Fleet{Nodes: 4, Pods: 12, Share: 80, Topologies: Hosted{Pods: 2, Places: 14}}
	if _, err := Operate(context.Background(), w, f, batchSetting(), time.Minute); err == nil || !strings.HasPrefix(err.Error(), "eni-quota: 4 nodes take ") {
		t.Errorf("ENIs of topologies are no matter to the quota: %v", err)
	}
}
