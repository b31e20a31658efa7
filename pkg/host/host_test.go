package host

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// nodeState is a node of two ENIs, dual-stack, with a pod on the second.
func nodeState(routing ipam.Routing) *ipam.State {
	s := &ipam.State{Settings: ipam.Settings{Routing: routing, MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4, eni.IPv6}}}
	for i, dev := range []string{"eth0", "eth1"} {
		host := []string{"10", "20"}[i]
		s.ENIs = append(s.ENIs, eni.Interface{ID: "eni-" + dev, Index: i, Device: dev, MTU: 1500,
			V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0." + host + "/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
			V6: eni.Net{Primary: netip.MustParsePrefix("2001:db8::" + host + "/64"), Gateway: netip.MustParseAddr("fe80::1")}})
	}
	owner := &eni.Owner{Key: eni.Key{Network: "pods", Container: "web", IfName: "eth0"}}
	s.Addresses = []eni.Address{
		{Addr: netip.MustParseAddr("10.0.0.21"), ENI: 1, State: eni.Used, Owner: owner},
		{Addr: netip.MustParseAddr("2001:db8::21"), ENI: 1, State: eni.Used, Owner: owner},
	}
	return s
}

// apply brings the kernel to want and returns what it did.
func apply(t *testing.T, h *Host, want, obsolete netconf.Node) []string {
	t.Helper()
	have, err := h.ReadNode(want, obsolete)
	if err != nil {
		t.Fatal(err)
	}
	add, remove := netconf.Diff(have, want, obsolete)
	if err := h.ApplyNode(add, remove); err != nil {
		t.Fatal(err)
	}
	return append(add.Lines("add "), remove.Lines("remove ")...)
}

// onNode runs fn with a handle inside a fresh node that has two links.
func onNode(t *testing.T, fn func(ns nettest.Netns, h *Host)) {
	t.Helper()
	ns := nettest.NewNetns(t, "node")
	for _, dev := range []string{"eth0", "eth1"} {
		ns.Run(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", dev+"-far")
		ns.Run(t, "ip", "link", "set", dev+"-far", "up")
	}
	err := ns.Do(func() error {
		h, err := New()
		if err != nil {
			return err
		}
		defer h.Close()
		fn(ns, h)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tidy strips what differs between runs and machines.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.Contains(line, "dev lo") && !strings.Contains(line, "linkdown") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestANodeIsAsNetconfSays(t *testing.T) {
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		t.Run("routing "+routing.String(), func(t *testing.T) {
			onNode(t, func(ns nettest.Netns, h *Host) {
				want := netconf.NewNode(nodeState(routing))
				if len(apply(t, h, want, netconf.Node{})) == 0 {
					t.Error("nothing was done")
				}
				rules := `0: from all lookup local
512: from all lookup 100 suppress_prefixlength 31 proto 70
1536: from all fwmark 0xff/0xff lookup main proto 70
1536: from all fwmark 0x1/0xff lookup 101 proto 70
1537: from 10.0.0.20 lookup 101 proto 69
1538: from 10.0.0.21 lookup 101 proto 69
32766: from all lookup main
32767: from all lookup default`
				if routing == ipam.Map {
					rules = strings.Replace(rules, "1538: from 10.0.0.21 lookup 101 proto 69\n", "", 1)
				}
				if diff := cmp.Diff(rules, tidy(ns.Run(t, "ip", "rule"))); diff != "" {
					t.Errorf("rules (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff("default via 10.0.0.1 dev eth1 proto 69\n10.0.0.1 dev eth1 proto 69 scope link", tidy(ns.Run(t, "ip", "route", "show", "table", "101"))); diff != "" {
					t.Errorf("table 101 (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff("default via 10.0.0.1 dev eth0 proto 69\n10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.10", tidy(ns.Run(t, "ip", "route"))); diff != "" {
					t.Errorf("main table (-want +got):\n%s", diff)
				}
				if got := tidy(ns.Run(t, "ip", "-6", "route", "show", "table", "101")); !strings.Contains(got, "default via fe80::1 dev eth1 proto 69") {
					t.Errorf("IPv6 table 101:\n%s", got)
				}
				if again := apply(t, h, want, netconf.Node{}); len(again) > 0 {
					t.Errorf("the second time it did %q", again)
				}
			})
		})
	}
}

// What comes between the reading of the kernel and its change is not replaced either, and
// what is ours is, without a moment in which there is none.
func TestARouteOfOthersIsNotReplacedAndOneOfOursIs(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		want := netconf.NewNode(nodeState(ipam.Map))
		apply(t, h, want, netconf.Node{})
		defaults := netconf.Node{Routes: slices.DeleteFunc(slices.Clone(want.Routes), func(r netconf.Route) bool { return r.Dst.Bits() != 0 || r.Table != 101 })}
		for i, protocol := range []string{"static", "69"} {
			ns.Run(t, "ip", "route", "replace", "default", "via", "10.0.0.9", "dev", "eth1", "onlink", "table", "101", "proto", protocol)
			ns.Run(t, "ip", "-6", "route", "del", "default", "table", "101")
			ns.Run(t, "ip", "-6", "route", "add", "default", "via", "fe80::9", "dev", "eth1", "table", "101", "proto", protocol)
			err := h.ApplyNode(defaults, netconf.Node{})
			is := ns.Run(t, "sh", "-c", "ip route show table 101; ip -6 route show table 101")
			for gateway, there := range map[string]bool{"via 10.0.0.9 ": i == 0, "via 10.0.0.1 ": i == 1, "via fe80::9 ": i == 0, "via fe80::1 ": i == 1} {
				if strings.Contains(is, gateway) != there {
					t.Errorf("over a route of protocol %s: %q is there: %v\n%s", protocol, gateway, !there, is)
				}
			}
			if errors.Is(err, unix.EEXIST) != (i == 0) || i == 1 && err != nil {
				t.Errorf("over a route of protocol %s: %v", protocol, err)
			}
		}
	})
}

func TestWhatOthersRemovedIsPutBackAndTheirsIsLeftAlone(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		want := netconf.NewNode(nodeState(ipam.Rule))
		ns.Run(t, "ip", "addr", "add", "10.0.0.10/24", "dev", "eth0")
		ns.Run(t, "ip", "link", "set", "eth0", "up")
		ns.Run(t, "ip", "route", "add", "default", "via", "10.0.0.1", "dev", "eth0") // the system's, not ours
		ns.Run(t, "ip", "rule", "add", "priority", "1538", "from", "192.0.2.1", "lookup", "101", "protocol", "static")
		ns.Run(t, "ip", "route", "add", "192.0.2.0/24", "via", "10.0.0.1", "dev", "eth0", "table", "101")
		apply(t, h, want, netconf.Node{})
		before := tidy(ns.Run(t, "ip", "rule") + ns.Run(t, "ip", "route", "show", "table", "all"))
		for _, damage := range [][]string{
			{"rule", "del", "priority", "1538", "from", "10.0.0.21"},
			{"rule", "del", "priority", "512"},
			{"route", "del", "default", "table", "101"},
			{"addr", "del", "10.0.0.20/24", "dev", "eth1"},
			{"link", "set", "eth1", "down"},
			{"rule", "add", "priority", "1538", "from", "10.0.0.99", "lookup", "101", "protocol", "69"}, // ours, stale
		} {
			ns.Run(t, "ip", damage...)
			if did := apply(t, h, want, netconf.Node{}); len(did) == 0 {
				t.Errorf("after ip %s nothing was done", strings.Join(damage, " "))
			}
			apply(t, h, want, netconf.Node{}) // routes that went with a link or an address
			sorted := func(s string) string { return strings.Join(sortLines(s), "\n") }
			if diff := cmp.Diff(sorted(before), sorted(tidy(ns.Run(t, "ip", "rule")+ns.Run(t, "ip", "route", "show", "table", "all")))); diff != "" {
				t.Errorf("after ip %s (-before +after):\n%s", strings.Join(damage, " "), diff)
			}
		}
		if got := ns.Run(t, "ip", "route", "show", "default"); strings.Contains(got, "proto 69") {
			t.Errorf("the system's default route was replaced: %s", got)
		}
	})
}

// sortLines sorts lines and leaves out those of the far ends and of the table local: the kernel keeps
// it by itself, and IPv6 addresses are in it some time after they were added.
func sortLines(s string) []string {
	lines := slices.Sorted(strings.SplitSeq(s, "\n"))
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, " table local ") || strings.Contains(line, "-far ")
	})
}

func TestAnENIThatTheSystemConfiguredLosesItsConnectedRoute(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		ns.Run(t, "ip", "addr", "add", "10.0.0.20/24", "dev", "eth1")
		ns.Run(t, "ip", "link", "set", "eth1", "up")
		want := netconf.NewNode(nodeState(ipam.Map))
		for range 3 {
			apply(t, h, want, netconf.Node{})
		}
		if again := apply(t, h, want, netconf.Node{}); len(again) > 0 {
			t.Errorf("it never comes to rest: %q", again)
		}
		if got := ns.Run(t, "ip", "route", "show", "dev", "eth1"); got != "" {
			t.Errorf("routes of eth1 in the main table: %s", got)
		}
	})
}

func TestAnENIThatIsGoneTakesAllOfItsStateWithIt(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		before := netconf.NewNode(nodeState(ipam.Rule))
		apply(t, h, before, netconf.Node{})
		less := nodeState(ipam.Rule)
		less.ENIs, less.Addresses = less.ENIs[:1], nil
		apply(t, h, netconf.NewNode(less), before)
		left := ns.Run(t, "ip", "rule") + ns.Run(t, "ip", "route", "show", "table", "all") + ns.Run(t, "ip", "-6", "rule") + ns.Run(t, "ip", "addr", "show", "dev", "eth1")
		for _, gone := range []string{"lookup 101", "table 101", "10.0.0.20", "2001:db8::20"} {
			if strings.Contains(left, gone) {
				t.Errorf("%q is left over:\n%s", gone, left)
			}
		}
	})
}

func TestANamespaceIsGoneOnlyIfThatIsProven(t *testing.T) {
	nettest.Need(t)
	ns := nettest.NewNetns(t, "pod")
	open, err := OpenNetns(ns.Path)
	if err != nil {
		t.Fatal(err)
	}
	inode := open.Inode
	open.Close()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenNetns(fifo); !errors.Is(err, ErrNetnsGone) { // and it is not waited for
		t.Errorf("a FIFO: %v", err)
	}
	for _, tt := range []struct {
		name, path string
		inode      uint64
		gone       bool
	}{
		{"alive", ns.Path, inode, false},
		{"alive, inode not known", ns.Path, 0, false},
		{"another one in its place", ns.Path, inode + 1, true},
		{"nothing in its place", filepath.Join(filepath.Dir(ns.Path), "none"), inode, true},
		{"a plain file in its place: it may be mounted where this process does not see it", plain, inode, false},
		{"its folder can't be seen from here", "/nowhere/netns/pod", inode, false},
		{"by process", "/proc/999999999/ns/net", inode, false},
		{"no path", "", inode, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := NetnsGone(tt.path, tt.inode); got != tt.gone {
				t.Errorf("NetnsGone(%q, %d) = %v", tt.path, tt.inode, got)
			}
		})
	}
	if _, err := OpenNetns("/proc/thread-self/ns/net"); !errors.Is(err, ErrNetnsOwn) {
		t.Errorf("own namespace: %v", err)
	}
}

func TestALinkOfAnotherKindWithOurNameIsNotRemoved(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		dev := netconf.HostDevice(eni.Key{})
		ns.Run(t, "ip", "link", "add", dev, "type", "bridge")
		if err := h.DelPod(eni.Key{}, nil); err == nil || !strings.Contains(err.Error(), "it is a bridge link of somebody else's") {
			t.Errorf("error %v", err)
		}
		ns.Run(t, "ip", "link", "show", "dev", dev)
	})
}
