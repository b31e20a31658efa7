package node

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// An inventory does not know in which prefixes the cloud gave its addresses; the agent
// that wrote the old node cache did.
func TestLoadingAnInventoryKeepsTheBlocksOfTheAgent(t *testing.T) {
	want := ipam.State{
		Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}},
		ENIs: []eni.Interface{{ID: "eni-a", Device: "eth0", MTU: 1500, V4: eni.Net{
			Primary: netip.MustParsePrefix("10.0.0.10/24"), Gateway: netip.MustParseAddr("10.0.0.1")}}},
		Addresses: []eni.Address{{Addr: netip.MustParseAddr("10.0.0.16")}},
	}
	old := want.Clone()
	old.Settings.V4Block, old.Settings.V6Block = 28, 80
	for _, tt := range []struct {
		name   string
		old    *ipam.State
		v4, v6 int
	}{{"none", nil, 0, 0}, {"the agent's", old, 28, 80}} {
		next, err := mergeState(tt.old, want, netconf.Occupancy{})
		if err != nil {
			t.Fatal(err)
		}
		if got := next.Settings; got.V4Block != tt.v4 || got.V6Block != tt.v6 {
			t.Errorf("%s: blocks of /%d and /%d, want /%d and /%d", tt.name, got.V4Block, got.V6Block, tt.v4, tt.v6)
		}
	}
}
