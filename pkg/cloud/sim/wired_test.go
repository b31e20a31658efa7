package sim

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
)

// newWired is an account on a Network of two nodes.
func newWired(t *testing.T, o Options) *Account {
	t.Helper()
	nettest.Need(t)
	n, err := NewNetwork("api", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("fd00::/56")})
	must(t, err)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Network = n
	a := newTestAccount(t, o)
	_, err = a.AddInstance(Instance{ID: "i-2", Node: "n2", Type: "small", Subnet: "a", V6: 1})
	must(t, err)
	return a
}

// in runs a command in a node's namespace.
func inNode(t *testing.T, node, command string) (string, error) {
	t.Helper()
	out, err := exec.Command("ip", append([]string{"netns", "exec", "api-" + node}, strings.Fields(command)...)...).CombinedOutput()
	return string(out), err
}

// waitLocal returns when the node takes packets for an address that it was given: the
// kernel makes an IPv6 address local in the background.
func waitLocal(t *testing.T, node string, addr netip.Addr) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		out, _ := inNode(t, node, "ip route get "+addr.String())
		if strings.HasPrefix(out, "local ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not local: %s", addr, out)
		}
	}
}

func TestAnAttachedENIIsALinkOfItsInstance(t *testing.T) {
	clock := newClock()
	a := newWired(t, Options{Clock: clock, AttachTime: time.Second, DetachTime: time.Second})
	one := makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 2, BlocksV4: 1, CountV6: 1, BlocksV6: 1}})
	at, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 2})
	must(t, err)
	must(t, a.Check())
	if out, err := inNode(t, "i", "ip link show eth2"); err == nil {
		t.Errorf("while it is attaching there is\n%s", out)
	}
	clock.now = clock.now.Add(time.Second)
	must(t, a.Check())
	out, err := inNode(t, "i", "ip link show eth2")
	if err != nil || !strings.Contains(out, one.MAC) || !strings.Contains(out, "mtu 9001") {
		t.Errorf("the link of MAC %s is %s, %v", one.MAC, out, err)
	}
	got, err := give(t, a, one.ID, AddressRequest{CountV4: 1, CountV6: 1})
	must(t, err)
	must(t, a.Check())
	must(t, takeBack(t, a, one.ID, Got{V4: got.V4, V6: got.V6, Prefixes: one.Prefixes}))
	must(t, a.Check())
	must(t, detachENI(t, a, at.ID))
	if out, err := inNode(t, "i", "ip link show eth2"); err == nil {
		t.Errorf("while it is detaching there is\n%s", out)
	}
	clock.now = clock.now.Add(time.Second)
	must(t, a.Check())
	must(t, removeENI(t, a, one.ID))
	must(t, a.Check())
}

func TestANodeHasTheIPv6AddressesOfItsENIAlone(t *testing.T) {
	a := newWired(t, Options{})
	var own netip.Addr
	a.View(0, func(tx *Tx) { own = tx.Interfaces()[1].V6[0] })
	for node, want := range map[string]string{"i": "", "n2": own.String() + "/64"} {
		out, err := inNode(t, node, "ip -6 -o addr show dev eth0 scope global")
		if err != nil || !strings.Contains(out, want) || want == "" && out != "" {
			t.Errorf("node %s has %s, want %q", node, out, want)
		}
		out, err = inNode(t, node, "ip -6 route show default")
		if err != nil || (want == "") != (out == "") {
			t.Errorf("node %s routes %s, has %q", node, out, want)
		}
	}
}

func TestTheIPv6AddressOfANodeCanBeUnassigned(t *testing.T) {
	a := newWired(t, Options{})
	var own Interface
	a.View(0, func(tx *Tx) { own = tx.Interfaces()[1] })
	must(t, takeBack(t, a, own.ID, Got{V6: own.V6}))
	must(t, a.Check())
}

func TestAddressesOfAnENICarryTraffic(t *testing.T) {
	a := newWired(t, Options{})
	one := makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 1, BlocksV4: 1, CountV6: 1, BlocksV6: 1}})
	_, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	must(t, err)
	// The node's side of an ENI's addresses is the agent's; this is the least of it.
	for _, command := range []string{"ip link set eth1 up", "sysctl -w net.ipv4.conf.eth1.rp_filter=2",
		"ip route add 10.0.0.1 dev eth1 table 101", "ip route add default via 10.0.0.1 dev eth1 table 101",
		"ip -6 route add fd00::1 dev eth1 table 101", "ip -6 route add default via fd00::1 dev eth1 table 101"} {
		if out, err := inNode(t, "i", command); err != nil {
			t.Fatalf("%s: %s", command, out)
		}
	}
	for _, pod := range []netip.Addr{one.V4[0], one.Prefixes[0].Addr().Next(), one.V6[0], one.Prefixes[1].Addr().Next()} {
		family, nodad := "-4", ""
		if pod.Is6() {
			family, nodad = "-6", " nodad"
		}
		for _, command := range []string{"ip addr add " + pod.String() + " dev lo" + nodad,
			"ip " + family + " rule add from " + pod.String() + " lookup 101"} {
			if out, err := inNode(t, "i", command); err != nil {
				t.Fatalf("%s: %s", command, out)
			}
		}
		waitLocal(t, "i", pod)
		if out, err := inNode(t, "n2", "ping -c1 -W10 "+pod.String()); err != nil {
			t.Errorf("ping %s: %s", pod, out)
		}
	}
	must(t, takeBack(t, a, one.ID, Got{V4: one.V4}))
	if out, err := inNode(t, "n2", "ping -c1 -W1 "+one.V4[0].String()); err == nil {
		t.Errorf("an address that was unassigned answers: %s", out)
	}
}

func TestWhatTheNetworkDoesBesidesIsNoticed(t *testing.T) {
	a := newWired(t, Options{})
	one := makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 2}})
	_, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	must(t, err)
	must(t, a.Check())
	must(t, a.o.Network.Unassign(one.ID, one.V4[0]))
	if err := a.Check(); err == nil || !strings.Contains(err.Error(), one.V4[0].String()) {
		t.Errorf("an address without a route: %v", err)
	}
	must(t, a.o.Network.Assign(one.ID, one.V4[0], netip.MustParseAddr("10.0.0.50")))
	if err := a.Check(); err == nil || !strings.Contains(err.Error(), "10.0.0.50") {
		t.Errorf("a route too many: %v", err)
	}
	must(t, a.o.Network.Unassign(one.ID, netip.MustParseAddr("10.0.0.50")))
}

func TestALinkThatCantBeMadeLeavesTheENIAvailable(t *testing.T) {
	clock := newClock()
	a := newWired(t, Options{Clock: clock})
	if out, err := inNode(t, "i", "ip link add eth1 type veth peer name other"); err != nil {
		t.Fatal(out)
	}
	one := makeENI(t, a, Create{Subnet: "a"})
	_, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	wantReason(t, err, Unavailable)
	if i, _ := truthOf(t, a, one.ID); i.Status != Available || i.Attachment != nil {
		t.Errorf("it is %+v", i)
	}
	must(t, a.Check())
	a.SetTimes(0, time.Second, 0)
	_, err = attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	must(t, err)
	clock.now = clock.now.Add(time.Second)
	if err := a.Check(); err == nil || !strings.Contains(err.Error(), "eth1") {
		t.Errorf("nobody waited for the link, and Check says %v", err)
	}
	a.broken = nil
}
