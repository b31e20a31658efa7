package node

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// Where only iptables-nft is installed, an IPv4-only node repairs its packet filter though
// somebody else made the nat table of ip6tables-legacy.
func TestAnIPv4NodeWithoutLegacyProgramsRepairsItsPacketFilter(t *testing.T) {
	for _, program := range []string{"iptables-nft", "ip6tables-legacy"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs both variants of iptables:", err)
		}
	}
	n, _ := withPod(t)
	err := n.Cache.Replace(t.Context(), func(s *ipam.State, _ error) (*ipam.State, error) {
		s.Settings.Firewall, s.Settings.Routing = ipam.Iptables, ipam.Rule
		return s, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	nettest.Run(t, "ip6tables-legacy", "-t", "nat", "-S")
	nettest.HideLegacyIptables(t)
	was := nettest.Run(t, "iptables-nft", "-t", "nat", "-S", "POSTROUTING")
	if !strings.Contains(was, "ENIPODS") {
		t.Fatalf("no chain of ours translates: %s", was)
	}
	nettest.Run(t, "iptables-nft", "-t", "nat", "-F", "POSTROUTING")
	if lines, err := n.Apply(t.Context()); err != nil || len(lines) == 0 {
		t.Errorf("repair: %q, %v", lines, err)
	}
	if is := nettest.Run(t, "iptables-nft", "-t", "nat", "-S", "POSTROUTING"); is != was {
		t.Errorf("after the repair:\n%s\nwant\n%s", is, was)
	}
	if found, err := n.Check(t.Context()); err != nil || strings.Contains(strings.Join(found, "\n"), "firewall") {
		t.Errorf("check: %q, %v", found, err)
	}
}
