package host

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// freePool is a node state with the addresses free on ENI 1.
func freePool(addrs ...string) *ipam.State {
	s := nodeState(ipam.Map)
	s.Addresses = nil
	for _, a := range addrs {
		s.Addresses = append(s.Addresses, eni.Address{Addr: netip.MustParseAddr(a), ENI: 1})
	}
	return s
}

// heldBy reads the kernel and says what holds which address.
func heldBy(t *testing.T, h *Host, s *ipam.State) string {
	t.Helper()
	o, err := h.Occupancy(time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	held := o.Held(s)
	for _, a := range s.Addresses {
		if cause, is := held[a.Addr]; is {
			lines = append(lines, a.Addr.String()+": "+cause)
		}
	}
	return strings.Join(lines, "\n")
}

// Each kind of kernel state that says that an address is somebody's.
func TestKernelStateOfOthersHoldsAnAddressUntilItIsGone(t *testing.T) {
	for _, tt := range []struct {
		name   string
		make   []string // by ip(8)
		addr   string
		want   string
		byPath bool // one question for the route finds it
	}{
		{"host route", []string{"route add 10.0.0.4/32 dev eth0-far scope link"}, "10.0.0.4", "route 10.0.0.4 dev eth0-far scope link (table main)", true},
		{"host route of another table", []string{"route add 10.0.0.4/32 dev eth0-far table 77", "rule add priority 20 lookup 77"}, "10.0.0.4", "route 10.0.0.4 dev eth0-far scope link (table 77)", true},
		{"in a table that no rule leads to", []string{"route add 10.0.0.4/32 dev eth0-far table 77"}, "10.0.0.4", "route 10.0.0.4 dev eth0-far scope link (table 77)", false},
		{"host route that leads nowhere", []string{"route add unreachable 10.0.0.4/32"}, "10.0.0.4", "route unreachable 10.0.0.4 (table main)", true},
		{"IPv6 host route", []string{"-6 route add 2001:db8::4/128 dev eth0-far"}, "2001:db8::4", "route 2001:db8::4 dev eth0-far scope link (table main)", true},
		{"rule from", []string{"rule add priority 1536 from 10.0.0.4 lookup 2"}, "10.0.0.4", "rule 1536: from 10.0.0.4 lookup 2", false},
		{"rule to", []string{"rule add priority 512 to 10.0.0.4 lookup main"}, "10.0.0.4", "rule 512: from all to 10.0.0.4 lookup main", false},
		{"permanent neighbour", []string{"neigh add 10.0.0.4 lladdr 02:00:00:00:00:09 dev eth0-far nud permanent"}, "10.0.0.4", "neighbour 10.0.0.4 lladdr 02:00:00:00:00:09 dev eth0-far nud permanent", false},
		{"address of the node", []string{"addr add 10.0.0.4/24 dev eth0-far"}, "10.0.0.4", "address 10.0.0.4/24 dev eth0-far", true},
		{"IPv6 address of the node", []string{"addr add 2001:db8::4/64 dev eth0-far nodad"}, "2001:db8::4", "address 2001:db8::4/64 dev eth0-far", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNode(t, func(ns nettest.Netns, h *Host) {
				s := freePool("10.0.0.3", "10.0.0.4", "2001:db8::3", "2001:db8::4")
				for _, line := range tt.make {
					ns.Run(t, "ip", strings.Fields(line)...)
				}
				if diff := cmp.Diff(tt.addr+": "+tt.want, heldBy(t, h, s)); diff != "" {
					t.Errorf("held (-want +got):\n%s", diff)
				}
				var held *HeldError
				// An IPv6 address has its local route some time after it was added.
				await(func() bool { return !tt.byPath || h.CheckFree(netip.MustParseAddr(tt.addr)) != nil })
				if err := h.CheckFree(netip.MustParseAddr(tt.addr)); errors.As(err, &held) != tt.byPath || err != nil && held == nil {
					t.Errorf("asked for the route: %v, want held %v", err, tt.byPath)
				}
				for _, other := range []string{"10.0.0.3", "2001:db8::3"} {
					if err := h.CheckFree(netip.MustParseAddr(other)); err != nil {
						t.Errorf("another address: %v", err)
					}
				}
				for _, line := range slices.Backward(tt.make) {
					ns.Run(t, "ip", strings.Fields(strings.Replace(line, " add ", " del ", 1))...)
				}
				if got := heldBy(t, h, s); got != "" {
					t.Errorf("still held: %s", got)
				}
			})
		})
	}
}

// A route to all of a subnet says nothing of an address in it, whatever it is.
func TestAWiderRouteHoldsNothing(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		a := netip.MustParseAddr("10.0.0.4")
		for _, route := range []string{"10.0.0.0/24 dev eth0-far", "unreachable 10.0.0.0/25", "blackhole 10.0.0.0/26", "prohibit 10.0.0.0/27"} {
			ns.Run(t, "ip", append([]string{"route", "add"}, strings.Fields(route)...)...)
			if err := h.CheckFree(a); err != nil {
				t.Errorf("with %s: %v", route, err)
			}
		}
	})
}

// makePod makes the pod of the owner with the address.
func makePod(t *testing.T, h *Host, name, addr string) (nettest.Netns, netconf.Pod) {
	t.Helper()
	ns := nettest.NewNetns(t, name)
	open, err := OpenNetns(ns.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	s := freePool(addr)
	lease, err := s.AssignPod(eni.Owner{Key: eni.Key{Network: "pods", Container: name, IfName: "eth0"}, Namespace: "default", Pod: name}, "", 0)
	if err != nil {
		s.Settings.Families = []eni.Family{eni.IPv4}
		lease, err = s.AssignPod(eni.Owner{Key: eni.Key{Network: "pods", Container: name, IfName: "eth0"}, Namespace: "default", Pod: name}, "", 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := netconf.NewPod(s.Settings, lease, 0)
	if err := h.AddPod(open, p); err != nil {
		t.Fatal(err)
	}
	return ns, p
}

// systemd-networkd and NetworkManager remove routes that they did not make. The pod
// goes on, and the address in it tells whose it is.
func TestALinkWithoutARouteStillTellsItsAddress(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		_, p := makePod(t, h, "web", "10.0.0.4")
		ns.Run(t, "ip", "route", "flush", "table", "all", "dev", p.HostDev, "scope", "link")
		s := freePool("10.0.0.3", "10.0.0.4")
		if diff := cmp.Diff("10.0.0.4: link "+p.HostDev+" of default/web (the address is at its other end)", heldBy(t, h, s)); diff != "" {
			t.Errorf("held (-want +got):\n%s", diff)
		}
		o, err := h.Occupancy(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if owner := o.Owners(s)[netip.MustParseAddr("10.0.0.4")]; owner.Pod != "web" {
			t.Errorf("owner %+v, want web", owner)
		}
		// With the pod's address gone it has none.
		pod := nettest.Netns{}
		pod.Namespace.Name = "web"
		pod.Run(t, "ip", "addr", "flush", "dev", "eth0")
		if got := heldBy(t, h, s); got != "" {
			t.Errorf("held by a pod without address: %s", got)
		}
	})
}

func TestARouteOfOthersIsNotReplaced(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		a := netip.MustParseAddr("10.0.0.4")
		r := netconf.Route{Dst: netip.PrefixFrom(a, 32), Dev: "eth1-far", Table: netconf.PodsTable}
		far, err := h.h.LinkByName("eth1-far")
		if err != nil {
			t.Fatal(err)
		}
		ns.Run(t, "ip", "route", "add", "10.0.0.4/32", "dev", "eth0-far", "table", "100")
		var held *HeldError
		if err := h.claimRoute(r, far.Attrs().Index); !errors.As(err, &held) || held.Cause != "route 10.0.0.4 dev eth0-far scope link (table 100)" {
			t.Errorf("claimed over another's: %v", err)
		}
		if got := words(ns.Run(t, "ip", "route", "show", "table", "100")); strings.TrimSuffix(got, " linkdown") != "10.0.0.4 dev eth0-far scope link" {
			t.Errorf("the other's route became %q", got)
		}
		ns.Run(t, "ip", "route", "del", "10.0.0.4/32", "table", "100")
		for range 2 { // the second time the agent has been faster
			if err := h.claimRoute(r, far.Attrs().Index); err != nil {
				t.Error(err)
			}
		}
	})
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestARuleOfOthersIsNotRemoved(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		r := netconf.Rule{Priority: netconf.PrioritySource, From: netip.MustParsePrefix("10.0.0.4/32"), Table: 101}
		if err := h.AddRules([]netconf.Rule{r}); err != nil {
			t.Fatal(err)
		}
		ns.Run(t, "ip", "rule", "add", "priority", "1538", "from", "10.0.0.4", "lookup", "2")
		ns.Run(t, "ip", "rule", "add", "priority", "1538", "from", "10.0.0.4", "lookup", "102", "protocol", "69") // ours, stale
		if err := h.DelPod(eni.Key{Container: "none"}, []netconf.Rule{r}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("1538: from 10.0.0.4 lookup 2", words(ns.Run(t, "ip", "rule", "show", "priority", "1538"))); diff != "" {
			t.Errorf("rules (-want +got):\n%s", diff)
		}
	})
}

// aws-vpc-cni names its links as we do; a name can meet.
func TestAVethOfAnotherPluginWithOurNameIsNotRemoved(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		k := eni.Key{Network: "pods", Container: "web", IfName: "eth0"}
		dev := netconf.HostDevice(k)
		for _, alias := range []string{"", "somebody's", "default/web pods/another/eth0"} {
			ns.Run(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", "far")
			ns.Run(t, "ip", "link", "set", dev, "alias", alias)
			if err := h.DelPod(k, nil); err != nil {
				t.Errorf("alias %q: %v", alias, err)
			}
			ns.Run(t, "ip", "link", "del", dev) // fails if it went
		}
		ns.Run(t, "ip", "link", "add", dev, "address", netconf.HostMAC(k).String(), "type", "veth", "peer", "name", "far")
		if err := h.DelPod(k, nil); err != nil {
			t.Error(err)
		}
		if there, err := h.HasLink(dev); there || err != nil {
			t.Errorf("a link that an ADD left before it had an alias: there %v, %v", there, err)
		}
	})
}

// systemd-networkd gives aliases and other names to all links that it matches.
func TestAPodsLinkThatSomebodyRenamedGoesWithThePod(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		was := ns.Run(t, "ip", "-br", "link")
		for name, do := range map[string]string{
			"alias": "ip link set LINK alias managed",
			"name":  "ip link set LINK down; ip link set LINK name veth77",
			"both":  "ip link set LINK down; ip link set LINK alias managed name veth77",
			"none":  "true",
		} {
			k := eni.Key{Network: "pods", Container: name, IfName: "eth0"}
			_, p := makePod(t, h, name, "10.0.0.4")
			ns.Run(t, "sh", "-c", strings.ReplaceAll(do, "LINK", p.HostDev))
			for range 2 {
				if err := h.DelPod(k, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if left := ns.Run(t, "ip", "-br", "link"); left != was {
				t.Errorf("%s: left is\n%s", name, left)
				ns.Run(t, "sh", "-c", "ip link del "+p.HostDev+" || ip link del veth77")
			}
		}
	})
}

// A kernel that does not know the number of a namespace must not be taken to say
// that there are no addresses.
func TestAReadThatFailsIsNoEmptyAnswer(t *testing.T) {
	onNode(t, func(_ nettest.Netns, h *Host) {
		_, p := makePod(t, h, "web", "10.0.0.4")
		link, err := h.findLink(p.HostDev)
		if err != nil {
			t.Fatal(err)
		}
		old := &peerReader{}
		if _, err := old.read(link); !errors.Is(err, errNoPeerNumber) {
			t.Errorf("an old kernel: %v", err)
		}
		peers, err := newPeerReader()
		if err != nil {
			t.Fatal(err)
		}
		defer peers.close()
		link.netns = 4711
		if addrs, err := peers.read(link); err == nil || errors.Is(err, unix.ENODEV) {
			t.Errorf("a namespace that is not there: %v, %v", addrs, err)
		}
	})
}
