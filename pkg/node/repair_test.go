package node

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
)

// withPod makes a node of two ENIs with a pod on the second, and returns the name of
// the pod's link.
func withPod(t *testing.T) (n Node, dev string) {
	t.Helper()
	n, state := newNode(t, 2)
	ns := nettest.NewNetns(t, "web")
	open, err := host.OpenNetns(ns.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	owner := &eni.Owner{Key: eni.Key{Network: "pods", Container: "web", IfName: "eth0"}, Namespace: "default", Pod: "web",
		Netns: ns.Path, NetnsInode: open.Inode}
	state.Addresses[1].State, state.Addresses[1].Owner = eni.Used, owner
	n.put(t, state)
	h, err := host.New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.AddPod(open, netconf.NewPod(state.Settings, state.LeaseOf(owner.Key), 0)); err != nil {
		t.Fatal(err)
	}
	dev = netconf.HostDevice(owner.Key)
	t.Cleanup(func() { _ = h.DelPod(owner.Key, nil) })
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n, dev
}

// ofPod is what the kernel holds for the pod beside its link.
func ofPod(t *testing.T, dev string) string {
	return nettest.Run(t, "sh", "-c", strings.ReplaceAll(`ip route show table 100; ip neigh show dev DEV nud permanent
		ip -br link show DEV; cd /proc/sys/net; grep . ipv4/conf/DEV/rp_filter ipv4/conf/DEV/forwarding ipv4/conf/eth1/forwarding ipv6/conf/DEV/disable_ipv6`, "DEV", dev))
}

func TestWhatAPodLosesOnTheNodeIsNamedAndPutBack(t *testing.T) {
	n, dev := withPod(t)
	was := ofPod(t, dev)
	for damage, want := range map[string]string{
		"ip route flush table 100":                                    "route 10.0.0.21 dev DEV table 100 proto 70 scope link",
		"ip neigh del 10.0.0.21 dev DEV":                              "neigh 10.0.0.21 lladdr",
		"ip link set DEV down":                                        "link DEV up",
		"echo 0 >/proc/sys/net/ipv4/conf/DEV/rp_filter":               "sysctl net/ipv4/conf/DEV/rp_filter=1",
		"echo 0 >/proc/sys/net/ipv4/conf/DEV/forwarding":              "sysctl net/ipv4/conf/DEV/forwarding=1",
		"echo 0 >/proc/sys/net/ipv4/conf/eth1/forwarding":             "sysctl net/ipv4/conf/eth1/forwarding=1",
		"echo 0 >/proc/sys/net/ipv6/conf/DEV/disable_ipv6":            "sysctl net/ipv6/conf/DEV/disable_ipv6=1",
		"ip link set DEV down; ip neigh flush dev DEV; ip rule flush": "route 10.0.0.21 dev DEV table 100",
	} {
		damage, want = strings.ReplaceAll(damage, "DEV", dev), strings.ReplaceAll(want, "DEV", dev)
		nettest.Run(t, "sh", "-c", damage+"; ip rule add priority 32766 lookup main 2>/dev/null || true")
		named := func(lines []string, before, after string) bool {
			return slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, before+want) && strings.HasSuffix(l, after) })
		}
		lines, err := n.Check(t.Context())
		if err != nil || !named(lines, "kernel lacks ", "; `enipoolctl pool load` puts it back") {
			t.Errorf("after %s: check says %q, %v", damage, lines, err)
		}
		for _, line := range lines {
			if strings.Contains(line, "delete the pod") {
				t.Errorf("after %s: check says of what is put back: %s", damage, line)
			}
		}
		if lines, err = n.Apply(t.Context()); err != nil || !named(lines, "add ", "") {
			t.Errorf("after %s: apply says %q, %v", damage, lines, err)
		}
		if diff := cmp.Diff(was, ofPod(t, dev)); diff != "" {
			t.Errorf("after %s (-was +is):\n%s", damage, diff)
		}
		if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
			t.Errorf("after the repair of %s: check says %q, %v", damage, lines, err)
		}
	}
}

// What a plugin is about to add or has begun to remove is its own.
func TestAPodThatIsBeingStartedOrStoppedIsLeftAlone(t *testing.T) {
	// The third look at the node state is the one after the kernel was read for the first time, the
	// fifth that after the second.
	for name, c := range map[string]struct {
		at        int
		meanwhile string
	}{
		"started":                    {3, "ip route add 10.0.0.21 dev DEV table 100 proto 70 scope link"},
		"stopped":                    {3, "ip link del DEV"},
		"half started, half stopped": {5, "ip link del DEV"},
	} {
		t.Run(name, func(t *testing.T) {
			n, dev := withPod(t)
			nettest.Run(t, "ip", "route", "flush", "table", "100")
			looks := 0
			state := func(ctx context.Context, fn func(*ipam.State) error) error {
				if looks++; looks == c.at {
					nettest.Run(t, "sh", "-c", strings.ReplaceAll(c.meanwhile, "DEV", dev))
				}
				return n.Cache.View(ctx, fn)
			}
			if lines, err := n.apply(t.Context(), state, change{}); err != nil || len(lines) > 0 || looks < c.at {
				t.Errorf("apply says %q, %v after %d looks; want nothing", lines, err, looks)
			}
		})
	}
}

// An upgrade moves pods' routes, and the rule for them, while the node runs.
func TestPodsOfAnEarlierReleaseMoveToTheirTable(t *testing.T) {
	n, dev := withPod(t)
	fresh := kernel(t)
	// As the earlier release left it.
	var old *ipam.State
	err := n.Cache.Replace(t.Context(), func(s *ipam.State, err error) (*ipam.State, error) {
		s.Settings.PodsInMain, old = true, s
		return s, err
	})
	if err != nil {
		t.Fatal(err)
	}
	nettest.Run(t, "sh", "-c", strings.ReplaceAll(`ip route flush table 100; ip rule del priority 512
		ip rule add priority 512 lookup main suppress_prefixlength 31 protocol 69
		ip route add 10.0.0.21 dev DEV proto 69 scope link`, "DEV", dev))
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("check on a node of the earlier release: %q, %v", lines, err)
	}
	next := old.Clone()
	next.Settings.PodsInMain = false
	if _, err := n.Grow(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	n.put(t, next)
	lines, err := n.Sync(t.Context(), nil, old)
	if err != nil || !slices.Contains(lines, "remove rule 512: from all lookup main suppress_prefixlength 31 proto 69") {
		t.Errorf("sync: %q, %v", lines, err)
	}
	if diff := cmp.Diff(fresh, kernel(t)); diff != "" {
		t.Errorf("an upgraded node is not like a fresh one (-fresh +upgraded):\n%s", diff)
	}
}
