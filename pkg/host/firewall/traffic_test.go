package firewall_test

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

//go:embed testdata/world.sh
var world string

func newWorld(t *testing.T) {
	newNode(t)
	t.Cleanup(func() {
		for _, ns := range []string{"vpc", "pA", "pB", "far", "inet"} {
			if _, err := try("ip netns del %s", ns); err != nil {
				t.Error(err)
			}
		}
	})
	sh(t, "%s", world)
	for _, ns := range []string{"pA", "pB", "far", "inet"} {
		serve(t, ns)
	}
	l, err := net.Listen("tcp", ":80") // on the node itself
	if err != nil {
		t.Fatal(err)
	}
	answer(t, l)
}

// in runs fn on a thread of its own inside a namespace made by ip netns.
func in(ns string, fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		f, err := os.Open("/run/netns/" + ns)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			f.Close()
		}
		if err == nil {
			err = fn()
		}
		done <- err
	}()
	return <-done
}

// serve answers every connection to port 80 in the namespace with the address it
// came from.
func serve(t *testing.T, ns string) {
	t.Helper()
	var l net.Listener
	if err := in(ns, func() (err error) { l, err = net.Listen("tcp", ":80"); return err }); err != nil {
		t.Fatal(err)
	}
	answer(t, l)
}

func answer(t *testing.T, l net.Listener) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				fmt.Fprint(c, netip.MustParseAddrPort(c.RemoteAddr().String()).Addr().Unmap())
				c.Close()
			}
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// ask connects from the namespace and returns the source that the server saw.
func ask(ns, to string, patience time.Duration) (seen string, err error) {
	err = in(ns, func() error {
		c, err := net.DialTimeout("tcp", to, patience)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		text, err := io.ReadAll(c)
		seen = string(text)
		return err
	})
	return seen, err
}

// expire sends two packets to a port of a pod that nothing listens at: one that the
// pod refuses, and one that reaches the node with no time to live left. It returns the
// errors that the sender hears of.
func expire(ns, to string) (refused, expired error) {
	level, hops, errs := unix.IPPROTO_IP, unix.IP_TTL, unix.IP_RECVERR
	if strings.HasPrefix(to, "[") {
		level, hops, errs = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, unix.IPV6_RECVERR
	}
	send := func(c *net.UDPConn, option, value int) (err error) {
		raw, err := c.SyscallConn()
		if err == nil {
			err = errors.Join(raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }), err)
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if err == nil {
			_, err = c.Write([]byte("x"))
		}
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err
	}
	err := in(ns, func() error {
		c, err := net.Dial("udp", to)
		if err != nil {
			return err
		}
		defer c.Close()
		refused = send(c.(*net.UDPConn), errs, 1)
		expired = send(c.(*net.UDPConn), hops, 2) // one for the VPC's router
		return nil
	})
	return errors.Join(refused, err), expired
}

// talk is a connection and the source that its server should see.
type talk struct{ name, from, to, sees string }

func talks() []talk {
	return []talk{
		{"a NodePort on ENI 1 for a pod on ENI 0", "far", "10.0.0.20:30080", "10.0.5.5"},
		{"a NodePort on ENI 1 for a pod on ENI 0, from the internet", "inet", "10.0.0.20:30080", "203.0.113.2"},
		{"a NodePort on ENI 0 for a pod on ENI 1", "far", "10.0.0.10:30081", "10.0.5.5"},
		{"a NodePort on ENI 0 for a pod on ENI 1, from the internet", "inet", "10.0.0.10:30081", "203.0.113.2"},
		{"the internet to a pod on ENI 1", "inet", "10.0.0.21:80", "203.0.113.2"},
		{"the internet to a pod on ENI 0", "inet", "10.0.0.11:80", "203.0.113.2"},
		{"a pod on ENI 1 to the VPC", "pB", "10.0.5.5:80", "10.0.0.21"},
		{"a pod on ENI 0 to the VPC", "pA", "10.0.5.5:80", "10.0.0.11"},
		{"a pod on ENI 1 to a service in the VPC", "pB", "10.96.0.10:80", "10.0.0.21"},
		{"a pod on ENI 1 to the internet", "pB", "203.0.113.2:80", "10.0.0.10"},
		{"a pod on ENI 0 to the internet", "pA", "203.0.113.2:80", "10.0.0.10"},
		{"a pod on ENI 1 to a service on the internet", "pB", "10.96.0.11:80", "10.0.0.10"},
		{"a NodePort on ENI 1 for a socket of the node", "far", "10.0.0.20:30082", "10.0.5.5"},
		{"a NodePort on ENI 1 for a socket of the node, from the internet", "inet", "10.0.0.20:30082", "203.0.113.2"},
		{"a NodePort on ENI 0 for a socket on the address of ENI 1", "inet", "10.0.0.10:30083", "203.0.113.2"},
		{"a pod to a pod of the node", "pB", "10.0.0.11:80", "10.0.0.21"},
		{"a NodePort on ENI 1 for a pod on ENI 0, IPv6", "far", "[fd00::20]:30080", "fd00:5::5"},
		{"a NodePort on ENI 0 for a pod on ENI 1, IPv6", "inet", "[fd00::10]:30081", "2001:db8::2"},
		{"a NodePort on ENI 1 for a socket of the node, IPv6", "inet", "[fd00::20]:30082", "2001:db8::2"},
		{"a NodePort on ENI 0 for a socket on the address of ENI 1, IPv6", "far", "[fd00::10]:30083", "fd00:5::5"},
		{"the internet to a pod on ENI 1, IPv6", "inet", "[fd00::21]:80", "2001:db8::2"},
		{"a pod on ENI 1 to the VPC, IPv6", "pB", "[fd00:5::5]:80", "fd00::21"},
		{"a pod on ENI 0 to the VPC, IPv6", "pA", "[fd00:5::5]:80", "fd00::11"},
		{"a pod on ENI 1 to a service in the VPC, IPv6", "pB", "[fd96::10]:80", "fd00::21"},
		{"a pod on ENI 1 to the internet, IPv6", "pB", "[2001:db8::2]:80", "fd00::21"},
		{"a pod on ENI 0 to the internet, IPv6", "pA", "[2001:db8::2]:80", "fd00::11"},
		{"a pod to a pod of the node, IPv6", "pB", "[fd00::11]:80", "fd00::21"},
	}
}

// sourceRules is what the plugin puts beside a firewall without source map.
const sourceRules = `ip rule flush priority 1538; ip -6 rule flush priority 1538
ip rule add prio 1538 from 10.0.0.21 to 10.0.0.0/16 lookup 101; ip -6 rule add prio 1538 from fd00::21 lookup 101`

// The namespace of the world is that of the test's own thread, so there are no
// subtests here.
func TestTrafficLeavesByTheRightENIWithTheRightAddress(t *testing.T) {
	newWorld(t)
	for _, tt := range []struct {
		name    string
		backend ipam.Firewall
		routing ipam.Routing
	}{
		{"nftables, source map", ipam.Nftables, ipam.Map},
		{"nftables, source rules", ipam.Nftables, ipam.Rule},
		{"iptables, source rules", ipam.Iptables, ipam.Rule},
	} {
		s := nodeState(tt.backend, eni.IPv4, eni.IPv6)
		s.Settings.Routing = tt.routing
		sh(t, "nft reset counters table inet other")
		if tt.routing == ipam.Rule {
			sh(t, sourceRules)
		}
		apply(t, netconf.NewFirewall(s))
		for _, talk := range talks() {
			if seen, err := ask(talk.from, talk.to, 5*time.Second); err != nil {
				t.Errorf("%s: %s: %v", tt.name, talk.name, err)
			} else if seen != talk.sees {
				t.Errorf("%s: %s: the server sees %s, want %s", tt.name, talk.name, seen, talk.sees)
			}
		}
		for _, to := range []string{"10.0.0.21:9", "[fd00::21]:9"} {
			if refused, expired := expire("inet", to); !errors.Is(refused, unix.ECONNREFUSED) || !errors.Is(expired, unix.EHOSTUNREACH) {
				t.Errorf("%s: to %s: the pod answers %v, want that it refuses; the node answers %v, want that the time to live is over", tt.name, to, refused, expired)
			}
		}
		for _, counter := range []string{"both4", "both6"} {
			if out := sh(t, "nft list counter inet other %s", counter); strings.Contains(out, "packets 0 ") {
				t.Errorf("%s: no packet left by eth1 with our mark and the bit that others had set: %s", tt.name, out)
			}
		}
	}
}

// A default route that somebody put into the table of pods' host routes takes no packet
// of a pod or of the node.
func TestOthersRoutesInThePodsTableTakeNoPackets(t *testing.T) {
	newWorld(t)
	apply(t, netconf.NewFirewall(nodeState(ipam.Nftables, eni.IPv4, eni.IPv6)))
	sh(t, "ip route add default via 10.0.0.1 dev eth0 table 100; ip -6 route add default via fd00::1 dev eth0 table 100")
	for _, talk := range talks() {
		if seen, err := ask(talk.from, talk.to, 5*time.Second); err != nil || seen != talk.sees {
			t.Errorf("%s: the server sees %q, %v; want %s", talk.name, seen, err, talk.sees)
		}
	}
}

// Without marks the VPC drops what leaves by the wrong ENI; else the test above
// would show nothing.
func TestWithoutTheFirewallTheVPCDropsTheseConnections(t *testing.T) {
	newWorld(t)
	for _, to := range []string{"10.0.0.10:30081", "[fd00::10]:30081"} {
		if seen, err := ask("inet", to, 5*time.Second); err != nil {
			t.Errorf("the NodePort that ENI 0 answers anyway: %q, %v", seen, err)
		}
	}
	for _, talk := range []talk{
		{"ENI 1 to ENI 0", "inet", "10.0.0.20:30080", ""}, {"ENI 1 to ENI 0, IPv6", "far", "[fd00::20]:30080", ""},
		{"ENI 1 to a socket", "inet", "10.0.0.20:30082", ""}, {"ENI 1 to a socket, IPv6", "far", "[fd00::20]:30082", ""},
		{"from ENI 1", "pB", "10.0.5.5:80", ""}, {"to ENI 1", "inet", "10.0.0.21:80", ""},
	} {
		// An answer would take no time.
		if seen, err := ask(talk.from, talk.to, time.Second); err == nil {
			t.Errorf("%s: the server saw %s", talk.name, seen)
		}
	}
}

func TestForeignIPv6SourcesOfPodsAreDropped(t *testing.T) {
	newWorld(t)
	sh(t, "ip netns exec vpc nft flush chain inet check ports")
	for _, tt := range []struct{ family, foreign, own, to string }{
		{"udp6", "fd00::12", "fd00::11", "[fd00:5::5]:5000"},
		{"udp6", "fd00::21", "fd00::11", "[fd00:5::5]:5000"}, // another pod's
	} {
		sh(t, "ip -n pA addr add %s dev eth0 nodad", tt.foreign)
		var far net.PacketConn
		if err := in("far", func() (err error) { far, err = net.ListenPacket(tt.family, tt.to); return err }); err != nil {
			t.Fatal(err)
		}
		// What comes first through the same links is received first, so no time
		// needs to pass to see that something did not come.
		if first := firstOf(t, far, tt.family, tt.to, tt.foreign, tt.own); first != tt.foreign {
			t.Errorf("without firewall %s arrived first, want the foreign %s", first, tt.foreign)
		}
		for _, backend := range []ipam.Firewall{ipam.Nftables, ipam.Iptables} {
			s := nodeState(backend, eni.IPv4, eni.IPv6)
			s.Settings.SNAT = false
			apply(t, netconf.NewFirewall(s))
			if first := firstOf(t, far, tt.family, tt.to, tt.foreign, tt.own); first != tt.own {
				t.Errorf("with %s %s arrived first, want the pod's own %s", backend, first, tt.own)
			}
		}
		_, err := firewall.Remove(t.Context())
		if err := errors.Join(far.Close(), err); err != nil {
			t.Fatal(err)
		}
	}
}

// A pod's link has no IPv4 address on the node's side. For such a link the kernel's
// reverse path filter has no loose form: 1 and 2 drop the same, on the link or on all.
func TestTheKernelDropsForeignIPv4SourcesOfALinkWithoutAddress(t *testing.T) {
	newWorld(t)
	sh(t, "ip netns exec vpc nft flush chain inet check ports; ip -n pA addr add 10.0.0.12 dev eth0; ip -n pA addr add 10.0.0.21 dev eth0")
	var far net.PacketConn
	if err := in("far", func() (err error) { far, err = net.ListenPacket("udp4", "10.0.5.5:5000"); return err }); err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	for all := range 3 {
		for link := range 3 {
			sh(t, "sysctl -qw net.ipv4.conf.all.rp_filter=%d net.ipv4.conf.eniaaaaaaaaaaa.rp_filter=%d", all, link)
			for _, foreign := range []string{"10.0.0.12", "10.0.0.21"} { // nobody's, and that of another pod
				want := "10.0.0.11"
				if max(all, link) == 0 {
					want = foreign
				}
				if first := firstOf(t, far, "udp4", "10.0.5.5:5000", foreign, "10.0.0.11"); first != want {
					t.Errorf("all %d, link %d: %s arrived first, want %s", all, link, first, want)
				}
			}
		}
	}
}

// firstOf sends a datagram from pA with each source in turn, and returns the
// source of the first that arrives; the last one has to.
func firstOf(t *testing.T, far net.PacketConn, family, to string, sources ...string) (first string) {
	t.Helper()
	for _, source := range sources {
		if err := in("pA", func() error {
			d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(source)}}
			c, err := d.Dial(family, to)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte(source))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := far.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for {
		b := make([]byte, 64)
		n, _, err := far.ReadFrom(b)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(b[:n])
		}
		if string(b[:n]) == sources[len(sources)-1] {
			return first
		}
	}
}

func TestNoConnectionMeetsAHalfMadeFirewall(t *testing.T) {
	newWorld(t)
	sh(t, sourceRules)
	for _, backend := range []ipam.Firewall{ipam.Nftables, ipam.Iptables} {
		one, other := nodeState(backend, eni.IPv4, eni.IPv6), nodeState(backend, eni.IPv4, eni.IPv6)
		other.Settings.VPC = other.Settings.VPC[:1]
		other.ENIs = append(other.ENIs, eni.Interface{Index: 2, Device: "eth2"})
		other.Addresses = append(other.Addresses, eni.Address{Addr: netip.MustParseAddr("10.0.0.23"), ENI: 1})
		apply(t, netconf.NewFirewall(one))
		stop, asked := make(chan struct{}), make(chan error)
		go func() { asked <- askUntil(stop, talks()[:13]) }()
		for range 10 {
			apply(t, netconf.NewFirewall(other))
			apply(t, netconf.NewFirewall(one))
		}
		close(stop)
		if err := <-asked; err != nil {
			t.Errorf("%s: %v", backend, err)
		}
	}
}

// askUntil has all the talks again and again, and returns the first that fails.
func askUntil(stop <-chan struct{}, talks []talk) error {
	for {
		for _, talk := range talks {
			if seen, err := ask(talk.from, talk.to, 5*time.Second); err != nil || seen != talk.sees {
				<-stop
				return fmt.Errorf("%s: the server sees %q, want %s: %w", talk.name, seen, talk.sees, err)
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}
