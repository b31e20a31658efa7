package cluster

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

func TestDevicesAreTheENIsThatHaveAddressesForPods(t *testing.T) {
	pool := &ipam.State{
		ENIs: []eni.Interface{{ID: "primary", Index: 0}, {ID: "first", Index: 1}, {ID: "second", Index: 3}},
		Addresses: []eni.Address{{Addr: netip.MustParseAddr("10.0.0.5"), ENI: 1}, {Addr: netip.MustParseAddr("10.0.0.6"), ENI: 1, State: eni.Used},
			{Addr: netip.MustParseAddr("10.0.0.7"), ENI: 3}},
	}
	if got, want := withAddresses(pool), []string{"first", "second"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
