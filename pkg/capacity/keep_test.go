package capacity

import (
	"fmt"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

func TestPlacesOfTopologiesAreWholeENIs(t *testing.T) {
	large := Instance{Limits: eni.Limits{ENIs: 3, V4: 10}}
	inPrefixes := large.InPrefixes(ofEC2)
	for _, tt := range []struct {
		name             string
		of               Instance
		places           int
		whole            bool
		pods, enis, kept int
		want             string
	}{
		{"none", large, 0, true, 27, 0, 0, "<nil>"},
		{"one is an ENI", large, 1, true, 18, 1, 9, "<nil>"},
		{"a full one", large, 9, true, 18, 1, 9, "<nil>"},
		{"one more", large, 10, true, 9, 2, 18, "<nil>"},
		{"all", large, 19, true, 27, 0, 0, "19: are 3 whole ENIs of 9 addresses, and a node has 3: none is left for other pods"},
		{"single addresses, no prefixes", inPrefixes, 10, true, 144, 2, 18, "<nil>"},
		{"of any ENI", large, 10, false, 27, 0, 10, "<nil>"},
		{"of any ENI, all", large, 27, false, 27, 0, 0, "27: a node carries 27 pods, and none is left for others"},
		{"less than none", large, -1, true, 27, 0, 0, "-1: must not be negative"},
	} {
		general, enis, kept, err := tt.of.Keep(tt.places, tt.whole)
		if general.Pods() != tt.pods || enis != tt.enis || kept != tt.kept || fmt.Sprint(err) != tt.want {
			t.Errorf("%s: %d pods, %d ENIs with %d places, %v; want %d, %d, %d, %s", tt.name, general.Pods(), enis, kept, err, tt.pods, tt.enis, tt.kept, tt.want)
		}
	}
}

// A node of 128 pods has 4 ENIs; one more is kept, so that of a quota of 90 there are 18 nodes and not 22.
func TestENIsOfTopologiesCountAgainstTheQuota(t *testing.T) {
	in := Input{Instance: big, MaxPods: 128, Quota: 100, UsedENIs: 10, KeptENIs: 1, Need: Need{Nodes: 30}, Subnets: []Subnet{subnet(t, "10.0.0.0/16", 2)}}
	p := made(t, in)
	if p.Nodes != 18 || *p.ByQuota != 18 || p.Limit != ENIQuota || p.Answer.ENIs != 150 || p.Answer.ENIsMore != 60 {
		t.Errorf("%+v, %+v", p.Carries, p.Answer)
	}
	in.Subnets = []Subnet{{ID: "a", Available: 17}, {ID: "b", Available: 17}}
	in.MaxPods, in.Mix, in.UsedENIs, in.Need = 32, true, 0, Need{}
	for quota, want := range map[int]int{2: 0, 3: 1} { // a mixed node has 2 ENIs, and the one that is kept
		if in.Quota = quota; made(t, in).Nodes != want {
			t.Errorf("a quota of %d: %d nodes", quota, made(t, in).Nodes)
		}
	}
}

// Addresses of other subnets take places of the ENIs that a node has anyway: where those are full, it needs more of them, but no
// address more of its own subnet than that of the ENI itself.
func TestPlacesOfAnyENINeedENIs(t *testing.T) {
	inPrefixes := Instance{Limits: eni.Limits{ENIs: 4, V4: 4}}.InPrefixes(ofEC2)
	for _, tt := range []struct {
		of                 Instance
		pods, places       int
		enis, ips, allowed int
	}{
		{big, 39, 0, 1, 40, 39},
		{big, 30, 9, 1, 31, 30},
		{big, 30, 10, 2, 32, 30},
		{big, 78, 1, 3, 81, 78},
		{big, 39, 273, 8, 47, 39},
		{big, 40, 273, 8, 47, 39}, // 39 is all that the places leave
		{inPrefixes, 48, 0, 1, 49, 48},
		{inPrefixes, 33, 1, 2, 50, 33}, // a place is that of a prefix
	} {
		p := made(t, Input{Instance: tt.of, MaxPods: tt.pods, Places: tt.places, Subnets: []Subnet{{ID: "a", Available: 1000}}})
		if p.ENIsPerNode != tt.enis || p.IPsPerNode != tt.ips || p.MaxPods != tt.allowed {
			t.Errorf("%d pods and %d places: %d ENIs, %d addresses, max-pods %d; want %d, %d, %d", tt.pods, tt.places, p.ENIsPerNode, p.IPsPerNode, p.MaxPods, tt.enis, tt.ips, tt.allowed)
		}
	}
	if _, err := Make(Input{Instance: big, MaxPods: 1, Places: 312}); err == nil || err.Error() != "312 places: a node carries 312 pods, and none is left for others" {
		t.Error(err)
	}
}

// The ENIs of places count against the quota, as those of pods do, and where a node's ENIs lie in several subnets.
func TestENIsOfPlacesOfAnyENICountAgainstTheQuota(t *testing.T) {
	in := Input{Instance: big, MaxPods: 39, Places: 1, Quota: 21, Need: Need{Nodes: 11}, Subnets: []Subnet{subnet(t, "10.0.0.0/16", 2)}}
	if p := made(t, in); p.Nodes != 10 || p.ENIs != 20 || p.Answer.ENIs != 22 || p.Answer.ENIsMore != 1 {
		t.Errorf("%+v, %+v", p.Carries, p.Answer)
	}
	in = Input{Instance: big, MaxPods: 20, Places: 20, Mix: true, Subnets: []Subnet{{ID: "a", Available: 21}, {ID: "b", Available: 1}}}
	if p := made(t, in); p.Nodes != 1 || p.ENIs != 2 || p.Used != 22 {
		t.Errorf("an ENI for places alone: %+v", p.Carries)
	}
}
