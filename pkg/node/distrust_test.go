package node

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// What a damaged record may have said of an address is not lost by a load: a pod of another
// plugin keeps it, and what was a pod's a moment ago rests.
func TestLoadingOverADamagedRecordFreesNothingAtOnce(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.16")
	want := ipam.State{
		Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}},
		ENIs: []eni.Interface{{ID: "eni-a", Device: "eth0", MTU: 1500, V4: eni.Net{
			Primary: netip.MustParsePrefix("10.0.0.10/24"), Gateway: netip.MustParseAddr("10.0.0.1")}}},
		Addresses: []eni.Address{{Addr: addr}},
	}
	for name, tt := range map[string]struct {
		damaged []ipam.Damage
		want    eni.State
	}{
		"none":                            {nil, eni.Free},
		"one":                             {[]ipam.Damage{{Addr: addr}}, eni.Cooling},
		"one that names a pod of macvlan": {[]ipam.Damage{{Addr: addr, Owner: &eni.Owner{Kind: eni.Delegated}}}, eni.Used},
	} {
		old := want.Clone()
		old.Addresses, old.Damaged = nil, tt.damaged
		next, err := mergeState(old, want, netconf.Occupancy{At: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if got := next.Addresses[0]; got.State != tt.want || got.Since != time.Minute {
			t.Errorf("%s: %+v, want it %s", name, got, tt.want)
		}
	}
}
