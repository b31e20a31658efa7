package e2e

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// ttlEcho serves UDP in ns: every datagram comes back, with its time to live as
// its first byte.
func ttlEcho(t *testing.T, ns nettest.Netns, port string) {
	t.Helper()
	c := udpSocket(t, ns, "0.0.0.0:"+port, "")
	p := ipv4.NewPacketConn(c)
	if err := p.SetControlMessage(ipv4.FlagTTL, true); err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, control, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			b[0] = byte(control.TTL)
			_, _ = p.WriteTo(b[:n], nil, from)
		}
	}()
}

func udpSocket(t *testing.T, ns nettest.Netns, local, remote string) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	err := ns.Do(func() (err error) {
		from := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(local))
		if remote == "" {
			c, err = net.ListenUDP("udp4", from)
			return err
		}
		c, err = net.DialUDP("udp4", from, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(remote)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	// A test that is slow to read has lost nothing yet.
	option(t, c, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20) })
	return c
}

// echoed sends so many bytes and returns the time to live with which they arrived.
func echoed(t *testing.T, c *net.UDPConn, size int) int {
	t.Helper()
	b := make([]byte, 64<<10)
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write(b[:size]); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(b)
	if err != nil || n != size {
		t.Fatalf("%d bytes came back, %v; want %d", n, err, size)
	}
	return int(b[0])
}

func option(t *testing.T, c *net.UDPConn, set func(fd int) error) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) { err = set(int(fd)) }), err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A packet that the program does not understand, or that a router has something to
// say about, goes the plain way, in the middle of a connection whose other packets
// jump.
func TestUnusualPacketsGoThePlainWay(t *testing.T) {
	f := newFast(t, mapNft())
	f.needOn()
	// Another host of the VPC, so that nothing is translated.
	ttlEcho(t, f.pods["b"], "7")
	c := udpSocket(t, f.internet, internet4+":5000", "10.0.0.21:7")
	var ttl int
	if got := f.jumped(func() {
		for range 20 {
			ttl = echoed(t, c, 100)
		}
	}); got.In < 10 || got.Out < 10 {
		t.Fatalf("a flow of UDP does not jump: %+v", got)
	}
	if ttl != 62 {
		t.Errorf("packets arrive with a time to live of %d, want 64 less two routers", ttl)
	}
	plain := func(name string, do func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			echoed(t, c, 100)
			if got := f.jumped(func() { do(t) }); got.In > 0 {
				t.Errorf("%d packets jumped", got.In)
			}
		})
	}
	plain("fragments", func(t *testing.T) { echoed(t, c, 4000) })
	plain("IPv4 options", func(t *testing.T) {
		option(t, c, func(fd int) error {
			return unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, "\x01\x01\x01\x01")
		})
		echoed(t, c, 100)
		option(t, c, func(fd int) error { return unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, "") })
	})
	t.Run("a peer that never answers", func(t *testing.T) {
		// To rules of others each of these is the first packet of a new connection.
		far := udpSocket(t, f.internet, internet4+":5002", "10.0.0.21:10")
		udpSocket(t, f.pods["b"], "10.0.0.21:10", internet4+":5002")
		if got := f.jumped(func() {
			for range 50 {
				_, _ = far.Write([]byte("x"))
				time.Sleep(time.Millisecond)
			}
		}); got.In > 0 {
			t.Errorf("%d packets jumped", got.In)
		}
	})
	t.Run("no time to live left", func(t *testing.T) {
		far, near := udpSocket(t, f.internet, internet4+":5001", "10.0.0.21:9"), udpSocket(t, f.pods["b"], "10.0.0.21:9", internet4+":5001")
		b := make([]byte, 100)
		for range 20 {
			_, _ = far.Write(b)
			_ = near.SetDeadline(time.Now().Add(time.Second))
			if _, err := near.Read(b); err != nil {
				t.Fatal(err)
			}
			_, _ = near.Write(b)
		}
		option(t, near, func(fd int) error {
			return errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1), unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, 1))
		})
		if got := f.jumped(func() {
			_, _ = near.Write(b)
			_ = near.SetDeadline(time.Now().Add(time.Second))
			if _, err := near.Read(b); !errors.Is(err, syscall.EHOSTUNREACH) {
				t.Errorf("the pod heard %v, want that the time to live was exceeded", err)
			}
		}); got.Out > 0 {
			t.Errorf("%d packets jumped", got.Out)
		}
	})
}

// What is too long for an ENI comes back as an ICMP error, also where the sender's
// kernel hands over many segments as one.
func TestPacketsTooLongForAnENIAreRefusedBesideTheFastPath(t *testing.T) {
	f := newFast(t, mapNft())
	pingPong(t, f.internet, "80")
	pingPong(t, f.pods["b"], "80")
	c := dial(t, f.internet, "10.0.0.21:80")
	exchange(t, c, 20)
	f.node.Run(t, "ip", "link", "set", "eth1", "mtu", "1300")
	// What comes in may be no longer: a link drops it without a word, but for what is still to be cut
	// into segments. A segment that is sent again never is, and would never arrive.
	f.internet.Run(t, "sh", "-c", `ip link set $(ip -o route get 10.0.0.21 | grep -oE "dev [^ ]+" | cut -d " " -f 2) mtu 1300`)
	f.path.LookAgain()
	f.keep()
	f.needOn()
	const size = 8 << 20
	go func() { _, _ = io.Copy(c, io.LimitReader(zeros{}, size)) }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	got := f.jumped(func() {
		if _, err := io.CopyN(io.Discard, c, size); err != nil {
			t.Error(err)
		}
	})
	if got.Out == 0 {
		t.Error("no packet jumped")
	}
	if routes := f.pods["b"].Run(t, "ip", "route", "get", internet4); !strings.Contains(routes, "mtu 1300") {
		t.Errorf("the pod was not told of the ENI's MTU: %s", routes)
	}
}

// A pod that sends with another pod's address, in the middle of a connection of
// that pod's which jumps, is not heard.
func TestAPodCannotSendIntoAnothersConnectionByTheFastPath(t *testing.T) {
	f := newFast(t, mapNft())
	f.needOn()
	heard := udpSocket(t, f.internet, internet4+":5000", "")
	a := udpSocket(t, f.pods["a"], "10.0.0.11:7", internet4+":5000")
	if _, err := heard.WriteTo([]byte("ask"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.11:7"))); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	_ = a.SetDeadline(time.Now().Add(time.Second))
	if _, err := a.Read(b); err != nil {
		t.Fatal(err)
	}
	if got := f.jumped(func() {
		for range 20 {
			_, _ = a.Write([]byte("own"))
			_ = heard.SetDeadline(time.Now().Add(time.Second))
			if n, err := heard.Read(b); err != nil || string(b[:n]) != "own" {
				t.Fatalf("%q, %v", b[:n], err)
			}
		}
	}); got.Out < 10 {
		t.Fatalf("the pod's own packets do not jump: %+v", got)
	}
	f.pods["b"].Run(t, "ip", "addr", "add", "10.0.0.11/32", "dev", "eth0")
	thief := udpSocket(t, f.pods["b"], "10.0.0.11:7", internet4+":5000")
	for range 20 {
		_, _ = thief.Write([]byte("foreign"))
	}
	_ = heard.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := heard.Read(b); err == nil {
		t.Errorf("heard %q with another pod's address", b[:n])
	}
	f.pods["b"].Run(t, "ip", "addr", "del", "10.0.0.11/32", "dev", "eth0")
}

// A ban by route, as fail2ban and people set it, counts for the fast path too.
func TestWhoIsBannedByARouteIsBannedFromTheFastPath(t *testing.T) {
	f := newFast(t, mapNft())
	f.needOn()
	ttlEcho(t, f.pods["b"], "4001")
	c := udpSocket(t, f.internet, internet4+":4001", "10.0.0.21:4001")
	if got := f.jumped(func() {
		for range 20 {
			echoed(t, c, 100)
		}
	}); got.In < 10 {
		t.Fatalf("the client's packets do not jump: %+v", got)
	}
	f.node.Run(t, "ip", "route", "add", "blackhole", internet4)
	t.Cleanup(func() { f.node.Run(t, "ip", "route", "del", "blackhole", internet4) })
	time.Sleep(300 * time.Millisecond) // longer than the program remembers a flow
	before := f.passed()
	for range 20 {
		_, _ = c.Write([]byte("banned"))
	}
	_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := c.Read(make([]byte, 100)); err == nil {
		t.Errorf("%d bytes came back to the banned client", n)
	}
	if n := f.passed() - before; n > 0 {
		t.Errorf("%d packets of the banned client jumped", n)
	}
}
