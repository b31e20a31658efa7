package fastpath

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/enipool/enipool/pkg/nettest"
)

// try runs a command in the namespace, or skips the test where the machine can't.
func try(t *testing.T, ns nettest.Netns, command string) {
	t.Helper()
	if out, err := ns.Try("sh", "-c", command); err != nil {
		t.Skipf("this machine can't: %s: %v: %s", command, err, out)
	}
}

// Whatever others have makes another generation of it, with no more than the cheap
// look, and the same one when it is gone.
func TestEachThingOfOthersChangesTheGeneration(t *testing.T) {
	var w Watch
	for _, tt := range []struct{ name, set, take string }{
		{"a rule of nftables", "nft add table ip t", ""},
		{"a rule of iptables-legacy", "iptables-legacy -A FORWARD -s 192.0.2.1 -j DROP", "iptables-legacy -F"},
		{"a policy of iptables-legacy", "iptables-legacy -P FORWARD DROP", "iptables-legacy -P FORWARD ACCEPT"},
		{"an IPsec policy", "ip xfrm policy add src 192.0.2.0/24 dst 198.51.100.0/24 dir fwd tmpl proto esp mode tunnel", "ip xfrm policy flush"},
		{"IPsec that blocks what no policy allows", "ip xfrm policy setdefault fwd block", "ip xfrm policy setdefault fwd accept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ns := nettest.NewNetns(t, "others")
			read := func() (g Generation) {
				t.Helper()
				if err := ns.Do(func() (err error) { g, err = w.Generation(); return err }); err != nil {
					t.Fatal(err)
				}
				g.programs = false // another test's may come and go
				return g
			}
			before := read()
			try(t, ns, tt.set)
			if now := read(); now == before {
				t.Errorf("the generation is still %+v", now)
			}
			if tt.take == "" {
				return
			}
			ns.Run(t, "sh", "-c", tt.take)
			if now := read(); now != before {
				t.Errorf("the generation was %+v, and is %+v when all is gone", before, now)
			}
		})
	}
}

// IPv6 has ways of its own, and sockets' policies are about their own packets.
func TestIPsecForOtherPacketsIsNotInTheWay(t *testing.T) {
	ns := nettest.NewNetns(t, "others")
	try(t, ns, "ip xfrm policy add src 2001:db8::/64 dst 2001:db8:1::/64 dir fwd tmpl proto esp mode tunnel")
	err := ns.Do(func() error {
		if decides, err := ipsecDecides(); decides || err != nil {
			return fmt.Errorf("decides: %v, %v", decides, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A table of iptables-legacy stays when it was only looked at.
func TestEmptyTablesOfLegacyIptablesDecideNothing(t *testing.T) {
	ns := nettest.NewNetns(t, "others")
	tables := func() (list []string) {
		t.Helper()
		if err := ns.Do(func() (err error) { list, err = legacyTables(); return err }); err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, table := range []string{"filter", "mangle", "raw"} {
		try(t, ns, "iptables-legacy -t "+table+" -L")
	}
	if names := ns.Run(t, "cat", "/proc/thread-self/net/ip_tables_names"); !strings.Contains(names, "filter") {
		t.Fatalf("the tables are %q", names)
	}
	if list := tables(); len(list) > 0 {
		t.Errorf("empty tables %q count", list)
	}
	for _, tt := range []struct{ set, take, want string }{
		{"-t mangle -A POSTROUTING -j MARK --set-mark 1", "-t mangle -F", "mangle"},
		{"-t raw -A PREROUTING -j ACCEPT", "-t raw -F", "raw"},
		{"-P FORWARD DROP", "-P FORWARD ACCEPT", "filter"},
		{"-N mine", "-X mine", "filter"}, // a chain, even if nothing leads to it
	} {
		ns.Run(t, "sh", "-c", "iptables-legacy "+tt.set)
		if list := tables(); len(list) != 1 || list[0] != tt.want {
			t.Errorf("%s: the tables %q count, want %q", tt.set, list, tt.want)
		}
		ns.Run(t, "sh", "-c", "iptables-legacy "+tt.take)
		if list := tables(); len(list) > 0 {
			t.Errorf("%s: tables %q count", tt.take, list)
		}
	}
}

func TestServicesOfIPVSAreSeen(t *testing.T) {
	const head = "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n"
	for text, want := range map[string]bool{
		head:                              false,
		head + "TCP  0A600001:0050 rr \n": true,
		head + strings.Repeat("TCP  0A600001:0050 rr \n  -> 0A000015:0050      Masq    1      0          0         \n", 1000): true,
	} {
		path := filepath.Join(t.TempDir(), "ip_vs")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ipvsServes(path); err != nil || got != want {
			t.Errorf("%.200q: %v, %v; want %v", text, got, err, want)
		}
	}
	if got, err := ipvsServes(filepath.Join(t.TempDir(), "none")); got || err != nil {
		t.Errorf("without IPVS: %v, %v", got, err)
	}
}

// What hangs at netfilter's hooks is known after a look at it, for as long as it does.
func TestNetfilterProgramsComeAndGo(t *testing.T) {
	nettest.Need(t)
	nettest.FreeHooks(t).Take()
	var w Watch
	// The kernel takes a link away when it has time.
	need := func(want bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			g, err := w.Generation()
			if err != nil {
				t.Fatal(err)
			}
			if g.programs == want {
				return
			}
			if want || time.Now().After(end) {
				t.Fatalf("programs %v, want %v", g.programs, want)
			}
		}
	}
	need(false)
	hook := func(at link.NetfilterInetHook, family link.NetfilterProtocolFamily) link.Link {
		l, err := link.AttachNetfilter(link.NetfilterOptions{Program: nettest.Program(t, ebpf.Netfilter, ebpf.AttachNetfilter, 1),
			ProtocolFamily: family, Hook: at, Priority: 7})
		if err != nil {
			t.Skipf("this kernel takes no programs at netfilter's hooks: %v", err)
		}
		return l
	}
	defer hook(link.NetfilterInetLocalIn, link.NetfilterProtoIPv4).Close()
	defer hook(link.NetfilterInetForward, link.NetfilterProtoIPv6).Close()
	need(false)
	forward := hook(link.NetfilterInetForward, link.NetfilterProtoIPv4)
	need(true)
	need(true)
	forward.Close()
	need(false)
}

// What others put at links is seen, and what we do ourselves is not.
func TestListenersAreThoseOfOthers(t *testing.T) {
	p, err := Open(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dev, index := veth(t)
	nettest.Run(t, "ip", "link", "set", dev, "up")
	var last Listeners
	changed := func() bool {
		t.Helper()
		now, err := p.Listeners()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { last = now }()
		return now != last
	}
	changed()
	if _, err := p.Attach([]string{dev}, 1); err != nil {
		t.Fatal(err)
	}
	if changed() {
		t.Error("our own program is seen")
	}
	other, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: nettest.Program(t, ebpf.SchedCLS, ebpf.AttachTCXIngress, -1),
		Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
	if err != nil {
		t.Fatal(err)
	}
	if !changed() {
		t.Error("a program behind ours is not seen")
	}
	other.Close()
	if !changed() {
		t.Error("it is not seen that it went")
	}
	nettest.Run(t, "tc", "qdisc", "add", "dev", dev, "ingress")
	if !changed() {
		t.Error("an ingress queue is not seen")
	}
	nettest.Run(t, "ip", "link", "add", "new", "up", "type", "veth", "peer", "name", "new-far")
	defer nettest.Run(t, "ip", "link", "del", "new")
	nettest.Run(t, "ip", "link", "set", "new-far", "up")
	if !changed() {
		t.Error("a new link is not seen")
	}
}

// Making and changing links must not wait until hundreds have the program.
func TestNoMoreLinksThanAllowedGetTheProgramAtATime(t *testing.T) {
	p, err := Open(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var devices []string
	for i := range 3 {
		dev := fmt.Sprintf("eth%d", 20+i)
		nettest.Run(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", dev+"-far")
		t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", dev) })
		devices = append(devices, dev)
	}
	for _, tt := range []struct {
		most, want int
		whole      bool
	}{{0, 0, false}, {1, 1, false}, {2, 3, true}, {0, 3, true}, {16, 3, true}} {
		whole, err := p.Attach(append(devices, "gone"), tt.most)
		if err != nil {
			t.Fatal(err)
		}
		links, err := linkIndices(devices)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, index := range links {
			have, err := attached(index)
			if err != nil {
				t.Fatal(err)
			}
			n += len(have)
		}
		if n != tt.want || whole != tt.whole {
			t.Errorf("with %d allowed %d links have it, whole %v; want %d, %v", tt.most, n, whole, tt.want, tt.whole)
		}
	}
}

func TestWhatTheKernelAnnouncesIsHeard(t *testing.T) {
	ns := nettest.NewNetns(t, "others")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	changed := make(chan struct{}, 1)
	if err := ns.Do(func() error { return Hear(ctx, changed) }); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"nft add table ip t",
		"nft 'add chain ip t c { type filter hook forward priority 0; }; add rule ip t c drop'",
		"ip xfrm policy add src 192.0.2.0/24 dst 198.51.100.0/24 dir fwd tmpl proto esp mode tunnel",
		"ip xfrm policy setdefault fwd block",
		"tc qdisc add dev lo ingress",
	} {
		try(t, ns, command)
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: nothing was heard", command)
		}
	}
}

func TestWhatConntrackNeedsIsSetAgain(t *testing.T) {
	nettest.Need(t)
	for _, tt := range []struct {
		now  string
		want bool
	}{{"0", true}, {"1", false}} {
		nettest.Run(t, "sysctl", "-q", "-w", "net.netfilter.nf_conntrack_tcp_be_liberal="+tt.now)
		changed, err := Prepare()
		if err != nil || changed != tt.want {
			t.Errorf("from %s: changed %v, %v", tt.now, changed, err)
		}
		if text := nettest.Run(t, "cat", liberal); strings.TrimSpace(text) == "0" {
			t.Errorf("from %s: it is %q", tt.now, text)
		}
	}
}
