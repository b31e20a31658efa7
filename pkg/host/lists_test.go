package host

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// setUpVariety gives the node links, routes, addresses and neighbours of many kinds.
func setUpVariety(t *testing.T, ns nettest.Netns) {
	t.Helper()
	for _, line := range []string{
		"link set lo up", "link set eth0 up mtu 1400 alias an-ENI", "link set eth1 up",
		"link add dum type bridge", "link add lim type ifb", "link add mac link eth0 type macvlan mode bridge", "link set dum group 7",
		"addr add 10.0.0.10/24 dev eth0", "addr add 10.0.0.11/32 dev eth0 noprefixroute", "addr add 10.8.0.1 peer 10.8.0.2/32 dev eth1",
		"addr add 2001:db8::10/64 dev eth0 nodad", "addr add 2001:db8:1::1 peer 2001:db8:1::2/64 dev eth1 nodad",
		"route add default via 10.0.0.1 proto 69", "route add default via 10.0.0.2 metric 4000000000 table 1234567", "route add blackhole 10.5.0.0/16",
		"route add unreachable 10.6.0.1", "route add 10.7.0.0/16 nexthop via 10.0.0.1 nexthop via 10.0.0.2", "route add 10.9.0.0/16 via inet6 fe80::1 dev eth0",
		"-6 route add default via fe80::1 dev eth0", "-6 route add prohibit 2001:db8:5::/48", "-6 route add 2001:db8:6::/64 nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev eth1",
		"neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent", "neigh add fe80::1 lladdr 02:00:00:00:00:02 dev eth0 nud permanent",
		"neigh add 10.0.0.3 lladdr 02:00:00:00:00:03 dev eth0 nud reachable", "neigh add proxy 10.0.0.4 dev eth0",
	} {
		ns.Run(t, "ip", strings.Fields(line)...)
	}
}

func TestListsSayWhatPackageNetlinkSays(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		setUpVariety(t, ns)
		byPackage, err := h.h.LinkList()
		if err != nil {
			t.Fatal(err)
		}
		var wantLinks []linkState
		for _, l := range byPackage {
			a := l.Attrs()
			wantLinks = append(wantLinks, linkState{index: a.Index, peer: a.ParentIndex, netns: a.NetNsID, name: a.Name, alias: a.Alias,
				mac: a.HardwareAddr, mtu: a.MTU, group: a.Group, up: a.RawFlags&unix.IFF_UP != 0})
		}
		links, names, err := h.links()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "links", wantLinks, links, cmpopts.IgnoreFields(linkState{}, "kind", "queue", "ready", "inet4", "inet6"))
		for i, l := range byPackage {
			if kind := links[i].kind; names[l.Attrs().Index] != l.Attrs().Name || kind != l.Type() && (kind != "" || l.Type() != "device") {
				t.Errorf("link %s: type %q, want %q", l.Attrs().Name, kind, l.Type())
			}
		}

		for _, v6 := range []bool{false, true} {
			list, err := h.h.RouteListFiltered(netlinkFamily(v6), &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
			if err != nil {
				t.Fatal(err)
			}
			var want []kernelRoute
			for _, r := range list {
				dst, ok := prefix(r.Dst)
				if !ok {
					dst = netconf.Anywhere(v6)
				}
				want = append(want, kernelRoute{dst: dst, gateway: addrFromIP(r.Gw), link: r.LinkIndex, kind: r.Type, table: r.Table, protocol: int(r.Protocol), metric: r.Priority})
			}
			routes, err := h.conn.routes(v6)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "routes", want, routes)
		}

		addrList, err := h.h.AddrList(nil, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		var wantAddrs []kernelAddr
		for _, a := range addrList {
			p, _ := prefix(a.IPNet)
			wantAddrs = append(wantAddrs, kernelAddr{prefix: p, link: a.LinkIndex, flags: a.Flags})
		}
		addrs, err := h.conn.addrs()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "addresses", wantAddrs, addrs)

		neighList, err := h.h.NeighList(0, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		var wantNeighs []kernelNeigh
		for _, n := range neighList {
			wantNeighs = append(wantNeighs, kernelNeigh{addr: addrFromIP(n.IP), mac: n.HardwareAddr, link: n.LinkIndex, state: uint16(n.State)})
		}
		neighs, err := h.conn.neighs()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "neighbours", wantNeighs, neighs)
	})
}

func same[T any](t *testing.T, what string, want, got []T, options ...cmp.Option) {
	t.Helper()
	options = append(options, cmp.AllowUnexported(linkState{}, kernelRoute{}, kernelAddr{}, kernelNeigh{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.EquateEmpty())
	if len(want) < 3 {
		t.Errorf("only %d %s to compare", len(want), what)
	}
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-package netlink +ours):\n%s", what, diff)
	}
}

// A long list comes in many parts, and other goroutines may ask meanwhile.
// Who asks several questions about one moment has the links read once. Everybody else sees those of now.
func TestLinksAreReadOnceForWhoKeepsThem(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		kept, err := New()
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		kept.KeepLinks()
		count := func(h *Host) int {
			t.Helper()
			nics, err := h.NICs()
			if err != nil {
				t.Fatal(err)
			}
			return len(nics)
		}
		before := count(kept)
		ns.Run(t, "ip", "link", "add", "later", "type", "bridge")
		if now, again := count(h), count(kept); now != before+1 || again != before {
			t.Errorf("%d links, and with one more %d, kept %d", before, now, again)
		}
	})
}

func TestLongListsAreWholeWhileOthersAsk(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		const count = 2000
		ns.Run(t, "ip", "link", "set", "eth0", "up")
		eth0, err := h.findLink("eth0")
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < count; i += 100 {
			b := &batch{}
			for j := i; j < i+100; j++ {
				dst := netip.AddrFrom4([4]byte{10, 1, byte(j >> 8), byte(j)})
				b.addRoute(netconf.Route{Dst: netip.PrefixFrom(dst, 32), Dev: "eth0", Table: netconf.PodsTable}, eth0.index)
			}
			if err := h.conn.send(b); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for range 10 {
					if i == 0 {
						if l, err := h.findLink("eth1"); err != nil || l.name != "eth1" {
							t.Errorf("eth1: %q, %v", l.name, err)
						}
						continue
					}
					routes, err := h.conn.routes(false)
					pods := 0
					for _, r := range routes {
						if r.table == netconf.PodsTable {
							pods++
						}
					}
					if err != nil || pods != count {
						t.Errorf("%s of %d routes: %v", strconv.Itoa(pods), count, err)
					}
				}
			})
		}
		all.Wait()
	})
}

// The link of another plugin's gets the broadcast address of its subnet, and loses it
// with the address.
func TestAFilledLinkHasItsBroadcastAddress(t *testing.T) {
	onNode(t, func(_ nettest.Netns, h *Host) {
		pod := nettest.NewNetns(t, "pod")
		pod.Run(t, "ip", "link", "add", "net1", "type", "bridge")
		ns, err := OpenNetns(pod.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer ns.Close()
		in := Inside{Dev: "net1", Addrs: []netconf.Addr{{Prefix: netip.MustParsePrefix("10.0.16.7/20"), Dev: "net1"}}}
		if err := h.FillLink(ns, in); err != nil {
			t.Fatal(err)
		}
		if got := pod.Run(t, "ip", "-4", "addr", "show", "dev", "net1"); !strings.Contains(got, "inet 10.0.16.7/20 brd 10.0.31.255 ") {
			t.Errorf("addresses after FillLink:\n%s", got)
		}
		for range 2 {
			if err := h.ClearLink(ns, in); err != nil {
				t.Fatal(err)
			}
		}
		if got := pod.Run(t, "ip", "-4", "addr", "show", "dev", "net1"); strings.Contains(got, "inet ") {
			t.Errorf("addresses after ClearLink:\n%s", got)
		}
	})
}

// A link may have more to tell than fits into the buffer for answers, as that of a
// network card with many functions: here it has many names.
func TestALinkWithMoreToTellThanTheBufferHoldsIsRead(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		ns.Run(t, "sh", "-c", `for i in $(seq 300); do printf 'link property add dev eth0 altname %0100d\n' $i; done | ip -batch -`)
		links, _, err := h.links()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(links, func(l linkState) bool { return l.name == "eth1" }) {
			t.Error("the list ends with the long link")
		}
		eth0, err := h.findLink("eth0")
		if err != nil || eth0.name != "eth0" || len(h.conn.buf) <= answerSize {
			t.Fatalf("look up: %v, %v, in a buffer of %d bytes", eth0.name, err, len(h.conn.buf))
		}
		// What comes next is not the rest of it.
		b := &batch{}
		again, none := b.getLink("eth1"), b.getLink("none").tolerating(unix.ENODEV)
		if err := h.conn.send(b); err != nil || parseLink(again.answer).name != "eth1" || none.done() {
			t.Errorf("the next answers: %v, %v, %v", parseLink(again.answer).name, none.err, err)
		}
	})
}
