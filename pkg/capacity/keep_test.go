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
	if p.Nodes != 18 || *p.ByQuota != 18 || p.Limit != ENIQuota || p.Answer.ENIsMore != 60 {
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
