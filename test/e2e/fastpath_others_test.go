package e2e

import (
	"context"
	"encoding/binary"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// linkTo returns the node's link that packets to the address leave by.
func (f *fast) linkTo(addr string) (dev string, index int) {
	f.t.Helper()
	fields := strings.Fields(f.node.Run(f.t, "ip", "route", "get", addr))
	for i, field := range fields {
		if field == "dev" {
			dev = fields[i+1]
		}
	}
	f.must(f.node.Do(func() error {
		l, err := net.InterfaceByName(dev)
		if err == nil {
			index = l.Index
		}
		return err
	}))
	return dev, index
}

// A round of the keeper, four times a second, notices all that could decide about
// packets, though nobody says that something changed.
func TestEachRoundNoticesWhatOthersDecideWith(t *testing.T) {
	f := newFast(t, mapNft())
	pingPong(t, f.pods["b"], "80")
	c := dial(t, f.internet, "10.0.0.21:80")
	command := func(line string) func(t *testing.T) func() {
		set, take, _ := strings.Cut(line, " # ")
		return func(t *testing.T) func() {
			if out, err := f.node.Try("sh", "-c", set); err != nil {
				t.Skipf("this machine can't: %v: %s", err, out)
			}
			return func() { f.node.Run(t, "sh", "-c", take) }
		}
	}
	hook := func(t *testing.T) (gone func()) {
		program := nettest.Program(t, ebpf.Netfilter, ebpf.AttachNetfilter, 1)
		f.hooks.Take()
		var l link.Link
		err := f.node.Do(func() (err error) {
			l, err = link.AttachNetfilter(link.NetfilterOptions{Program: program, ProtocolFamily: link.NetfilterProtoIPv4, Hook: link.NetfilterInetForward, Priority: 7})
			return err
		})
		if err != nil {
			t.Skipf("this kernel takes no programs at netfilter's hooks: %v", err)
		}
		f.hook = true
		return func() { l.Close(); f.hooks.Free(); f.hook = false }
	}
	f.node.Run(t, "iptables-legacy", "-L") // its table stays, empty
	f.isOn(t, c)
	for _, tt := range []struct {
		name string
		set  func(t *testing.T) (gone func())
		want string // in the cause
	}{
		{"a rule of nftables", command("nft 'add table inet f; add chain inet f pass { type filter hook forward priority 0; }; add rule inet f pass ip saddr 192.0.2.1 drop' # nft delete table inet f"), "inet f"},
		{"a rule of iptables-legacy", command("iptables-legacy -A FORWARD -s 192.0.2.1 -j DROP # iptables-legacy -F FORWARD"), "table filter of iptables-legacy"},
		{"a policy of iptables-legacy", command("iptables-legacy -P FORWARD DROP # iptables-legacy -P FORWARD ACCEPT"), "table filter of iptables-legacy"},
		{"an IPsec policy", command("ip xfrm policy add src 192.0.2.0/24 dst 198.51.100.0/24 dir fwd tmpl proto esp mode tunnel # ip xfrm policy flush"), "IPsec"},
		{"a default of IPsec", command("ip xfrm policy setdefault fwd block # ip xfrm policy setdefault fwd accept"), "IPsec"},
		{"a program at a hook of netfilter", hook, "bpf programs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gone := tt.set(t)
			f.keep()
			if causes := strings.Join(f.path.Status().Off, "\n"); !strings.Contains(causes, tt.want) {
				t.Errorf("causes %q, want %q", causes, tt.want)
			}
			if tt.name != "a policy of iptables-legacy" && tt.name != "a default of IPsec" { // those let nothing pass
				if got := f.jumped(func() { exchange(t, c, 20) }); got.In+got.Out > 0 {
					t.Errorf("%+v jumped", got)
				}
			}
			gone()
			f.isOn(t, c)
		})
	}
	t.Run("connection tracking is set to be strict", func(t *testing.T) {
		const liberal = "net.netfilter.nf_conntrack_tcp_be_liberal"
		f.node.Run(t, "sysctl", "-q", "-w", liberal+"=0")
		f.keep()
		if now := strings.TrimSpace(f.node.Run(t, "sysctl", "-n", liberal)); now != "1" {
			t.Errorf("%s is %s", liberal, now)
		}
		f.isOn(t, c)
	})
}

// A program of others behind ours sees every packet from the next round on: of a pod's
// link, of an ENI, and of a link that was made since the last round.
func TestProgramsOfOthersSeeEveryPacketOfTheirLink(t *testing.T) {
	f := newFast(t, mapNft())
	f.needOn()
	for _, id := range []string{"a", "b"} {
		ttlEcho(t, f.pods[id], "7")
	}
	echoes := func(to string) (out, in bool) {
		t.Helper()
		c := udpSocket(t, f.internet, internet4+":0", to)
		got := f.jumped(func() {
			for range 20 {
				echoed(t, c, 100)
			}
		})
		return got.Out > 0, got.In > 0
	}
	_, pod := f.linkTo("10.0.0.21")
	var eth1 int
	f.must(f.node.Do(func() error {
		l, err := net.InterfaceByName("eth1")
		if err == nil {
			eth1 = l.Index
		}
		return err
	}))
	for _, tt := range []struct {
		name    string
		index   int
		out, in bool
	}{{"a pod's link", pod, false, true}, {"an ENI", eth1, true, false}} {
		t.Run(tt.name, func(t *testing.T) {
			if out, in := echoes("10.0.0.21:7"); !out || !in {
				t.Fatalf("before: out %v, in %v", out, in)
			}
			program := nettest.Program(t, ebpf.SchedCLS, ebpf.AttachTCXIngress, -1)
			var l link.Link
			f.must(f.node.Do(func() (err error) {
				l, err = link.AttachTCX(link.TCXOptions{Interface: tt.index, Program: program, Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
				return err
			}))
			if out, in := echoes("10.0.0.21:7"); out != tt.out || in != tt.in {
				t.Errorf("with the other's program out %v, in %v; want %v, %v", out, in, tt.out, tt.in)
			}
			f.needOn()
			if out, _ := echoes("10.0.0.11:7"); !out {
				t.Error("the other pod's packets do not jump")
			}
			l.Close()
			f.keep()
			f.keep() // it had to see the links unchanged once
			if out, in := echoes("10.0.0.21:7"); !out || !in {
				t.Errorf("afterwards: out %v, in %v", out, in)
			}
		})
	}
}

// Nothing is passed by for longer than a second: what the agent vouches for ends
// within that time since it last looked, with what the program remembers of flows.
func TestTheAgentVouchesForLessThanASecond(t *testing.T) {
	f := newFast(t, mapNft())
	f.path.VouchFor = 0
	f.keep()
	f.needOn()
	var now unix.Timespec
	f.must(unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now))
	var config []byte
	f.must(f.pinned("config", func(m *ebpf.Map) (err error) { config, err = m.LookupBytes(uint32(0)); return err }))
	// The test comes later than the round, never earlier.
	left := time.Duration(binary.NativeEndian.Uint64(config)) - time.Duration(now.Nano())
	if most := time.Second - 250*time.Millisecond; left > most {
		t.Errorf("packets jump for %v more, want %v at most", left, most)
	}
}

// pinned opens the map of the node's fast path.
func (f *fast) pinned(name string, do func(*ebpf.Map) error) error {
	paths, err := filepath.Glob(filepath.Join(bpf.Folder(f.n.Cache.Path), "*", name))
	if err != nil || len(paths) != 1 {
		f.t.Fatalf("pinned %s: %q, %v", name, paths, err)
	}
	m, err := ebpf.LoadPinnedMap(paths[0], nil)
	if err != nil {
		return err
	}
	defer m.Close()
	return do(m)
}

// passed is how many packets jumped so far, asked of the kernel.
func (f *fast) passed() (sum uint64) {
	f.t.Helper()
	f.must(f.pinned("counters", func(m *ebpf.Map) error {
		var key uint32
		var perCPU []uint64
		list := m.Iterate()
		for list.Next(&key, &perCPU) {
			for _, n := range perCPU {
				sum += n
			}
		}
		return list.Err()
	}))
	return sum
}

// An agent that is gone vouches for nothing: soon packets go the plain way, and
// none is lost. The next agent goes on where it left off.
func TestWithoutItsAgentTheFastPathEndsAndNoPacketIsLost(t *testing.T) {
	f := newFast(t, mapNft())
	f.path.VouchFor = 0
	ttlEcho(t, f.pods["b"], "7")
	stop := f.steady("10.0.0.21:7")
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !done(); {
			if time.Now().After(end) {
				t.Fatalf("%s: not within ten seconds", what)
			}
		}
	}
	grows := func() bool {
		before := f.passed()
		time.Sleep(100 * time.Millisecond)
		return f.passed() > before
	}
	run := func() (kill func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.node.Do(func() error { f.path.Run(ctx); return nil }) }()
		return func() { cancel(); f.must(<-done) }
	}
	for range 2 {
		kill := run()
		until("packets jump", grows)
		kill()
		until("packets go the plain way", func() bool { return !grows() })
	}
	if sent, back := stop(); back != sent {
		t.Errorf("%d of %d datagrams came back", back, sent)
	}
}
