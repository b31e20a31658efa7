package pool

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

// What is kept for pods of topologies no slot takes, however many are wanted.
func TestPlacesForTopologiesAreNoSlots(t *testing.T) {
	blocks := eni.Limits{ENIs: 2, V4: 49, V4Block: eni.Block{Bits: 28, Size: 16}}
	for _, tt := range []struct {
		c          Config
		limits     eni.Limits
		most, enis int
	}{
		{Config{}, eni.Limits{ENIs: 2, V4: 16}, 30, 0},
		{Config{TopologyPlaces: 4}, eni.Limits{ENIs: 2, V4: 16}, 26, 1},
		{Config{TopologyPlaces: 16}, eni.Limits{ENIs: 2, V4: 16}, 14, 2},
		{Config{TopologyPlaces: 40}, eni.Limits{ENIs: 2, V4: 16}, 0, 3},
		{Config{TopologyPlaces: 4, MaxAllocate: 20}, eni.Limits{ENIs: 2, V4: 16}, 20, 1},
		{Config{TopologyPlaces: 2}, blocks, 64, 1}, // a single address takes as much as a block
	} {
		if most, enis := tt.c.Most(tt.limits, v4, 0), tt.c.KeptENIs(tt.limits, v4); most != tt.most || enis != tt.enis {
			t.Errorf("%d places of %+v: %d slots, %d ENIs kept; want %d and %d", tt.c.TopologyPlaces, tt.limits, most, enis, tt.most, tt.enis)
		}
	}
	s := Snapshot{Families: v4, Limits: eni.Limits{ENIs: 2, V4: 16}, Subnets: []Subnet{{ID: "subnet-a", Free: 200, New: true}}}
	s = applied(s, Plan(Config{TopologyPlaces: 4}, s, 99))
	checkENIs(t, s, 2, func(k int) int { return []int{15, 11}[k-1] })
}

func TestAnENIThatIsLeftForTopologiesIsNotMade(t *testing.T) {
	s := Snapshot{Families: v4, Limits: eni.Limits{ENIs: 3, V4: 16}, KeptENIs: 1, Subnets: []Subnet{{ID: "subnet-a", Free: 200, New: true}}}
	c := Config{TopologyPlaces: 4}
	s = applied(s, Plan(c, s, 99))
	checkENIs(t, s, 2, func(int) int { return 15 })
	if why := c.Full(s); !strings.Contains(why, "1 are left for pods of topologies by topologyPlaces 4") {
		t.Errorf("%q", why)
	}
}

// A place that is promised is none: other ENIs get what is wanted.
func TestAPromisedPlaceIsNotTaken(t *testing.T) {
	for _, families := range [][]eni.Family{v4, both} {
		s := node(families, card(0, families, 0, 14), card(1, families, 0, 2))
		s.ENIs[0].Promised = 1
		got := text(Plan(Config{}, s, 24))
		if !strings.Contains(got, "assign eni-a 1 ") || !strings.Contains(got, "assign eni-b 7 ") {
			t.Errorf("%s", got)
		}
	}
	s := node(v4, card(0, v4, 0, 15))
	s.Limits.V4Block = eni.Block{Bits: 28, Size: 16}
	s.Limits.V4, s.Limits.ENIs, s.ENIs[0].Promised = 65, 1, 3
	for _, step := range Plan(Config{}, s, 40) {
		t.Errorf("%+v", step)
	}
}
