package check

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestWhoElseUsesOurRoutingTablesMustBeMovedFirst(t *testing.T) {
	nettest.Need(t)
	ns := nettest.NewNetns(t, "tables")
	of := func(tree install.Tree) (said string) {
		t.Helper()
		if err := ns.Do(func() error { said = texts(checkTables(tree, needs())); return nil }); err != nil {
			t.Fatal(err)
		}
		return said
	}
	fresh := newTree(t)
	ns.Run(t, "sh", "-c", "ip link set lo up; ip link add eth1 type veth peer name far; ip link set eth1 up; ip addr add 10.0.1.10/24 dev eth1")
	if got := of(fresh); got != "ok        nobody else uses the routing tables from 100 on\n" {
		t.Errorf("nobody does: %s", got)
	}
	ns.Run(t, "ip", "route", "add", "default", "via", "10.0.1.1", "dev", "eth1", "table", "101", "proto", "69") // ours
	ns.Run(t, "ip", "rule", "add", "priority", "1537", "from", "10.0.1.10", "lookup", "101", "proto", "69")
	if got := of(fresh); !strings.HasPrefix(got, "ok ") {
		t.Errorf("after an upgrade: %s", got)
	}
	ns.Run(t, "sh", "-c", `ip route add 10.8.0.0/16 via 10.0.1.1 dev eth1 table 101 proto static
		ip route add default dev eth1 table 100; ip route add default dev eth1 table 200; ip rule add priority 90 from 10.0.1.10 lookup 101`)
	want := map[string]string{
		"routing table 101, which is enipool's, holds a route of others, 10.8.0.0/16 via 10.0.1.1 dev eth1": "must fix ",
		"remove it (ip route del 10.8.0.0/16 via 10.0.1.1 dev eth1 table 101) and have what made it use a":  "must fix ",
		"a rule of others leads to routing table 101, which is enipool's: 90: from 10.0.1.10 lookup 101":    "warning ",
		"routing table 100, which is enipool's, holds a route of others, default dev eth1":                  "warning ",
		"routing table 200, which is enipool's, holds a route of others, default dev eth1":                  "warning ",
	}
	got := of(fresh)
	for text, what := range want {
		found := false
		for line := range strings.Lines(got) {
			found = found || strings.HasPrefix(line, what) && strings.Contains(line, text)
		}
		if !found {
			t.Errorf("no %q that says %q:\n%s", what, text, got)
		}
	}
	// An agent that serves the node must be able to start again.
	if got := of(newTree(t, install.ConfDir+"/"+install.ConflistName)); strings.Contains(got, "must fix") {
		t.Errorf("where enipool serves already: %s", got)
	}
}
