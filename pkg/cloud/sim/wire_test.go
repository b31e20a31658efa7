package sim

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
)

// links returns the node's links besides lo, with MTU and MAC.
func links(t *testing.T, n *Node) string {
	t.Helper()
	return sh(t, n.Namespace(), `ip -o link show type veth | sed 's/^[0-9]*: \([^@]*\)@.* mtu \([0-9]*\) .*link.ether \([^ ]*\) .*/\1 \2 \3/' | sort`)
}

func TestANodeOfANetworkIsANamespaceWithItsENIConfigured(t *testing.T) {
	a := whole(t, newAccount(t, Options{Network: newNetwork(t, "t"), MTU: 1500}))
	n := a.Node("n1")
	if n.Namespace().Name != "t-n1" || n.Name() != "n1" {
		t.Errorf("node %s is namespace %s", n.Name(), n.Namespace().Name)
	}
	mac := a.Snapshot().Nodes["n1"][0].MAC
	if got, want := links(t, n), "eth0 1500 "+mac+"\n"; got != want {
		t.Errorf("the node has links %q, want %q", got, want)
	}
	for script, want := range map[string]string{
		"ip -4 route": "default via 10.0.0.1 dev eth0 \n10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.2 \n" +
			"10.0.0.1 dev eth0 proto dhcp scope link src 10.0.0.2 metric 1024 \n10.0.255.254 via 10.0.0.1 dev eth0 proto dhcp src 10.0.0.2 metric 1024 \n",
		"ip -6 route show default": "default via fd00:10::1 dev eth0 metric 1024 pref medium\n",
	} {
		if got := sh(t, n.Namespace(), script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if newAccount(t, Options{}).Node("n1").Namespace() != (Namespace{}) {
		t.Error("a node in memory has a namespace")
	}
}

func TestAnENIOfANetworkIsALink(t *testing.T) {
	a := whole(t, newAccount(t, Options{Network: newNetwork(t, "t")}))
	n := a.Node("n1")
	i := create(t, n, "t1", 2)
	without := "eth0 9001 " + a.Snapshot().Nodes["n1"][0].MAC + "\n"
	with := without + "eth1 9001 " + i.MAC + "\n"
	check := func(when, want string) {
		t.Helper()
		if got := links(t, n); got != want {
			t.Errorf("%s the node has links\n%swant\n%s", when, got, want)
		}
		must(t, a.Check())
	}
	check("with an ENI", with)
	must(t, a.Detach(i.ID))
	check("with an ENI detached", without)
	create(t, n, "t1", 2)
	check("with it attached again", with)
	usable(t, n, a.Snapshot().Nodes["n1"][1])
	must(t, a.TakeAway(i.Addresses[0]))
	if got := sh(t, a.o.Network.Router(), "ip route"); strings.Contains(got, i.Addresses[0].String()+" ") {
		t.Errorf("an address that was taken away is still delivered:\n%s", got)
	}
	must(t, n.DeleteInterface(t.Context(), i.ID))
	check("without the ENI", without)
}

func TestAnENIThatTheKernelRefusesIsFinishedLater(t *testing.T) {
	a := whole(t, newAccount(t, Options{Network: newNetwork(t, "t")}))
	n := a.Node("n1")
	sh(t, n.Namespace(), "ip link add eth1 type veth peer name other")
	_, err := n.CreateInterface(t.Context(), cloud.Create{Token: "t1", Subnet: "a", V4: 2})
	if list := a.Snapshot().Nodes["n1"]; err == nil || len(list) > 1 && list[1].Index >= 0 {
		t.Errorf("error %v, the node has %+v", err, list)
	}
	must(t, a.Check())
	sh(t, n.Namespace(), "ip link del eth1")
	create(t, n, "t1", 2)
	if list := a.Snapshot().Nodes["n1"]; len(list) != 2 {
		t.Errorf("the node has %+v", list)
	}
}
