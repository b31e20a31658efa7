package simulate

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

// What is reckoned without playing is what the same fleet is played against.
func TestTheSoonestIsTheBoundOfWhatIsPlayed(t *testing.T) {
	inPrefixes := eni.Limits{ENIs: 4, V4: 1 + 14*16, V4Block: eni.Block{Bits: 28, Size: 16}}
	for _, tt := range []struct {
		name   string
		limits eni.Limits
		fleet  Fleet
	}{
		{"addresses of the node's own ENI", eni.Limits{ENIs: 15, V4: 50}, Fleet{Nodes: 300, Pods: 30}},
		{"several ENIs", eni.Limits{ENIs: 4, V4: 15}, Fleet{Nodes: 300, Pods: 50}},
		{"prefixes", inPrefixes, Fleet{Nodes: 300, Pods: 50}},
		{"pods of topologies", eni.Limits{ENIs: 4, V4: 15}, Fleet{Nodes: 300, Pods: 40, Topologies: Hosted{Pods: 10, Places: 14}}},
		{"pods of topologies beside prefixes", inPrefixes, Fleet{Nodes: 300, Pods: 50, Topologies: Hosted{Pods: 20, Places: 28}}},
	} {
		w := ec2World(tt.limits)
		tt.fleet.Cold, tt.fleet.Share = true, 50
		played := operate(t, w, tt.fleet).Served
		w.Subnets = nil // which is no matter
		got, err := tt.fleet.Soonest(w, batchSetting())
		if want := (Soonest{played.Needed, played.Bound, played.By, played.Planned, played.PlanBound}); err != nil || got != want || got.After == 0 || got.By == "" {
			t.Errorf("%s: %+v, %v; played %+v", tt.name, got, err, want)
		}
	}
}

// An ENI that is kept for topologies carries no other pod, whether or not it is known how many pods of theirs there are.
func TestKeptPlacesLeaveLessForOtherPods(t *testing.T) {
	w, f := ec2World(eni.Limits{ENIs: 4, V4: 15}), Fleet{Nodes: 10, Pods: 42, Cold: true, Share: 80}
	all, err := f.Soonest(w, batchSetting())
	if err != nil || all.Changes == 0 {
		t.Fatal(all, err)
	}
	f.Topologies.Places = 14
	kept, err := f.Soonest(w, batchSetting())
	if err != nil || kept.Planned >= all.Planned || kept.Changes < all.Changes {
		t.Errorf("%+v with an ENI that is kept, %+v without; %v", kept, all, err)
	}
	for want, f := range map[string]Fleet{
		"pods: 43: a node has addresses for 42 of them": {Nodes: 10, Pods: 43, Cold: true, Share: 80, Topologies: Hosted{Places: 14}},
		"pods: 111: must be 1 to 110":                   {Nodes: 10, Pods: 111, Cold: true, Share: 80},
		"topology-places: 14: a node has up to 15 pods": {Nodes: 10, Pods: 43, Cold: true, Share: 80, Topologies: Hosted{Pods: 15, Places: 14}},
	} {
		if got, err := f.Soonest(w, batchSetting()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %+v, %v; want %s", f, got, err, want)
		}
	}
}
