package e2e

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// A container may send raw packets unless somebody takes that right away, and one
// router advertisement is enough to become the router of a link that believes it.
func TestANodeBelievesNoRouterAdvertisementOfAPod(t *testing.T) {
	for name, families := range map[string][]eni.Family{"IPv4 alone": {eni.IPv4}, "dual-stack": {eni.IPv4, eni.IPv6}} {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, ipam.Settings{Firewall: ipam.Nftables, SNAT: true, Families: families})
			v.plugin("DEL", "a")
			// As systems have it that learn their own default route although they forward.
			v.node.Run(t, "sh", "-c", "echo 2 > /proc/sys/net/ipv6/conf/default/accept_ra")
			// A link that nobody protects shows that the advertisement is a good one.
			naive := nettest.NewNetns(t, "naive")
			v.node.Run(t, "ip", "link", "add", "naive", "type", "veth", "peer", "name", "eth0", "netns", naive.Name)
			v.node.Run(t, "ip", "link", "set", "naive", "up")
			naive.Run(t, "ip", "link", "set", "eth0", "up")
			v.plugin("ADD", "a")

			ctx, cancel := deadline(t)
			defer cancel()
			for !strings.Contains(v.believes(), "dev naive") {
				select {
				case <-ctx.Done():
					t.Fatalf("not even a link without protection believes the advertisement:\n%s", v.believes())
				case <-time.After(50 * time.Millisecond):
				}
				advertise(t, v.pods["a"], netip.MustParsePrefix("2001:db8:bad1::/64"))
				advertise(t, naive, netip.MustParsePrefix("2001:db8:bad2::/64"))
			}
			for line := range strings.Lines(v.believes()) {
				if strings.Contains(line, "dev eni") || strings.Contains(line, "bad1") {
					t.Errorf("the node took from its pod: %s", line)
				}
			}
		})
	}
}

// believes returns what the node has learnt from router advertisements.
func (v *vpc) believes() string {
	v.t.Helper()
	return v.node.Run(v.t, "ip", "-6", "route", "show", "proto", "ra") + v.node.Run(v.t, "ip", "-6", "route", "show", "default") +
		v.node.Run(v.t, "ip", "-6", "-o", "addr", "show", "dynamic")
}

// advertise sends a router advertisement for a prefix out of eth0 in ns, with
// nothing but the right to send raw packets.
func advertise(t *testing.T, ns nettest.Netns, prefix netip.Prefix) {
	t.Helper()
	err := ns.Do(func() error {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, advertisement(link.HardwareAddr, prefix), 0, &unix.SockaddrLinklayer{Ifindex: link.Index})
	})
	if err != nil {
		t.Fatal(fmt.Errorf("send a router advertisement: %w", err))
	}
}

// advertisement is the frame: a router for half an hour, and a prefix to make
// addresses of (RFC 4861, 4.2 and 4.6.2).
func advertisement(mac net.HardwareAddr, prefix netip.Prefix) []byte {
	src, all := netip.MustParseAddr("fe80::bad").As16(), netip.MustParseAddr("ff02::1").As16()
	body := []byte{134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0}
	body = append(body, 3, 4, 64, 0xc0, 0, 0, 0x07, 0x08, 0, 0, 0x07, 0x08, 0, 0, 0, 0)
	body = append(body, prefix.Addr().AsSlice()...)
	binary.BigEndian.PutUint16(body[2:], ^sum16(src[:], all[:], []byte{0, 0, 0, byte(len(body)), 0, 0, 0, unix.IPPROTO_ICMPV6}, body))

	frame := append([]byte{0x33, 0x33, 0, 0, 0, 1}, mac...)
	frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(body)), unix.IPPROTO_ICMPV6, 255)
	return append(append(append(frame, src[:]...), all[:]...), body...)
}

// sum16 is the ones' complement sum of parts of even length.
func sum16(parts ...[]byte) uint16 {
	var sum uint32
	for _, p := range parts {
		for i := 0; i < len(p); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(p[i:]))
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
