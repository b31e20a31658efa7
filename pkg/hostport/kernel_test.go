package hostport_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/podrecord"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { nettest.Main(m) }

var at = netip.MustParseAddr

// filtered is a node with a packet filter in a network namespace of its own.
type filtered struct {
	hostport.Node
	t  *testing.T
	fw netconf.Firewall
}

// each runs the test with both packet filters.
func each(t *testing.T, test func(n filtered)) {
	for _, filter := range []ipam.Firewall{ipam.Nftables, ipam.Iptables} {
		t.Run(fmt.Sprint(filter), func(t *testing.T) { test(newFiltered(t, filter)) })
	}
}

// newFiltered never unlocks the thread, so the namespace ends with the test.
func newFiltered(t *testing.T, filter ipam.Firewall) filtered {
	nettest.Need(t)
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	nic := eni.Interface{ID: "eni-0", Device: "eth0", MTU: 1500, V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.10/24"), Gateway: at("10.0.0.1")},
		V6: eni.Net{Primary: netip.MustParsePrefix("fd00::10/64"), Gateway: at("fd00::1")}}
	s := &ipam.State{ENIs: []eni.Interface{nic}, Settings: ipam.Settings{Firewall: filter, Routing: ipam.Rule, MarkMask: ipam.DefaultMarkMask,
		Families: []eni.Family{eni.IPv4, eni.IPv6}}}
	n := filtered{hostport.Node{Firewall: filter, Node4: at("10.0.0.10"), Node6: at("fd00::10"), Records: podrecord.Beside(t.TempDir() + "/node.cache")}, t, netconf.NewFirewall(s)}
	var err error
	if n.Lock, err = n.Records.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Lock.Unlock)
	n.must(n.agent())
	return n
}

func (n filtered) must(lines []string, err error) {
	n.t.Helper()
	if err != nil || len(lines) > 0 && n.t.Failed() {
		n.t.Fatal(lines, err)
	}
}

// agent makes the packet filter hold what the records say and returns what it changed.
func (n filtered) agent() ([]string, error) {
	records, err := n.Records.All()
	if err != nil {
		return nil, err
	}
	n.fw.Ports = hostport.Wanted(records)
	did, err := firewall.Apply(n.t.Context(), n.fw)
	return did.Lines, err
}

// isRight wants the agent to have nothing to do, and each of the pods checked.
func (n filtered) isRight(pods ...podrecord.Record) {
	n.t.Helper()
	for _, p := range pods {
		r, found, err := n.Records.Read(p.Key)
		if err != nil || !found {
			n.t.Fatalf("record of %s: %v, %v", p.Key, found, err)
		}
		if lines, err := n.Check(r); err != nil || len(lines) > 0 {
			n.t.Errorf("check of %s: %q, %v", r.Key, lines, err)
		}
	}
	if lines, err := n.agent(); err != nil || len(lines) > 0 {
		n.t.Errorf("the agent has to do: %q, %v", lines, err)
	}
}

func (n filtered) open(r podrecord.Record) podrecord.Record {
	n.t.Helper()
	r, err := n.Reserve(r)
	if err == nil {
		err = n.Open(r)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return r
}

func (n filtered) close(r podrecord.Record) {
	n.t.Helper()
	late, err := n.Close(r)
	late()
	if err != nil {
		n.t.Fatal(err)
	}
}

// leads returns what the kernel has of a TCP port of the node.
func (n filtered) leads(port uint16) string {
	n.t.Helper()
	script := fmt.Sprintf(`nft list ruleset 2>/dev/null | grep -oE "tcp \. %d : [0-9a-f.:]+ \. [0-9]+" | sed 's/.* : //; s/ \. /:/' | sort`, port)
	if n.Firewall == ipam.Iptables {
		script = fmt.Sprintf(`(iptables-save; ip6tables-save) 2>/dev/null | grep -- "--dport %d " | grep -oE "destination .*" | sed 's/destination //; s/[][]//g' | sort`, port)
	}
	return strings.Join(strings.Fields(nettest.Run(n.t, "sh", "-c", script)), " ")
}

func network(sandbox, name string, addrs ...netip.Addr) podrecord.Record {
	return podrecord.Record{Key: eni.Key{Network: name, Container: sandbox, IfName: "eth0"}, Pod: sandbox, Addrs: addrs}
}

func tcp(r podrecord.Record, first, count uint16) podrecord.Record {
	for i := range count {
		r.Ports = append(r.Ports, netconf.HostPort{Transport: netconf.TCP, Port: first + i, PodPort: 80})
	}
	return r
}

// Two networks of one pod get the same mappings: that is no conflict, in whatever order
// they go, and with the agent at work in between.
func TestTwoNetworksOfAPodWithTheSamePorts(t *testing.T) {
	each(t, func(n filtered) {
		// The names of the records' files give no order: try both.
		for _, names := range [][2]string{{"pods", "more"}, {"more", "pods"}, {"a", "b"}, {"b", "a"}} {
			first := tcp(network("pod", names[0], at("10.0.0.5")), 80, 2)
			second := tcp(network("pod", names[1], at("10.0.0.6"), at("fd00::6")), 80, 1)
			for _, firstGoesFirst := range []bool{true, false} {
				a, b := n.open(first), n.open(second)
				n.isRight(a, b)
				if got := n.leads(80); got != "10.0.0.5:80 fd00::6:80" {
					t.Errorf("%v: port 80 leads to %s", names, got)
				}
				if firstGoesFirst {
					n.close(a)
					n.isRight(b)
					if got := n.leads(80) + n.leads(81); got != "10.0.0.6:80 fd00::6:80" {
						t.Errorf("%v: without the first network port 80 leads to %s", names, got)
					}
					n.close(a) // DEL is called again
					n.close(b)
				} else {
					n.close(b)
					n.isRight(a)
					if got := n.leads(80); got != "10.0.0.5:80" {
						t.Errorf("%v: without the second network port 80 leads to %s", names, got)
					}
					n.close(a)
				}
				n.isRight()
				if got := n.leads(80) + n.leads(81); got != "" {
					t.Errorf("%v: left over: %s", names, got)
				}
			}
		}
	})
}

// What somebody removed from the packet filter no DEL fails for, and the network that
// stays gets its port from the agent.
func TestThePortOfANetworkThatGoesIsInheritedFromADamagedTable(t *testing.T) {
	each(t, func(n filtered) {
		a, b := n.open(tcp(network("pod", "pods", at("10.0.0.5")), 80, 1)), n.open(tcp(network("pod", "more", at("10.0.0.6")), 80, 1))
		nettest.Run(t, "nft", "flush", "ruleset")
		n.close(a)
		n.must(n.agent())
		n.isRight(b)
		if got := n.leads(80); got != "10.0.0.6:80" {
			t.Errorf("port 80 leads to %s", got)
		}
	})
}

// A map that the kernel can't be asked about proves nothing: the record stays for the next
// DEL and for the agent.
func TestAPortThatCannotBeClosedKeepsItsRecord(t *testing.T) {
	n := newFiltered(t, ipam.Nftables)
	a := n.open(tcp(network("pod", "pods", at("10.0.0.5")), 80, 1))
	nettest.Run(t, "nft", "flush ruleset; add table inet "+netconf.NftPodsName+"; add map inet "+netconf.NftPodsName+" hostport4 { type inet_service : ipv4_addr; }")
	late, err := n.Close(a)
	late()
	if err == nil {
		t.Error("close succeeds")
	}
	if _, found, err := n.Records.Read(a.Key); !found || err != nil {
		t.Errorf("the record: found %v, %v", found, err)
	}
	nettest.Run(t, "nft", "flush", "ruleset")
	n.close(a)
}

// Thousands of ports, of one pod and of many, come and go like a few.
func TestThousandsOfPorts(t *testing.T) {
	each(t, func(n filtered) {
		const many = 3000
		big := n.open(tcp(network("big", "pods", at("10.0.0.5"), at("fd00::5")), 10000, many))
		n.isRight(big)
		if a, b := n.leads(10000), n.leads(10000+many-1); a != "10.0.0.5:80 fd00::5:80" || a != b {
			t.Errorf("the first port leads to %s, the last to %s", a, b)
		}
		var pods []podrecord.Record
		for i := range uint16(100) {
			pod := network(fmt.Sprint("pod", i), "pods", netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}))
			pods = append(pods, tcp(pod, 20000+30*i, 30))
		}
		// The last is added as ever; the others are there as after a reboot.
		for _, p := range pods[:99] {
			if err := n.Records.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		nettest.Run(t, "nft", "flush", "ruleset")
		n.must(n.agent())
		n.open(pods[99])
		n.isRight(big, pods[0], pods[98], pods[99])
		if got := n.leads(20000 + 30*99 + 29); got != "10.0.1.99:80" {
			t.Errorf("the last port of the last pod leads to %s", got)
		}
		n.close(big)
		if got := n.leads(10000) + n.leads(10000+many-1); got != "" {
			t.Errorf("left of the big pod: %s", got)
		}
		n.isRight(pods[0], pods[99])
		// A damaged map is mended in the same way.
		if n.Firewall == ipam.Nftables {
			nettest.Run(t, "nft", "flush", "map", "inet", netconf.NftPodsName, "hostport4")
			n.must(n.agent())
			n.isRight(pods...)
		}
	})
}
