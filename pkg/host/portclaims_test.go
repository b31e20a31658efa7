package host

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// listen opens a socket in the namespace until the test ends.
func listen(t *testing.T, ns nettest.Netns, network, address string) io.Closer {
	t.Helper()
	var c io.Closer
	err := ns.Do(func() (err error) {
		reuse := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		}}
		if network[:3] == "tcp" {
			c, err = reuse.Listen(context.Background(), network, address)
		} else {
			c, err = reuse.ListenPacket(context.Background(), network, address)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// What programs of the node listen on is what the kernel says, with families that one
// socket serves at once; connections and sockets with a peer are none of it.
func TestListenersOfTheNodeAreFound(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		ns.Run(t, "sh", "-c", "ip link set lo up; ip addr add 10.0.0.1/32 dev lo")
		for _, at := range []struct{ network, address string }{{"tcp4", "0.0.0.0:22"}, {"tcp", "[::]:80"}, {"tcp6", "[::]:81"}, {"tcp4", "10.0.0.1:8080"},
			{"tcp4", "127.0.0.1:6443"}, {"udp4", "127.0.0.53:53"}, {"udp", "[::]:123"}} {
			listen(t, ns, at.network, at.address)
		}
		err := ns.Do(func() error {
			c, err := net.Dial("tcp", "10.0.0.1:8080")
			if err == nil {
				t.Cleanup(func() { c.Close() })
				c, err = net.Dial("udp", "10.0.0.1:9")
			}
			if err == nil {
				t.Cleanup(func() { c.Close() })
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		all := func(ports ...netconf.HostPort) []netconf.PodPorts {
			return []netconf.PodPorts{{Pod: netip.MustParseAddr("10.0.0.5"), Ports: ports}}
		}
		found := func(ports []netconf.PodPorts) (list []string) {
			t.Helper()
			err := ns.Do(func() error {
				c, err := h.PortClaims(ports)
				for _, l := range c.Listeners {
					list = append(list, fmt.Sprint(l.Transport, " ", netip.AddrPortFrom(l.Addr, l.Port), " ", l.Both))
				}
				for _, a := range c.Absent {
					list = append(list, "absent "+a.String())
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(list)
			return list
		}
		port := func(t netconf.Transport, host string) netconf.HostPort {
			p := netconf.HostPort{Transport: t, Port: 1, PodPort: 1}
			if host != "" {
				p.Host = netip.MustParseAddr(host)
			}
			return p
		}
		tcp := []string{"tcp 0.0.0.0:22 false", "tcp 10.0.0.1:8080 false", "tcp 127.0.0.1:6443 false", "tcp [::]:80 true", "tcp [::]:81 false"}
		if diff := cmp.Diff(tcp, found(all(port(netconf.TCP, "")))); diff != "" {
			t.Errorf("TCP (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"udp 127.0.0.53:53 false", "udp [::]:123 true"}, found(all(port(netconf.UDP, "")))); diff != "" {
			t.Errorf("UDP (-want +got):\n%s", diff)
		}
		if got := found(all(port(netconf.SCTP, ""))); len(got) > 0 {
			t.Errorf("SCTP: %q", got)
		}
		// Which of the addresses are the node's: those of links, and those of the loopback's range.
		if diff := cmp.Diff([]string{"absent 10.0.0.2", "absent 10.99.0.1"}, found(all(port(netconf.SCTP, "10.0.0.1"), port(netconf.SCTP, "127.0.0.9"), port(netconf.SCTP, "0.0.0.0"),
			port(netconf.SCTP, "10.99.0.1"), port(netconf.SCTP, "10.0.0.2"), port(netconf.SCTP, "fd00::1")))); diff != "" {
			t.Errorf("hosts (-want +got):\n%s", diff)
		}
	})
}
