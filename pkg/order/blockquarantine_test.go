package order

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

// A quarantine ends also where the cloud gives the address in another form: alone it went and it is back in a delegated prefix, or in a
// prefix it went and single ones of it are back.
func TestAQuarantineEndsWhateverFormTheAddressIsBackIn(t *testing.T) {
	single, block := netip.MustParsePrefix("10.0.0.17/32"), netip.MustParsePrefix("10.0.0.16/28")
	for name, tt := range map[string]struct{ went, back netip.Prefix }{
		"single, and back in a block": {single, block},
		"block, and back as a single": {block, single},
	} {
		term := NewTerm(lease, 7, 0)
		v := View{Spec: Spec{Mode: Operator, Families: []eni.Family{eni.IPv4}}, Status: Status{Mode: Operator, Epoch: 7, Revision: 3,
			Limits: eni.Limits{ENIs: 4, V4: 65, V4Block: eni.Block{Bits: 28, Size: 16}}, Releasing: []netip.Prefix{tt.went},
			ENIs: []ENI{{ID: "eni-a", State: Attached, Addresses: []netip.Prefix{tt.went}}}}}
		_, _, at := doubted()
		term.Asked(v.Status, tt.went) // its answer got lost
		term.Asked(v.Status, tt.went)
		term.Answered(tt.went)
		v.Status = term.Unassigned(v, at, tt.went)
		v.Status = term.Assigned(v, at, "eni-a", tt.back)
		if len(v.Status.Quarantined) != 1 {
			t.Fatalf("%s: %+v", name, v.Status)
		}
		began := at
		for range 100 { // describes, all of which show it
			began = began.after(lease.Fence, lease.Fence)
			v.Status, _ = term.Described(v, began, Description{Began: began, Shown: map[string][]netip.Prefix{"eni-a": {tt.back}}})
		}
		if n := len(v.Status.Quarantined); n > 0 {
			t.Errorf("%s: %d of it in quarantine ten hours later; %d slots", name, n, Have(v.Spec, v.Status))
		}
	}
}
