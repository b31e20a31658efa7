package node

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRemovingLeavesTheNodeAsItWas(t *testing.T) {
	n, state := newNode(t, 3)
	n.put(t, state)
	if _, _, err := n.Remove(t.Context(), "/none"); err != nil { // what other tests left
		t.Fatal(err)
	}
	nettest.Run(t, "sh", "-c", `ip addr add 10.0.0.10/24 dev eth0; ip link set eth0 up; ip route add default via 10.0.0.1
		ip route add 192.0.2.0/24 dev eth0 table 100; ip rule add from 192.0.2.1 lookup 100; nft add table inet theirs`)
	t.Cleanup(func() {
		nettest.Run(t, "sh", "-c", "ip rule del from 192.0.2.1 lookup 100; ip route flush table 100; ip addr flush dev eth0")
	})
	rest := func() string {
		return nettest.Run(t, "sh", "-c", "ip rule; ip -6 rule; ip route show table all type unicast; ip -4 -o addr; nft list ruleset; ip -o link show type ifb")
	}
	n.put(t, state)
	before := rest()
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest() == before {
		t.Fatal("there is nothing to remove")
	}
	removed, stays, err := n.Remove(t.Context(), t.TempDir()+"/none")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, rest()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	for _, want := range []string{"addr 10.0.0.20/24 dev eth1 noprefixroute", "route default via 10.0.0.1 dev eth1 table 101 proto 69",
		"rule 512: from all lookup 100 suppress_prefixlength 31 proto 70", "nftables: remove table inet enipool"} {
		if !strings.Contains(strings.Join(removed, "\n"), want) {
			t.Errorf("it does not say that it removed %s:\n%s", want, strings.Join(removed, "\n"))
		}
	}
	if !strings.Contains(strings.Join(stays, " "), "net/ipv4/ip_forward=1 net/ipv4/conf/eth0/rp_filter=2") {
		t.Errorf("it does not say what stays: %q", stays)
	}
	if removed, stays, err := n.Remove(t.Context(), t.TempDir()+"/none"); err != nil || len(removed)+len(stays) > 0 {
		t.Errorf("a second time: %q, %q, %v", removed, stays, err)
	}
}

// Who lacks a right is not told that what stays is gone.
func TestWhatCantBeRemovedIsNotSaidToBe(t *testing.T) {
	n, state := newNode(t, 3)
	n.put(t, state)
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = n.Remove(t.Context(), "/none") })
	was := kernel(t)
	var removed []string
	var err error
	withoutNetAdmin(t, func() { removed, _, err = n.Remove(t.Context(), "/none") })
	if len(removed) > 0 || !errors.Is(err, unix.EPERM) {
		t.Errorf("without the right it removed %q, %v", removed, err)
	}
	if diff := cmp.Diff(was, kernel(t)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	nettest.Run(t, "ip", "rule", "del", "priority", "512")
	withoutNetAdmin(t, func() { removed, _, err = n.Remove(t.Context(), "/none") })
	if len(removed) > 0 || err == nil {
		t.Errorf("what somebody else has removed: %q, %v", removed, err)
	}
}

// withoutNetAdmin does something on a thread that lacks CAP_NET_ADMIN.
func withoutNetAdmin(t *testing.T, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	if err := unix.Capget(&head, &rights[0]); err != nil {
		t.Fatal(err)
	}
	fewer := rights
	fewer[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	if err := unix.Capset(&head, &fewer[0]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Capset(&head, &rights[0]); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

func TestNothingIsRemovedWhilePodsLive(t *testing.T) {
	n, dev := withPod(t)
	was := kernel(t)
	refuses := func(what, name string) {
		t.Helper()
		removed, _, err := n.Remove(t.Context(), "/none")
		var living *LivingError
		if !errors.As(err, &living) || len(living.Pods) != 1 || living.Pods[0] != name || len(removed) > 0 || !strings.Contains(err.Error(), "drain the node and run this again") {
			t.Errorf("%s: removed %q, %v", what, removed, err)
		}
	}
	refuses("a pod has a link", "default/web")
	if diff := cmp.Diff(was, kernel(t)); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	nettest.Run(t, "ip", "link", "del", dev)
	change := func(fn func(a *eni.Address)) {
		t.Helper()
		err := n.Cache.Replace(t.Context(), func(s *ipam.State, err error) (*ipam.State, error) { fn(&s.Addresses[1]); return s, err })
		if err != nil {
			t.Fatal(err)
		}
	}
	change(func(a *eni.Address) { a.Since = time.Hour - time.Second })
	refuses("an ADD is under way", "default/web")
	change(func(a *eni.Address) { a.Since, a.Owner.Kind = 0, eni.Delegated })
	refuses("another plugin made the link", "default/web")
	change(func(a *eni.Address) { a.Owner.NetnsInode++ })
	if removed, _, err := n.Remove(t.Context(), "/none"); err != nil || len(removed) == 0 {
		t.Errorf("the pod is gone: removed %q, %v", removed, err)
	}
}

func TestNothingIsRemovedThatAnAgentWouldPutBack(t *testing.T) {
	n, state := newNode(t, 2)
	n.put(t, state)
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	was := kernel(t)
	l := flock.New(n.Cache.AgentLock(), flock.SetPermissions(0o600))
	if ok, err := l.TryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	var agent *nodecache.AgentError
	if removed, _, err := n.Remove(t.Context(), "/none"); !errors.As(err, &agent) || len(removed) > 0 {
		t.Errorf("removed %q, %v", removed, err)
	} else if text := err.Error(); !strings.Contains(text, "end it first") || strings.Contains(text, "configuration") {
		t.Errorf("no configuration helps here: %s", text)
	}
	if diff := cmp.Diff(was, kernel(t)); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if removed, _, err := n.Remove(t.Context(), "/none"); err != nil || len(removed) == 0 {
		t.Errorf("without the agent: removed %q, %v", removed, err)
	}
}

// All that the kernel lacks then is as it was wanted: advice to put it back would undo it.
func TestTheCheckOfANodeWithoutEnipoolSaysThatItWasUninstalled(t *testing.T) {
	n, state := newNode(t, 2)
	n.put(t, state)
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.Uninstalled() {
		t.Error("a node in use is uninstalled")
	}
	if _, _, err := n.Remove(t.Context(), "/none"); err != nil {
		t.Fatal(err)
	}
	lines, err := n.Check(t.Context())
	if err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "enipool was uninstalled from this node; ") {
		t.Errorf("the check says %q, %v", lines, err)
	}
	l := flock.New(n.Cache.AgentLock(), flock.SetPermissions(0o600))
	if ok, err := l.TryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer func() { _ = l.Unlock() }()
	if n.Uninstalled() {
		t.Error("a node that an agent keeps is uninstalled")
	}
}

// A pod whose limit was not removed with it left a link.
func TestLinksOfLimitsThatPodsLeftAreRemoved(t *testing.T) {
	n, dev := withPod(t)
	owner := eni.Owner{Key: eni.Key{Network: "pods", Container: "gone", IfName: "eth0"}}
	h, err := host.New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	limits := netconf.Limits{Egress: netconf.Limit{Rate: 1 << 20, Burst: 1 << 20}}
	err = h.SetLimits(host.Limit{HostDev: dev, Dev: netconf.LimitDevice(owner.Key), Alias: netconf.Alias(owner), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	nettest.Run(t, "ip", "link", "del", dev)
	want := "link " + netconf.LimitDevice(owner.Key)
	if removed, _, err := n.Remove(t.Context(), "/none"); err != nil || removed[len(removed)-1] != want {
		t.Errorf("removed %q, %v; want %q at last", removed, err, want)
	}
}
