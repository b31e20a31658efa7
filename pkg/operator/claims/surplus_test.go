package claims

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/topology"
)

// Of two claims of a name one stays: that of its pod, then one that has been somewhere, then the one that was begun with.
func TestOfTwoClaimsOfANameOneStays(t *testing.T) {
	claim := func(last byte, s topology.Status) topology.Claim {
		return topology.Claim{Addr: netip.AddrFrom4([4]byte{10, 0, 0, last}), Status: s}
	}
	bound, free := topology.Status{Phase: topology.Bound, Node: "a"}, topology.Status{Phase: topology.Free, Node: "a"}
	moving, made := topology.Status{Phase: topology.OnItsWay}, topology.Status{}
	for i, tt := range []struct{ first, second topology.Status }{{bound, free}, {free, moving}, {free, made}, {moving, made}, {bound, made}} {
		if a, b := claim(9, tt.first), claim(1, tt.second); !goesBefore(a, b) || goesBefore(b, a) {
			t.Errorf("%d: %+v does not go before %+v", i, a.Status, b.Status)
		}
	}
	if a, b := claim(1, free), claim(2, free); !goesBefore(a, b) || goesBefore(b, a) || goesBefore(a, a) {
		t.Error("of two alike it is not the one of the lower address")
	}
}
