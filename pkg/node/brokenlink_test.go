package node

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// Somebody has switched IPv6 off on the link of one ENI. What the other ENIs need comes all the same, and who
// asked is told which one lacks its own.
func TestALinkThatCantBeSetUpIsNamedAndTheOthersAre(t *testing.T) {
	n, state := newNode(t, 3)
	state.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6}
	for i := range state.ENIs {
		state.ENIs[i].V6 = eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("fd00::%d/64", i+10)), Gateway: netip.MustParseAddr("fd00::1")}
	}
	nettest.Run(t, "sysctl", "-q", "net.ipv6.conf.eth1.disable_ipv6=1")
	_, err := n.Grow(t.Context(), state)
	broken, only := netconf.BrokenLinks(err)
	if got := slices.Sorted(maps.Keys(broken)); !only || !slices.Equal(got, []string{"eth1"}) {
		t.Errorf("broken: %v, and only that: %v; %v", got, only, err)
	}
	have := kernel(t)
	for _, text := range []string{"inet6 fd00::12/64", "default via 10.0.0.1 dev eth2", "from 10.0.0.30 lookup 102"} {
		if !strings.Contains(have, text) {
			t.Errorf("the kernel has no %q:\n%s", text, have)
		}
	}
}
