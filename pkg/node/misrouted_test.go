package node

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
)

// A route of others in an ENI's routing table is neither replaced nor removed: it is
// told until it is gone, and then ours comes at once.
func TestARouteOfOthersInAnENIsTableStaysAndIsTold(t *testing.T) {
	n := heardNode(t)
	nettest.Run(t, "sh", "-c", "ip link set eth0 up; ip route add default dev eth0 table 101; ip route add 10.0.0.1 dev eth0 table 101; ip route add 192.0.2.7 dev eth0 table 100")
	defer nettest.Run(t, "sh", "-c", "ip route flush table 101; ip route flush table 100")
	table := func() string { return nettest.Run(t, "ip", "route", "show", "table", "101") }
	foreign := table()
	for range 2 {
		if lines, err := n.Sync(t.Context(), nil, nil); err != nil || strings.Contains(strings.Join(lines, "\n"), "table 101") {
			t.Fatalf("sync: %q, %v; want no route of ours beside those of others", lines, err)
		}
	}
	if is := table(); is != foreign {
		t.Errorf("table 101 was\n%sand is\n%s", foreign, is)
	}
	lines, err := n.Check(t.Context())
	check := strings.Join(lines, "\n")
	for _, want := range []string{
		"must fix: routing table 101 holds a route that is not enipool's, default dev eth0: what pods of the ENI eth1 send out of the node leaves by it",
		"remove it (ip route del default dev eth0 table 101)",
		"10.0.0.1 dev eth0: what pods of the ENI eth1 send to 10.0.0.1 leaves by it",
		"routing table 100 holds a route that is not enipool's, 192.0.2.7 dev eth0: what the node and its pods send to 192.0.2.7 leaves by it",
	} {
		if !strings.Contains(check, want) {
			t.Errorf("check lacks %q, %v:\n%s", want, err, check)
		}
	}
	nettest.Run(t, "ip", "route", "flush", "table", "101")
	select {
	case <-n.Watch.Faults():
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is heard of the route of others that goes")
	}
	if lines, err := n.Sync(t.Context(), nil, nil); err != nil || !strings.Contains(strings.Join(lines, "\n"), "add route default via 10.0.0.1 dev eth1 table 101") {
		t.Errorf("sync: %q, %v", lines, err)
	}
	nettest.Run(t, "ip", "route", "flush", "table", "100")
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("check: %q, %v", lines, err)
	}
}
