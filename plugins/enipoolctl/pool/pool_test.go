package pool

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
)

func TestAFreedAddressIsToldWithItsNamespaceIfThatIsKnown(t *testing.T) {
	for netns, want := range map[string]string{
		"/run/netns/a": "freed 10.0.0.10 of default/web: its namespace /run/netns/a is gone",
		"":             "freed 10.0.0.10 of default/web: its link " + netconf.HostDevice(eni.Key{}) + " is gone, and its namespace with it",
	} {
		a := eni.Address{Addr: netip.MustParseAddr("10.0.0.10"), Owner: &eni.Owner{Namespace: "default", Pod: "web", Netns: netns}}
		if got := freedLine(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
