package pool

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
)

// A rebuilt cache does not name namespaces; where it does, the path may have another one or a plain file by now.
func TestAFreedAddressIsToldWithWhatWasSeenOfItsPod(t *testing.T) {
	dev := netconf.HostDevice(eni.Key{})
	for _, tt := range []struct {
		netns string
		kind  eni.Kind
		want  string
	}{
		{"/run/netns/a", eni.Veth, "its namespace is not seen at /run/netns/a any more, and its link " + dev + " is gone"},
		{"/run/netns/a", eni.Delegated, "its namespace is not at /run/netns/a any more"},
		{"", eni.Veth, "its link " + dev + " is gone, and the node cache did not name its namespace"},
	} {
		a := eni.Address{Addr: netip.MustParseAddr("10.0.0.10"), Owner: &eni.Owner{Namespace: "default", Pod: "web", Netns: tt.netns, Kind: tt.kind}}
		if got, want := freedLine(a), "freed 10.0.0.10 of default/web: "+tt.want; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
