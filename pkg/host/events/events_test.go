package events

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// heard is what a listener told.
type heard struct {
	*Listener
	ns   nettest.Netns
	mu   sync.Mutex
	list []Event
}

// hear hears what changes in a fresh namespace, until the test ends.
func hear(t *testing.T) *heard {
	t.Helper()
	h := &heard{ns: nettest.NewNetns(t, "heard")}
	err := h.ns.Do(func() (err error) { h.Listener, err = Listen(h.note, slog.Default()); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.closeSockets)
	return h
}

func (h *heard) note(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.Text = nil
	if e.Kind == Link && !e.Gone && !e.Made && !e.Toggled {
		return // the kernel tells of carriers when it has time
	}
	h.list = append(h.list, e)
}

// take returns what was told since the last call.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for _, e := range h.list {
		lines = append(lines, e.String())
	}
	h.list = nil
	return lines
}

func TestEachChangeIsTold(t *testing.T) {
	h := hear(t)
	for _, tt := range []struct{ do, want string }{
		{"ip link add eth1 type veth peer name far", "link eth1 added or changed"},
		{"ip link set eth1 up", "link eth1 set up"},
		{"ip link set far up", "link far set up"},
		{"ip addr add 10.0.0.20/24 dev eth1", "address 10.0.0.20 added or changed"},
		{"ip route add default via 10.0.0.1 table 101 proto 69", "route default table 101 added or changed"},
		{"ip route replace default via 10.0.0.2 table 101", "route default table 101 replaced"},
		{"ip route flush table 101", "route default table 101 removed"},
		{"ip route add 10.0.0.9 dev eth1 table 100 proto 70", "route 10.0.0.9/32 table 100 added or changed"},
		{"ip route del 10.0.0.9 table 100", "route 10.0.0.9/32 table 100 removed"},
		{"ip rule add from 10.0.0.9 lookup 101 priority 1538 protocol 69", "rule 1538: from 10.0.0.9/32 lookup 101 added or changed"},
		{"ip rule del priority 1538", "rule 1538: from 10.0.0.9/32 lookup 101 removed"},
		{"ip rule add to 10.0.0.9 lookup 254 priority 512", "rule 512: from all to 10.0.0.9/32 lookup 254 added or changed"},
		{"ip -6 rule add lookup 100 priority 512 protocol 70", "rule 512: from all (IPv6) lookup 100 added or changed"},
		{"ip neigh add 10.0.0.9 lladdr 02:00:00:00:00:09 nud permanent dev eth1", "neighbour 10.0.0.9 added or changed"},
		{"ip neigh del 10.0.0.9 dev eth1", "neighbour 10.0.0.9 removed"},
		{"sysctl -q -w net.ipv4.conf.all.rp_filter=1", "sysctl rp_filter=1 of all links"},
		{"sysctl -q -w net.ipv4.ip_forward=1", "sysctl forwarding=1 of all links"},
		{"sysctl -q -w net.ipv6.conf.all.forwarding=1", "sysctl forwarding=1 of all links"},
		{"sysctl -q -w net.ipv6.conf.eth1.disable_ipv6=1", "route ff00::/8 table 255 removed"},
		{"sysctl -q -w net.ipv6.conf.eth1.disable_ipv6=0", "route ff00::/8 table 255 added or changed"},
		{"nft add table inet enipool", "nftables table enipool added or changed"},
		{"nft add set inet enipool pool4 '{ type ipv4_addr; }'", "nftables table enipool added or changed"},
		{"nft add element inet enipool pool4 '{ 10.0.0.1 }'", "nftables table enipool set pool4 added or changed"},
		{"nft delete element inet enipool pool4 '{ 10.0.0.1 }'", "nftables table enipool set pool4 removed"},
		{"nft flush ruleset", "nftables table enipool removed"},
		{"tc qdisc add dev eth1 root handle 1: tbf rate 1mbit burst 10kb latency 25ms; tc qdisc add dev eth1 ingress", "qdisc noqueue of link 3 removed"},
		{"tc qdisc replace dev eth1 root handle 2: pfifo", "qdisc tbf of link 3 removed"},
		{"tc filter add dev eth1 ingress pref 1 u32 match u32 0 0 flowid 1:1; tc filter del dev eth1 ingress pref 1", "filter u32 of link 3 removed"},
		{"tc qdisc del dev eth1 ingress", "qdisc ingress of link 3 removed"},
		{"ip addr flush dev eth1", "address 10.0.0.20 removed"},
		{"ip link set eth1 down", "link eth1 set down"},
		{"ip link del eth1", "link eth1 removed"},
	} {
		h.ns.Run(t, "sh", "-c", tt.do)
		h.Catch()
		if told := h.take(); !slices.Contains(told, tt.want) {
			t.Errorf("%s: told %q, want %s", tt.do, told, tt.want)
		}
	}
}

// Whoever made them: what concerns nobody here does not even wake the process.
func TestRoutesOfOthersToNetworksAreNotTold(t *testing.T) {
	h := hear(t)
	// Links without IPv6: the kernel adds their ff00::/8, which is told, some time after they are up.
	h.ns.Run(t, "sh", "-c", "sysctl -q -w net.ipv6.conf.default.disable_ipv6=1; ip link add eth1 type veth peer name far; ip link set eth1 up; ip link set far up; ip addr add 10.0.0.20/24 dev eth1")
	h.Catch()
	h.take()
	h.ns.Run(t, "sh", "-c", "for i in $(seq 100); do echo route add 10.1.$i.0/24 dev eth1 proto bgp; done | ip -batch -;"+
		"ip route add 192.0.2.0/24 dev eth1 table 500; ip neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 nud stale dev eth1")
	h.Catch()
	if told := h.take(); len(told) > 0 {
		t.Errorf("told %q", told)
	}
	h.ns.Run(t, "ip", "route", "add", "192.0.2.0/24", "dev", "eth1", "table", "110")
	h.Catch()
	if told := h.take(); len(told) != 1 {
		t.Errorf("of a route in a table of ours: told %q", told)
	}
}

func TestAFloodIsAnOverflowAndEndsThere(t *testing.T) {
	h := hear(t)
	h.ns.Run(t, "sh", "-c", "ip link add eth1 type veth peer name far; ip link set eth1 up; ip link set far up")
	h.ns.Run(t, "sh", "-c", "for i in $(seq 0 255); do for k in $(seq 0 99); do echo route add 10.1.$i.$k dev eth1; done; done | ip -batch -")
	for range 25600/maxDatagrams + 2 {
		h.Catch()
	}
	told := h.take()
	if n := len(told); n > 25600 || !slices.Contains(told, Event{}.String()) {
		t.Errorf("told %d events of 25600, want an overflow", n)
	}
	h.ns.Run(t, "ip", "link", "set", "eth1", "down")
	h.Catch()
	if told := h.take(); !slices.Contains(told, "link eth1 set down") {
		t.Errorf("after the flood: told %q", told)
	}
}

func TestAListenerTellsWhileItRunsAndEndsWithItsContext(t *testing.T) {
	h := hear(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	h.ns.Run(t, "ip", "link", "add", "eth1", "type", "veth", "peer", "name", "far")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if slices.Contains(h.take(), "link eth1 added or changed") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing is told of a new link")
		}
	}
	all := h.HearsAll()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !all || h.HearsAll() {
		t.Errorf("it hears all: %t while it runs, %t afterwards", all, h.HearsAll())
	}
}

// A kernel without nfnetlink or without a group announces the rest all the same.
func TestWhatTheKernelDoesNotHaveIsNotHeard(t *testing.T) {
	ns := nettest.NewNetns(t, "heard")
	const noFamily, noGroup = 30, 9999
	var told []string
	err := ns.Do(func() error {
		l, err := listenWith(func(e Event) { told = append(told, e.String()) }, noFamily, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer l.closeSockets()
		if l.HearsAll() {
			t.Error("it hears all, without nftables")
		}
		nettest.Run(t, "ip", "-n", ns.Name, "rule", "add", "lookup", "100", "priority", "512")
		l.Catch()
		s, err := openSocket(unix.NETLINK_ROUTE, ParseRoute, noGroup, unix.RTNLGRP_LINK)
		if err != nil {
			return err
		}
		if _, err := openSocket(unix.NETLINK_ROUTE, ParseRoute, noGroup); err == nil {
			t.Error("a socket that hears nothing is no error")
		}
		return s.file.Close()
	})
	if err != nil || len(told) != 1 {
		t.Errorf("told %q, %v; want the rule", told, err)
	}
}

// message makes a message of NETLINK_ROUTE as the filter sees it.
func routeMessage(kind uint16, header ...byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(header)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(append(b, make([]byte, 10)...), header...)
}

func TestTheFilterKeepsWhatMayConcernUs(t *testing.T) {
	vm, err := bpf.NewVM(buildFilter())
	if err != nil {
		t.Fatal(err)
	}
	route := func(length, table, protocol byte) []byte {
		return routeMessage(unix.RTM_DELROUTE, unix.AF_INET, length, 0, 0, table, protocol, 0, unix.RTN_UNICAST, 0, 0, 0, 0)
	}
	neighbour := func(kind uint16, state uint16) []byte {
		h := binary.NativeEndian.AppendUint16(make([]byte, 8), state)
		return routeMessage(kind, append(h, 0, 0)...)
	}
	for _, tt := range []struct {
		name    string
		message []byte
		keep    bool
	}{
		{"ours", route(24, 254, 69), true}, {"pods'", route(24, 254, 70), true}, {"default", route(0, 254, 4), true},
		{"a host", route(32, 254, 4), true}, {"a host of IPv6", route(128, 254, 4), true},
		{"first table", route(24, 100, 4), true}, {"last table", route(24, 250, 4), true},
		{"before our tables", route(24, 99, 4), false}, {"behind our tables", route(24, 251, 4), false}, {"main", route(24, 254, 4), false},
		{"link", routeMessage(unix.RTM_NEWLINK, make([]byte, 16)...), true}, {"rule", routeMessage(unix.RTM_DELRULE, make([]byte, 12)...), true},
		{"configured", neighbour(unix.RTM_NEWNEIGH, unix.NUD_PERMANENT), true}, {"learned", neighbour(unix.RTM_NEWNEIGH, unix.NUD_REACHABLE), false},
		{"queue added", routeMessage(unix.RTM_NEWQDISC, make([]byte, 20)...), false}, {"queue gone", routeMessage(unix.RTM_DELQDISC, make([]byte, 20)...), true},
		{"filter added", routeMessage(unix.RTM_NEWTFILTER, make([]byte, 20)...), false}, {"filter gone", routeMessage(unix.RTM_DELTFILTER, make([]byte, 20)...), true},
		{"gone", neighbour(unix.RTM_DELNEIGH, unix.NUD_REACHABLE), true},
	} {
		n, err := vm.Run(tt.message)
		if err != nil || n > 0 != tt.keep {
			t.Errorf("%s: the filter keeps %d bytes, %v; want it kept: %v", tt.name, n, err, tt.keep)
		}
	}
}

// The kernel drops the neighbours of multicast groups and routers of each link from time to time. A wake for
// them would cost a reading of the node cache.
func TestOnlyNeighboursThatPodsCanBeAreTold(t *testing.T) {
	for addr, want := range map[string]int{"10.0.0.9": 1, "2001:db8::9": 1, "fd00::9": 1,
		"ff02::2": 0, "ff02::1:ff00:9": 0, "fe80::9": 0, "224.0.0.22": 0, "169.254.1.1": 0} {
		to := netip.MustParseAddr(addr).AsSlice()
		family := byte(unix.AF_INET)
		if len(to) == 16 {
			family = unix.AF_INET6
		}
		body := append([]byte{family, 0, 0, 0, 2, 0, 0, 0, unix.NUD_NOARP, 0, 0, 0}, byte(unix.SizeofRtAttr+len(to)), 0, unix.NDA_DST, 0)
		got := 0
		for range ParseRoute(routeMessage(unix.RTM_DELNEIGH, append(body, to...)...)) {
			got++
		}
		if got != want {
			t.Errorf("%s: %d events, want %d", addr, got, want)
		}
	}
}

// FuzzEvents: no datagram makes the parsers fail, and none yields more events than it
// has room for.
func FuzzEvents(f *testing.F) {
	f.Add(routeMessage(unix.RTM_NEWROUTE, unix.AF_INET, 32, 0, 0, 100, 70, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 9))
	f.Add(routeMessage(unix.RTM_DELRULE, unix.AF_INET, 0, 0, 0, 100, 0, 0, 1, 0, 0, 0, 0, 8, 0, 6, 0, 0, 2, 0, 0, 5, 0, 21, 0, 69, 0, 0, 0))
	f.Add(routeMessage(unix.RTM_NEWLINK, append(make([]byte, 16), 9, 0, 3, 0, 'e', 't', 'h', '1', 0, 0, 0, 0)...))
	f.Add(routeMessage(unix.RTM_NEWNETCONF, unix.AF_INET, 0, 0, 0, 8, 0, 1, 0, 255, 255, 255, 255, 8, 0, 3, 0, 1, 0, 0, 0))
	f.Add(routeMessage(unix.RTM_DELQDISC, append(make([]byte, 20), 8, 0, 1, 0, 't', 'b', 'f', 0)...))
	f.Add(routeMessage(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN, 0, 0, 0, 0, 8, 0, 2, 0, 0, 0, 1, 5, 8, 0, 3, 0, 'n', 'f', 't', 0))
	f.Add(routeMessage(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_DELTABLE, 1, 0, 0, 0, 12, 0, 1, 0, 'e', 'n', 'i', 'p', 'o', 'o', 'l', 0))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		n := 0
		for e := range ParseRoute(datagram) {
			n++
			if e.Kind == Nftables || strings.Contains(e.String(), "%!") {
				t.Errorf("%+v of %x", e, datagram)
			}
		}
		for e := range ParseNft(datagram) {
			n++
			if pid, _ := e.Process(); e.Kind != Nftables && e.Kind != Generation && e.Kind != Overflow || pid != 0 && e.Kind != Generation || strings.Contains(fmt.Sprint(e), "%!") {
				t.Errorf("%+v of %x", e, datagram)
			}
		}
		if n > 2*(len(datagram)/unix.SizeofNlMsghdr+1) { // and an overflow behind a cut
			t.Errorf("%d events in %d bytes", n, len(datagram))
		}
	})
}

// What was told behind the cut nobody knows.
func TestADatagramThatIsCutShortIsAnOverflow(t *testing.T) {
	link := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(link, uint32(len(link)))
	binary.NativeEndian.PutUint16(link[4:], unix.RTM_NEWLINK)
	none := make([]byte, unix.SizeofNlMsghdr) // a message of no length
	for _, tail := range [][]byte{none, link[:len(link)-1], link[:5]} {
		var kinds []Kind
		for e := range ParseRoute(append(slices.Clone(link), tail...)) {
			kinds = append(kinds, e.Kind)
		}
		if want := []Kind{Link, Overflow}; !slices.Equal(kinds, want) {
			t.Errorf("%x: %v, want %v", tail, kinds, want)
		}
	}
	if got := slices.Collect(ParseNft(none)); len(got) != 1 || got[0].Kind != Overflow {
		t.Errorf("got %v, want an overflow", got)
	}
}
