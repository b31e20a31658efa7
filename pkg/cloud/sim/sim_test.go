package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// The VPC of the tests: subnet A with the first ENI of both nodes and the second
// of n1, subnet B with the second of n2.
//
//	n1: eni-1 eth0 A .10   eni-2 eth1 A .20
//	n2: eni-3 eth0 A .30   eni-4 eth1 B .40
var (
	vpcCIDRs = prefixes("10.0.0.0/16", "fd00:10::/56")
	subnets  = []eni.Subnet{
		{ID: "a4", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
		{ID: "a6", CIDR: netip.MustParsePrefix("fd00:10::/64"), Gateway: netip.MustParseAddr("fd00:10::1")},
		{ID: "b4", CIDR: netip.MustParsePrefix("10.0.1.0/24"), Gateway: netip.MustParseAddr("10.0.1.1")},
		{ID: "b6", CIDR: netip.MustParsePrefix("fd00:10:0:1::/64"), Gateway: netip.MustParseAddr("fd00:10:0:1::1")},
	}
	enis = []struct {
		node string
		eni  eni.Interface
	}{
		{"n1", iface("eni-1", 0, "10.0.0.10/24", "fd00:10::10/64")},
		{"n1", iface("eni-2", 1, "10.0.0.20/24", "fd00:10::20/64")},
		{"n2", iface("eni-3", 0, "10.0.0.30/24", "fd00:10::30/64")},
		{"n2", iface("eni-4", 1, "10.0.1.40/24", "fd00:10:0:1::40/64")},
	}
)

// iface is a dual-stack ENI whose gateways are number 1 of its subnets.
func iface(id string, index int, v4, v6 string) eni.Interface {
	in := func(s string) eni.Net {
		p := netip.MustParsePrefix(s)
		return eni.Net{Primary: p, Gateway: p.Masked().Addr().Next()}
	}
	return eni.Interface{ID: id, Index: index, Device: fmt.Sprintf("eth%d", index), MTU: 9001, V4: in(v4), V6: in(v6)}
}

// newNetwork makes an empty VPC and checks at the end of the test that its Close
// leaves nothing.
func newNetwork(t *testing.T, name string) *Network {
	t.Helper()
	nettest.Need(t)
	n, err := NewNetwork(name, vpcCIDRs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		for _, left := range namespaces(t) {
			if strings.HasPrefix(left, name+"-") {
				t.Errorf("namespace %s is left over", left)
			}
		}
	})
	return n
}

// newVPC makes the VPC of the tests with its nodes; the first ENI of each is
// configured.
func newVPC(t *testing.T, name string) (n *Network, n1, n2 Namespace) {
	t.Helper()
	n = newNetwork(t, name)
	for _, s := range subnets {
		must(t, n.AddSubnet(s))
	}
	var err error
	if n1, err = n.AddNode("n1"); err != nil {
		t.Fatal(err)
	}
	if n2, err = n.AddNode("n2"); err != nil {
		t.Fatal(err)
	}
	for _, e := range enis {
		if _, err := n.Attach(e.node, e.eni); err != nil {
			t.Fatal(err)
		}
		if e.eni.Index == 0 {
			must(t, n.DHCP(e.eni.ID))
		}
	}
	return n, n1, n2
}

// secondENI configures the node's eth1 by policy routing, as an agent would do.
func secondENI(t *testing.T, node Namespace, i eni.Interface) {
	t.Helper()
	for _, n := range i.Nets() {
		sh(t, node, fmt.Sprintf(`set -e
			ip address add %[1]s dev %[4]s noprefixroute nodad
			until ip route get %[2]s | grep -q ^local; do sleep 0.01; done
			ip %[5]s route add %[3]s dev %[4]s table 101
			ip %[5]s route add default via %[3]s dev %[4]s table 101
			ip %[5]s rule add from %[2]s lookup 101`,
			n.Primary, n.Primary.Addr(), n.Gateway, i.Device, dash(n.Gateway)))
	}
}

func dash(a netip.Addr) string {
	if a.Is4() {
		return "-4"
	}
	return "-6"
}

// addLocal gives the namespace an address, and returns when it takes packets: the kernel
// makes an IPv6 address local in the background.
func addLocal(t *testing.T, ns Namespace, a netip.Addr) {
	t.Helper()
	sh(t, ns, fmt.Sprintf("ip address add %[1]s dev lo nodad && until ip route get %[1]s | grep -q ^local; do sleep 0.01; done", a))
}

// sh runs a script in the namespace and returns what it prints.
func sh(t *testing.T, ns Namespace, script string) string {
	t.Helper()
	var out []byte
	err := ns.Do(func() (err error) {
		out, err = exec.Command("sh", "-c", script).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("in %s: %s: %v\n%s", ns.Name, script, err, out)
	}
	return string(out)
}

// ping fails the test unless an address answers.
func ping(t *testing.T, ns Namespace, options string, to netip.Addr) {
	t.Helper()
	sh(t, ns, fmt.Sprintf("ping -n -q -c1 -W2 %s %s", options, to))
}

// inbox is a socket in a namespace that takes whatever comes to its port.
type inbox struct {
	*net.UDPConn
	port uint16
}

func listen(t *testing.T, ns Namespace) inbox {
	t.Helper()
	var c *net.UDPConn
	must(t, ns.Do(func() (err error) {
		c, err = net.ListenUDP("udp", nil)
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return inbox{c, c.LocalAddr().(*net.UDPAddr).AddrPort().Port()}
}

// next returns the text that came next and its sender.
func (in inbox) next(t *testing.T) (string, netip.Addr) {
	t.Helper()
	must(t, in.SetReadDeadline(time.Now().Add(10*time.Second)))
	buf := make([]byte, 100)
	size, from, err := in.ReadFromUDPAddrPort(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:size]), from.Addr().Unmap()
}

// send sends text from one of the namespace's addresses. What is sent after it
// on the same way can't arrive before it.
func send(t *testing.T, ns Namespace, from, to netip.Addr, in inbox, text string) {
	t.Helper()
	must(t, ns.Do(func() error {
		c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)),
			net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, in.port)))
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte(text))
		return err
	}))
}

// namespaces returns the names of all named namespaces.
func namespaces(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(isolate.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func prefixes(texts ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range texts {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func addrs(texts ...string) []netip.Addr {
	var as []netip.Addr
	for _, s := range texts {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}
