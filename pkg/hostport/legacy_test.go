package hostport_test

import (
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/podrecord"
)

// legacyTables returns the nat tables that iptables-legacy has in the kernel.
func legacyTables(t *testing.T) (have []string) {
	t.Helper()
	for _, names := range []string{"ip_tables_names", "ip6_tables_names"} {
		text, err := os.ReadFile("/proc/thread-self/net/" + names)
		if err == nil && slices.Contains(strings.Fields(string(text)), "nat") {
			have = append(have, names)
		}
	}
	return have
}

// withBothVariants is a node that keeps its ports in iptables-nft, on a machine that has
// both variants, and a pod with a port in each family.
func withBothVariants(t *testing.T) (filtered, podrecord.Record) {
	for _, program := range []string{"iptables-legacy", "ip6tables-legacy"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs the legacy variant of iptables:", err)
		}
	}
	n := newFiltered(t, ipam.Iptables)
	if len(legacyTables(t)) > 0 {
		t.Skip("iptables is the legacy variant here")
	}
	pod := n.open(tcp(network("a", "pods", at("10.0.0.5"), at("fd00::5")), 8080, 1))
	return n, pod
}

func found(t *testing.T, pods ...podrecord.Record) int {
	t.Helper()
	have, err := hostport.Found(ipam.Iptables, pods)
	if err != nil {
		t.Errorf("found: %v", err)
	}
	return len(have)
}

// Whoever looks at host ports makes no table of iptables-legacy, whether there are chains
// of ours or somebody flushed them.
func TestReadingPortsMakesNoLegacyTables(t *testing.T) {
	n, pod := withBothVariants(t)
	if got := found(t, pod); got != 2 {
		t.Errorf("found ports of %d addresses, want 2", got)
	}
	n.isRight(pod)
	nettest.Run(t, "nft", "flush", "ruleset")
	if got := found(t, pod); got != 0 {
		t.Errorf("found ports of %d addresses in an empty packet filter", got)
	}
	if lines, err := n.Check(pod); err == nil && len(lines) == 0 {
		t.Error("the check misses nothing in an empty packet filter")
	}
	if err := n.Open(pod); err == nil {
		t.Error("ports were opened without a chain")
	}
	n.close(pod)
	if have := legacyTables(t); len(have) > 0 {
		t.Errorf("nat tables were made: %s", have)
	}
}

// A table of iptables-legacy that others made says nothing of chains of ours, and needs no
// program that this node does not have.
func TestLegacyTablesOfOthersNeedNoLegacyProgram(t *testing.T) {
	n, pod := withBothVariants(t)
	nettest.Run(t, "iptables-legacy", "-t", "nat", "-S")
	nettest.Run(t, "ip6tables-legacy", "-t", "nat", "-S")
	nettest.Run(t, "ip6tables-legacy", "-t", "nat", "-N", "X-"+netconf.IptPortChain)
	if have := legacyTables(t); len(have) != 2 {
		t.Skipf("this kernel has no legacy nat tables of both families: %s", have)
	}
	legacy, err := exec.LookPath("ip6tables-legacy")
	if err != nil {
		t.Fatal(err)
	}
	nettest.HideLegacyIptables(t)
	if _, err := exec.LookPath(legacy); err == nil {
		t.Fatal("the legacy program is not hidden")
	}
	if got := found(t, pod); got != 2 {
		t.Errorf("found ports of %d addresses, want 2", got)
	}
	nettest.Run(t, "nft", "flush", "ruleset")
	if got := found(t, pod); got != 0 {
		t.Errorf("found ports of %d addresses in an empty packet filter", got)
	}
	n.close(pod)
}

// A chain of ours in a table that nobody here can read may hold pods' ports. Families
// without pods are not asked.
func TestPortsInAChainThatNobodyCanReadAreNotTakenForNone(t *testing.T) {
	n, pod := withBothVariants(t)
	nettest.Run(t, "nft", "flush", "ruleset")
	nettest.Run(t, "ip6tables-legacy", "-t", "nat", "-N", netconf.IptPortChain)
	nettest.HideLegacyIptables(t)
	if have, err := hostport.Found(ipam.Iptables, []podrecord.Record{pod}); err == nil {
		t.Errorf("found %v in a chain that can't be read", have)
	}
	if late, err := n.Close(pod); err == nil {
		late()
		t.Error("ports were called closed in a chain that can't be read")
	}
	pod.Addrs = []netip.Addr{at("10.0.0.5")}
	if got := found(t, pod); got != 0 {
		t.Errorf("found ports of %d addresses of IPv4", got)
	}
}
