package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	nodepkg "github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/status"
)

// fast is a simulated VPC whose node has the fast path.
type fast struct {
	*vpc
	path  *nodepkg.FastPath
	hooks nettest.Hooks
	hook  bool // the test has a program at a hook of netfilter
}

func newFast(t *testing.T, s ipam.Settings) *fast {
	t.Helper()
	nettest.Need(t)
	nettest.MountBPF(t)
	f := &fast{hooks: nettest.FreeHooks(t), vpc: newKept(t, s, 1)}
	// Rounds of the keeper are the tests' own: packets jump in between, however long that
	// takes.
	f.path = &nodepkg.FastPath{Cache: f.n.Cache, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), VouchFor: time.Minute}
	f.path.Switch(true)
	f.keep()
	t.Cleanup(func() {
		f.path.Switch(false)
		f.keep()
		if _, err := os.Stat(bpf.Folder(f.n.Cache.Path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the fast path left something behind: %v", err)
		}
	})
	return f
}

// keep is a round of the keeper, on the node. The kernel takes a program at netfilter's
// hooks away when it has time, so one that another test had makes it wait for that.
func (f *fast) keep() {
	f.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		f.must(f.node.Do(func() error { f.path.Keep(context.WithoutCancel(f.t.Context())); return nil }))
		if f.hook || !strings.Contains(strings.Join(f.path.Status().Off, "\n"), "bpf programs hang at hooks") || time.Now().After(end) {
			return
		}
	}
}

// needOn fails unless the fast path is on.
func (f *fast) needOn() {
	f.t.Helper()
	if s := f.path.Status(); len(s.Off) > 0 {
		f.t.Fatalf("the fast path is off: %q", s.Off)
	}
}

// knownTranslated returns of how many flows the program keeps that they are translated.
func (f *fast) knownTranslated() (n int) {
	f.t.Helper()
	f.must(f.pinned("flows", func(m *ebpf.Map) error {
		var key [20]byte
		var value [24]byte
		flows := m.Iterate()
		for flows.Next(&key, &value) {
			if mtu := binary.NativeEndian.Uint32(value[16:]); mtu == 0 {
				n++
			}
		}
		return flows.Err()
	}))
	return n
}

// jumped returns how many packets took the fast path while do ran.
func (f *fast) jumped(do func()) status.FastPath {
	f.t.Helper()
	f.keep()
	before := f.path.Status()
	do()
	f.keep()
	after := f.path.Status()
	return status.FastPath{Out: after.Out - before.Out, In: after.In - before.In, Local: after.Local - before.Local}
}

// kubeForward are the rules of kube-proxy that every forwarded packet passes, in
// iptables mode. The first one drops what conntrack calls invalid.
var kubeForward = []string{
	"-N KUBE-FORWARD", "-A FORWARD -m comment --comment kubernetes-forwarding-rules -j KUBE-FORWARD",
	"-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
	"-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT",
	"-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
}

// iptables runs rules on the node.
func (f *fast) iptables(table string, rules ...string) {
	f.t.Helper()
	for _, r := range rules {
		f.node.Run(f.t, "iptables-nft", append([]string{"-w", "-t", table}, strings.Fields(r)...)...)
	}
}

func mapNft() ipam.Settings {
	return ipam.Settings{Routing: ipam.Map, Firewall: ipam.Nftables, SNAT: true, Families: []eni.Family{eni.IPv4}, CoolDown: time.Second}
}

func TestEstablishedConnectionsTakeTheFastPath(t *testing.T) {
	for name, s := range variants(eni.IPv4) {
		s.CoolDown = time.Second
		t.Run(name, func(t *testing.T) { testJumps(t, s) })
	}
}

func testJumps(t *testing.T, s ipam.Settings) {
	f := newFast(t, s)
	f.iptables("filter", kubeForward...)
	f.keep()
	f.needOn()
	for _, id := range []string{"a", "b"} {
		pingPong(t, f.pods[id], "80")
	}
	pingPong(t, f.internet, "80")
	for _, tt := range []struct {
		name         string
		from         nettest.Netns
		to           string
		out, in, own bool
	}{
		{"pod of ENI 0 to pod of ENI 1", f.pods["a"], "10.0.0.21:80", false, false, true},
		{"from the internet to a pod of ENI 0", f.internet, "10.0.0.11:80", true, true, false},
		{"from the internet to a pod of ENI 1", f.internet, "10.0.0.21:80", true, true, false},
		{"a pod of ENI 1 to the internet, translated with snat", f.pods["b"], internet4 + ":80", !s.SNAT, !s.SNAT, false},
		{"the node to a pod", f.node, "10.0.0.21:80", false, false, false},
		{"a pod to the node", f.pods["b"], "10.0.0.20:80", false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.to == "10.0.0.20:80" {
				pingPong(t, f.node, "80")
			}
			c := dial(t, tt.from, tt.to)
			got := f.jumped(func() { exchange(t, c, 200) })
			for _, n := range []struct {
				what string
				got  uint64
				want bool
			}{{"out", got.Out, tt.out}, {"in", got.In, tt.in}, {"pod to pod", got.Local, tt.own}} {
				if (n.got > 100) != n.want || !n.want && n.got > 0 {
					t.Errorf("%d packets %s jumped, want any: %v", n.got, n.what, n.want)
				}
			}
			closes(t, c)
		})
	}
}

// TCP of which conntrack saw a few packets only must end as it would.
func TestAConnectionThatJumpedEndsInTheOrdinaryWay(t *testing.T) {
	f := newFast(t, mapNft())
	f.iptables("filter", kubeForward...)
	f.keep()
	f.needOn()
	pingPong(t, f.pods["b"], "80")
	for _, abort := range []bool{false, true} {
		t.Run(fmt.Sprint("abort ", abort), func(t *testing.T) {
			c := dial(t, f.internet, "10.0.0.21:80")
			go func() { _, _ = io.Copy(c, io.LimitReader(zeros{}, 64<<20)) }()
			if _, err := io.CopyN(io.Discard, c, 64<<20); err != nil {
				t.Fatal(err)
			}
			if !abort {
				closes(t, c)
				return
			}
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
			deadline := time.Now().Add(2 * time.Second)
			for time.Now().Before(deadline) {
				if out := f.pods["b"].Run(t, "ss", "-Htn", "state", "established"); strings.TrimSpace(out) == "" {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Error("the pod did not hear that its connection was aborted")
		})
	}
}

// kubeNat are the rules of kube-proxy in iptables mode for a service of the
// cluster address 10.96.0.10 and the NodePort 30080, whose one endpoint is given.
func kubeNat(endpoint string) []string {
	return []string{
		"-N KUBE-SERVICES", "-N KUBE-NODEPORTS", "-N KUBE-SVC-WEB", "-N KUBE-SEP-WEB", "-N KUBE-MARK-MASQ", "-N KUBE-POSTROUTING",
		"-A PREROUTING -j KUBE-SERVICES", "-A OUTPUT -j KUBE-SERVICES", "-A POSTROUTING -j KUBE-POSTROUTING",
		"-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
		"-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
		"-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0",
		"-A KUBE-POSTROUTING -j MASQUERADE --random-fully",
		"-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-WEB",
		"-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
		"-A KUBE-NODEPORTS -p tcp -m tcp --dport 30080 -j KUBE-SVC-WEB",
		"-A KUBE-SVC-WEB -j KUBE-SEP-WEB",
		"-A KUBE-SEP-WEB -s " + strings.Split(endpoint, ":")[0] + "/32 -j KUBE-MARK-MASQ",
		"-A KUBE-SEP-WEB -p tcp -m tcp -j DNAT --to-destination " + endpoint,
	}
}

// kubeNftables is what kube-proxy writes in nftables mode for the same service.
func kubeNftables(endpoint string) string {
	return `table ip kube-proxy {
	chain filter-prerouting-pre-dnat { type filter hook prerouting priority dstnat - 10; policy accept; ct state new jump firewall-check; }
	chain filter-input { type filter hook input priority -110; policy accept; ct state new jump endpoints-check; }
	chain filter-forward { type filter hook forward priority -110; policy accept; ct state new jump endpoints-check; ct state new jump cluster-ips-check; }
	chain firewall-check { }
	chain endpoints-check { ip daddr 10.96.0.99 tcp dport 80 reject; }
	chain cluster-ips-check { ip daddr 10.96.0.99 reject; }
	chain nat-prerouting { type nat hook prerouting priority dstnat; policy accept; jump services; }
	chain nat-output { type nat hook output priority -100; policy accept; jump services; }
	chain nat-postrouting { type nat hook postrouting priority srcnat; policy accept; meta mark & 0x4000 == 0x4000 meta mark set meta mark xor 0x4000 masquerade fully-random; }
	chain services { ip daddr 10.96.0.10 tcp dport 80 dnat to ` + endpoint + `; fib daddr type local tcp dport 30080 dnat to ` + endpoint + `; }
}`
}

// A reply to a connection that this node translated must be translated too, with
// and without the fast path, and be the only thing that does not take it.
func TestTranslatedConnectionsStayTranslatedBesideTheFastPath(t *testing.T) {
	for _, mode := range []string{"iptables", "nftables"} {
		t.Run("kube-proxy in mode "+mode, func(t *testing.T) {
			f := newFast(t, mapNft())
			if mode == "iptables" {
				f.iptables("filter", kubeForward...)
				f.iptables("nat", kubeNat("10.0.0.21:80")...)
			} else {
				f.node.Run(t, "nft", kubeNftables("10.0.0.21:80"))
			}
			f.node.Run(t, "nft", "add table ip ports; add chain ip ports pre { type nat hook prerouting priority dstnat - 1; };"+
				"add rule ip ports pre fib daddr type local tcp dport 8080 dnat to 10.0.0.21:80")
			f.keep()
			f.needOn()
			pingPong(t, f.pods["b"], "80")
			for _, tt := range []struct {
				name string
				from nettest.Netns
				to   string
			}{
				{"a NodePort of ENI 0 from outside", f.internet, "10.0.0.10:30080"},
				{"a NodePort of ENI 1 from outside", f.internet, "10.0.0.20:30080"},
				{"a hostPort from outside", f.internet, "10.0.0.10:8080"},
				{"a ClusterIP from a pod of this node", f.pods["a"], "10.96.0.10:80"},
				{"a NodePort from a pod of this node", f.pods["a"], "10.0.0.10:30080"},
				{"a ClusterIP from the node", f.node, "10.96.0.10:80"},
			} {
				t.Run(tt.name, func(t *testing.T) {
					known := f.knownTranslated()
					c := dial(t, tt.from, tt.to)
					if got := f.jumped(func() { exchange(t, c, 50) }); got.Out+got.In+got.Local > 0 {
						t.Errorf("packets of a translated connection jumped: %+v", got)
					}
					if f.knownTranslated() == known {
						t.Error("each packet of the connection has conntrack asked")
					}
					closes(t, c)
				})
			}
			// The same pod and port, asked straight.
			c := dial(t, f.internet, "10.0.0.21:80")
			if got := f.jumped(func() { exchange(t, c, 50) }); got.In == 0 || got.Out == 0 {
				t.Errorf("packets of a connection that nobody translates did not jump: %+v", got)
			}
		})
	}
}

// isOn wants packets of the connection to jump both ways.
func (f *fast) isOn(t *testing.T, c net.Conn) {
	t.Helper()
	if got := f.jumped(func() { exchange(t, c, 20) }); got.In == 0 || got.Out == 0 {
		t.Errorf("the fast path is not on: %+v, %+v", got, f.path.Status())
	}
}

// What others have that could decide about an established connection's packets
// turns the fast path off, in the middle of connections, and on again when it goes.
func TestPoliciesOfOthersTurnTheFastPathOff(t *testing.T) {
	f := newFast(t, mapNft())
	pingPong(t, f.pods["b"], "80")
	c := dial(t, f.internet, "10.0.0.21:80")
	f.isOn(t, c)
	for _, tt := range []struct {
		name      string
		set, take [][]string
		want      string // in the cause, "" for none
	}{
		{"nft drops some forwarded packets", [][]string{{"nft", "add table inet f; add chain inet f pass { type filter hook forward priority 0; }; add rule inet f pass ip saddr 192.0.2.1 drop"}},
			[][]string{{"nft", "delete table inet f"}}, "chain pass of inet f"},
		{"nft marks packets in prerouting", [][]string{{"nft", "add table ip f; add chain ip f pre { type filter hook prerouting priority mangle; }; add rule ip f pre meta mark set 7"}},
			[][]string{{"nft", "delete table ip f"}}, "chain pre of ip f"},
		{"nft drops by policy", [][]string{{"nft", "add table inet f; add chain inet f pass { type filter hook forward priority 0; policy drop; }; add rule inet f pass ip saddr 0.0.0.0/0 accept; add rule inet f pass meta l4proto tcp accept"}},
			[][]string{{"nft", "delete table inet f"}}, "chain pass of inet f drops"},
		{"nft drops by policy behind the acceptance of what is established", [][]string{{"nft", "add table inet f; add chain inet f pass { type filter hook forward priority 0; policy drop; }; add rule inet f pass ct state & (established | related) != 0 accept; add rule inet f pass tcp dport 22 drop"}},
			[][]string{{"nft", "delete table inet f"}}, ""},
		{"nft looks only at new connections", [][]string{{"nft", "add table inet f; add chain inet f pass { type filter hook forward priority 0; }; add rule inet f pass ct state new ip saddr 192.0.2.1 drop; add rule inet f pass ct state invalid drop"}},
			[][]string{{"nft", "delete table inet f"}}, ""},
		{"nft counts", [][]string{{"nft", "add table inet f; add chain inet f pass { type filter hook forward priority 0; }; add rule inet f pass counter"}},
			[][]string{{"nft", "delete table inet f"}}, ""},
		{"nft drops in a chain further down", [][]string{{"nft", "add table inet f; add chain inet f sub; add chain inet f pass { type filter hook forward priority 0; }; add rule inet f pass tcp dport 1-70 jump sub; add rule inet f sub drop"}},
			[][]string{{"nft", "delete table inet f"}}, "chain sub of inet f"},
		{"a condition that is not known here, then an acceptance, then a drop", [][]string{{"nft", "add table inet f; add chain inet f pass { type filter hook forward priority 0; }; add rule inet f pass rt classid 7 accept; add rule inet f pass tcp dport 9 drop"}},
			[][]string{{"nft", "delete table inet f"}}, "chain pass of inet f"},
		{"nft at a link", [][]string{{"nft", "add table netdev f; add chain netdev f in { type filter hook ingress device eth0 priority 0; }; add rule netdev f in ip saddr 192.0.2.1 drop"}},
			[][]string{{"nft", "delete table netdev f"}}, "chain in of netdev f"},
		{"nft at a link's other end", [][]string{{"nft", "add table netdev f; add chain netdev f out { type filter hook egress device eth0 priority 0; }; add rule netdev f out ip saddr 192.0.2.1 drop"}},
			[][]string{{"nft", "delete table netdev f"}}, "chain out of netdev f"},
		{"iptables drops some forwarded packets", [][]string{{"iptables-nft", "-A", "FORWARD", "-s", "192.0.2.1", "-j", "DROP"}},
			[][]string{{"iptables-nft", "-D", "FORWARD", "-s", "192.0.2.1", "-j", "DROP"}}, "chain FORWARD of ip filter"},
		{"iptables drops by policy", [][]string{{"iptables-nft", "-A", "FORWARD", "-p", "tcp", "-j", "ACCEPT"}, {"iptables-nft", "-P", "FORWARD", "DROP"}},
			[][]string{{"iptables-nft", "-P", "FORWARD", "ACCEPT"}, {"iptables-nft", "-F", "FORWARD"}}, "chain FORWARD of ip filter drops"},
		{"iptables marks what leaves", [][]string{{"iptables-nft", "-t", "mangle", "-A", "POSTROUTING", "-j", "MARK", "--set-mark", "1"}},
			[][]string{{"iptables-nft", "-t", "mangle", "-F", "POSTROUTING"}}, "chain POSTROUTING of ip mangle"},
		{"IPsec", [][]string{{"ip", "xfrm", "policy", "add", "src", "192.0.2.0/24", "dst", "198.51.100.0/24", "dir", "fwd", "tmpl", "proto", "esp", "mode", "tunnel"}},
			[][]string{{"ip", "xfrm", "policy", "flush"}}, "IPsec"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, args := range tt.set {
				if out, err := f.node.Try(args[0], args[1:]...); err != nil {
					t.Skipf("this machine can't: %v: %s", err, out)
				}
			}
			f.path.LookAgain()
			f.keep()
			got := f.jumped(func() { exchange(t, c, 20) })
			causes := strings.Join(f.path.Status().Off, "\n")
			if jumped := got.Out+got.In > 0; jumped != (tt.want == "") || !strings.Contains(causes, tt.want) {
				t.Errorf("%+v jumped, causes %q, want %q", got, causes, tt.want)
			}
			for _, args := range tt.take {
				f.node.Run(t, args[0], args[1:]...)
			}
			f.path.LookAgain()
			f.keep()
			f.isOn(t, c)
		})
	}
}
