package sim

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// What one ENI with one secondary address of each family leaves in the router,
// and the source check.
const (
	wantRoutes = `default via 203.0.113.2 dev internet
blackhole 10.0.0.0/16
10.0.0.10 dev p1 scope link
10.0.0.11 dev p1 scope link
203.0.113.0/24 dev internet proto kernel scope link src 203.0.113.1
2001:db8:ffff::/64 dev internet proto kernel metric 256 pref medium
fd00:10::10 dev p1 metric 1024 pref medium
fd00:10::11 dev p1 metric 1024 pref medium
blackhole fd00:10::/56 dev lo metric 1024 pref medium
default via 2001:db8:ffff::2 dev internet metric 1024 pref medium
`
	wantNeighbours = `10.0.0.10 dev p1 lladdr 02:35:81:67:35:b9 PERMANENT
10.0.0.11 dev p1 lladdr 02:35:81:67:35:b9 PERMANENT
fd00:10::10 dev p1 lladdr 02:35:81:67:35:b9 PERMANENT
fd00:10::11 dev p1 lladdr 02:35:81:67:35:b9 PERMANENT
`
	wantProxies = `fd00:10::10 dev p2 proxy
fd00:10::11 dev p2 proxy
fd00:10::20 dev p1 proxy
`
	wantRules = `table inet vpc {
	chain sources {
		type filter hook prerouting priority raw; policy accept;
		ip6 saddr fe80::/10 accept
		fib saddr . iif oif missing drop
	}
}
`
)

func TestRouterHoldsWhatItsENIsHave(t *testing.T) {
	n := newNetwork(t, "t")
	for _, s := range subnets[:2] {
		must(t, n.AddSubnet(s))
	}
	if _, err := n.AddNode("n1"); err != nil {
		t.Fatal(err)
	}
	attach := func(i eni.Interface) {
		if _, err := n.Attach("n1", i); err != nil {
			t.Fatal(err)
		}
	}
	attach(enis[0].eni)
	must(t, n.Assign("eni-1", addrs("10.0.0.11", "fd00:10::11")...))
	dump := func(script string) string {
		return strings.ReplaceAll(sh(t, n.Router(), script), " \n", "\n")
	}
	for script, want := range map[string]string{
		"ip route; ip -6 route | grep -v ^fe80":                         wantRoutes,
		"ip neigh show nud permanent | sort":                            wantNeighbours,
		"ip neigh show proxy":                                           "",
		"ip -br -4 address show p1 | grep -o ' [0-9.]*/.*'":             " 10.0.0.1/32\n",
		"ip -br -6 address show p1 | grep -ow 'fd00:[0-9a-f:]*/[0-9]*'": "fd00:10::1/128\n",
		"ip -d link show p1 | grep -o -e ' mtu [0-9]* ' -e 'alias .*'":  " mtu 9001\nalias eni-1\n",
		"nft list ruleset":                                              wantRules,
	} {
		if diff := cmp.Diff(want, dump(script)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", script, diff)
		}
	}
	attach(enis[1].eni)
	if diff := cmp.Diff(wantProxies, dump("ip neigh show proxy | sort")); diff != "" {
		t.Errorf("proxies with a second ENI (-want +got):\n%s", diff)
	}
	must(t, n.Detach("eni-2"))
	must(t, n.Unassign("eni-1", addrs("10.0.0.11", "fd00:10::11")...))
	without := regexp.MustCompile(`(?m)^.*(10\.0\.0|fd00:10:):11 .*\n|^10\.0\.0\.11 .*\n`)
	for script, want := range map[string]string{
		"ip route; ip -6 route | grep -v ^fe80": without.ReplaceAllString(wantRoutes, ""),
		"ip neigh show nud permanent | sort":    without.ReplaceAllString(wantNeighbours, ""),
		"ip neigh show proxy":                   "",
	} {
		if diff := cmp.Diff(want, dump(script)); diff != "" {
			t.Errorf("after Unassign: %s (-want +got):\n%s", script, diff)
		}
	}
}

func TestAttachGivesTheNodeABareLink(t *testing.T) {
	n := newNetwork(t, "t")
	must(t, n.AddSubnet(subnets[0]))
	node, err := n.AddNode("n1")
	must(t, err)
	if got := sh(t, node, "ip -br link | cut -d' ' -f1"); got != "lo\n" {
		t.Errorf("links of a new node: %q, want lo alone", got)
	}
	i := enis[0].eni
	i.V6 = eni.Net{}
	mac, err := n.Attach("n1", i)
	must(t, err)
	got := sh(t, node, "ip link show eth0; ip -4 address show eth0; ip route")
	for _, want := range []string{mac.String(), "state UP", "mtu 9001"} {
		if !strings.Contains(got, want) {
			t.Errorf("eth0 has no %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "10.0.0.") {
		t.Errorf("eth0 is configured:\n%s", got)
	}
}

func TestTwoNetworksWithTheSameAddressesDoNotMeet(t *testing.T) {
	_, a1, _ := newVPC(t, "a")
	b, b1, _ := newVPC(t, "b")
	must(t, b.Detach("eni-3"))
	ping(t, a1, "", netip.MustParseAddr("10.0.0.30"))
	in := listen(t, b1)
	send(t, a1, netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("10.0.0.10"), in, "of network a")
	send(t, b.Internet(), InternetV4, netip.MustParseAddr("10.0.0.10"), in, "of network b")
	if text, _ := in.next(t); text != "of network b" {
		t.Errorf("node of b got %q", text)
	}
}

func TestCloseRemovesLinksEvenOfNamespacesInUse(t *testing.T) {
	n, n1, _ := newVPC(t, "t")
	f, err := os.Open(n1.Path())
	must(t, err)
	defer f.Close()
	must(t, n.Close())
	h, err := netlink.NewHandleAt(netns.NsHandle(f.Fd()), unix.NETLINK_ROUTE)
	must(t, err)
	defer h.Close()
	links, err := h.LinkList()
	must(t, err)
	if len(links) != 1 || links[0].Attrs().Name != "lo" {
		t.Errorf("links after Close: %v, want lo alone", links)
	}
	if left := namespaces(t); len(left) != 0 {
		t.Errorf("namespaces after Close: %v", left)
	}
	must(t, n.Close())
	if _, err := n.AddNode("late"); err == nil {
		t.Error("AddNode after Close succeeds")
	}
}

func TestFailedNewNetworkLeavesNothing(t *testing.T) {
	nettest.Need(t)
	other := namespaceNamed("t-internet")
	must(t, other.Create())
	defer other.Remove()
	_, err := NewNetwork("t", vpcCIDRs)
	if !errors.Is(err, os.ErrExist) || !strings.Contains(err.Error(), "ip netns del t-internet") {
		t.Errorf("NewNetwork over a namespace of another: %v", err)
	}
	if diff := cmp.Diff([]string{"t-internet"}, namespaces(t)); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

func TestFailedAttachLeavesNothing(t *testing.T) {
	n, _, _ := newVPC(t, "t")
	state := func() string {
		return sh(t, n.Router(), "ip -br link; ip route; ip -6 route | grep -v ^fe80; ip neigh show proxy; ip neigh show nud permanent")
	}
	before := state()
	taken := iface("eni-9", 5, "10.0.0.90/24", "fd00:10::30/64") // its IPv6 address is eni-3's
	if _, err := n.Attach("n1", taken); err == nil || !strings.Contains(err.Error(), "address fd00:10::30 is of ENI eni-3") {
		t.Errorf("Attach with another's address: %v", err)
	}
	if _, err := n.Attach("n1", iface("eni-9", 0, "10.0.0.90/24", "fd00:10::90/64")); !errors.Is(err, os.ErrExist) {
		t.Errorf("Attach with a device that the node has: %v", err)
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("router after failed Attach (-before +after):\n%s", diff)
	}
	if _, err := n.Attach("n1", iface("eni-9", 5, "10.0.0.90/24", "fd00:10::90/64")); err != nil {
		t.Errorf("Attach after the failures: %v", err)
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	n, _, _ := newVPC(t, "t")
	node := func(name string) error { _, err := n.AddNode(name); return err }
	attach := func(i eni.Interface) error { _, err := n.Attach("n1", i); return err }
	subnet := func(cidr, gateway string) error {
		return n.AddSubnet(eni.Subnet{ID: "x", CIDR: netip.MustParsePrefix(cidr), Gateway: netip.MustParseAddr(gateway)})
	}
	network := func(name string, cidrs ...string) error { _, err := NewNetwork(name, prefixes(cidrs...)); return err }
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"network name", network("a/b"), `create VPC: name "a/b": must be one word of 1 to 64 bytes without a slash`},
		{"VPC of a host address", network("x", "203.0.0.1/8"), "create VPC x: CIDR 203.0.0.1/8 is no network address"},
		{"VPC over the internet", network("x", "203.0.112.0/20"), "create VPC x: CIDR 203.0.112.0/20 overlaps 203.0.113.0/24"},
		{"subnet outside", subnet("10.1.0.0/24", "10.1.0.1"), "add subnet x: 10.1.0.0/24 is not inside the VPC's [10.0.0.0/16 fd00:10::/56]"},
		{"subnet twice", subnet("10.0.0.0/20", "10.0.0.1"), "add subnet x: 10.0.0.0/20 overlaps 10.0.0.0/24 of subnet a4"},
		{"gateway outside", subnet("10.0.9.0/24", "10.0.8.1"), "add subnet x: gateway 10.0.8.1 is not inside 10.0.9.0/24"},
		{"node twice", node("n1"), "add node n1: the VPC has one of that name"},
		{"node instead of the router", node("vpc"), "add node vpc: the VPC has one of that name"},
		{"ENI twice", attach(enis[0].eni), "attach ENI eni-1 to node n1: an ENI of that id exists"},
		{"ENI in no subnet", attach(iface("x", 2, "10.0.7.1/24", "fd00:10::77/64")), "attach ENI x to node n1: eni x: gateway 10.0.7.1: is the primary address itself"},
		{"ENI in an unknown subnet", attach(iface("x", 2, "10.0.7.7/24", "fd00:10::77/64")), "attach ENI x to node n1: no subnet 10.0.7.0/24 with gateway 10.0.7.1"},
		{"gateway", n.Assign("eni-1", addrs("10.0.0.1")...), "assign addresses to ENI eni-1: address 10.0.0.1 is the gateway of its subnet"},
		{"no subnet", n.Assign("eni-1", addrs("10.0.7.9")...), "assign addresses to ENI eni-1: address 10.0.7.9 is in no subnet of the VPC"},
		{"another's address", n.Assign("eni-1", addrs("10.0.0.30")...), "assign addresses to ENI eni-1: address 10.0.0.30 is of ENI eni-3"},
		{"unassign another's", n.Unassign("eni-1", addrs("10.0.0.30")...), "unassign addresses from ENI eni-1: address 10.0.0.30 is of ENI eni-3"},
		{"unassign a primary", n.Unassign("eni-1", addrs("10.0.0.10")...), "unassign addresses from ENI eni-1: address 10.0.0.10 is primary: it stays as long as the ENI"},
		{"unknown ENI", n.Detach("eni-7"), "detach ENI eni-7: no such ENI"},
	} {
		if tt.err == nil || tt.err.Error() != tt.want {
			t.Errorf("%s: got %v\nwant %s", tt.name, tt.err, tt.want)
		}
	}
}

func TestDoingItTwiceChangesNothing(t *testing.T) {
	n, n1, _ := newVPC(t, "t")
	before := sh(t, n1, "ip -4 address; ip -6 address show scope global; ip route; ip -6 route")
	must(t, n.DHCP("eni-1"))
	if diff := cmp.Diff(before, sh(t, n1, "ip -4 address; ip -6 address show scope global; ip route; ip -6 route")); diff != "" {
		t.Errorf("node after DHCP again (-before +after):\n%s", diff)
	}
	a := netip.MustParseAddr("10.0.0.21")
	must(t, n.Unassign("eni-1", a))
	must(t, n.Assign("eni-1", a, a))
	must(t, n.Assign("eni-1", a))
	must(t, n.Unassign("eni-1", a, a))
	must(t, n.Unassign("eni-1", a))
	must(t, n.Assign("eni-2", a))
}

func TestDoIsInsideAndLeavesTheProgramOutside(t *testing.T) {
	nettest.Need(t)
	ns := namespaceNamed("do")
	must(t, ns.Create())
	defer ns.Remove()
	own, err := os.Readlink("/proc/thread-self/ns/net")
	must(t, err)
	var wg sync.WaitGroup
	for range 64 { // so many that the main thread gets its turn
		wg.Go(func() {
			for range 10 {
				inside := own
				if err := ns.Do(func() (err error) {
					inside, err = os.Readlink("/proc/thread-self/ns/net")
					return err
				}); err != nil || inside == own {
					t.Errorf("Do runs in %s, the program is in %s (%v)", inside, own, err)
				}
			}
		})
	}
	wg.Wait()
	// The main thread stands for the process here.
	if now, err := os.Readlink("/proc/self/ns/net"); err != nil || now != own {
		t.Errorf("process is in %s after Do, was in %s (%v)", now, own, err)
	}
	if err := ns.Do(func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("Do of a function that never returns succeeds")
	}
}

func TestProcessStartedInsideDoStaysInside(t *testing.T) {
	nettest.Need(t)
	ns := namespaceNamed("do")
	must(t, ns.Create())
	defer ns.Remove()
	var out strings.Builder
	cmd := exec.Command("sh", "-c", "read line; stat -L -c %i /proc/self/ns/net "+ns.Path())
	cmd.Stdout = &out
	stdin, err := cmd.StdinPipe()
	must(t, err)
	must(t, ns.Do(cmd.Start))
	// Do's thread is gone; the process goes on.
	_, err = stdin.Write([]byte("go\n"))
	must(t, err)
	must(t, cmd.Wait())
	inodes := strings.Fields(out.String())
	if len(inodes) != 2 || inodes[0] != inodes[1] {
		t.Errorf("inodes of the process's and the wanted namespace: %v", inodes)
	}
}
