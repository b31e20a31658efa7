package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	nodepkg "github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
)

// links returns the node's links whose names begin so.
func (v *vpc) links(prefix string) (names []string) {
	for line := range strings.Lines(v.node.Run(v.t, "ip", "-br", "link")) {
		if name, _, _ := strings.Cut(line, "@"); strings.HasPrefix(name, prefix) {
			names = append(names, strings.Fields(name)[0])
		}
	}
	return names
}

// checkNode returns what `pool check` says.
func (v *vpc) checkNode() (lines []string) {
	v.t.Helper()
	v.must(v.node.Do(func() (err error) {
		lines, err = nodepkg.Node{Cache: v.n.Cache, Now: nodecache.SinceBoot}.Check(v.t.Context())
		return err
	}))
	return lines
}

func (v *vpc) records() []string {
	v.t.Helper()
	entries, err := os.ReadDir(v.n.Cache.Path + ".pods")
	v.must(err)
	var names []string
	for _, e := range entries {
		if e.Name() != "lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestATakenHostPortIsRefusedWithItsOwner(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80), tcp(8081, 80).on("10.0.0.10")}})
			answerAll(t, v.pods["a"], "80")
			v.plugin("DEL", "b")
			for _, taken := range []port{tcp(8080, 81), tcp(8080, 80).on("0.0.0.0"), tcp(8081, 1).on("10.0.0.10")} {
				err := v.newAttachment(v.builtIn(), "b", map[string]any{"portMappings": []port{udp(8080, 80), taken}}).add()
				var e *types.Error
				if !errors.As(err, &e) || e.Code != 102 || !strings.Contains(e.Msg, fmt.Sprintf("tcp port %d", taken["hostPort"])) || !strings.Contains(e.Msg, "is taken by pod a") {
					t.Errorf("%v: error %v, want code 102 with the port and its owner", taken, err)
				}
				if records := v.records(); len(records) != 1 {
					t.Errorf("%v: records %v after the refusal", taken, records)
				}
			}
			// Others of the same number are free.
			v.must(v.newAttachment(v.builtIn(), "b", map[string]any{"portMappings": []port{udp(8080, 80), tcp(8081, 80).on("10.0.0.20")}}).add())
			for to, want := range map[string]string{"10.0.0.10:8080": internet4, "10.0.0.20:8080": internet4} {
				if seen := query(v.internet, "tcp", to); seen != want {
					t.Errorf("%s after the refusals: %s", to, seen)
				}
			}
		})
	}
}

// A sandbox that is gone without a DEL gives its port to the pod that replaces it.
func TestAHostPortOfADeadSandboxIsFree(t *testing.T) {
	v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
	v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
	v.plugin("DEL", "b")
	v.pods["a"].Delete()
	ctx, cancel := deadline(t)
	defer cancel()
	for strings.Contains(v.node.Run(t, "ip", "-br", "link"), "eni") && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	answerAll(t, v.pods["b"], "80")
	v.must(v.newAttachment(v.builtIn(), "b", map[string]any{"portMappings": []port{tcp(8080, 80)}}).add())
	if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != internet4 {
		t.Errorf("the new pod saw %s", seen)
	}
}

// What others remove is seen and put back from the records.
func TestHostPortsAreCheckedAndPutBack(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4, eni.IPv6) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			limit := map[string]any{"ingressRate": 80000000, "ingressBurst": 8000000, "egressRate": 80000000, "egressBurst": 8000000}
			a := v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80), udp(53, 53)}, "bandwidth": limit})
			answerAll(t, v.pods["a"], "80")
			v.must(a.check())
			if lines := v.checkNode(); len(lines) > 0 {
				t.Errorf("pool check of a good node: %q", lines)
			}
			damage := []string{"nft", "flush", "ruleset"}
			v.node.Run(t, damage[0], damage[1:]...)
			if err := a.check(); err == nil {
				t.Error("CHECK does not see that the ports are gone")
			}
			if lines := v.checkNode(); len(lines) == 0 {
				t.Error("pool check does not see that the ports are gone")
			}
			v.reload()
			v.must(a.check())
			for _, to := range []string{"10.0.0.20:8080", "[2001:db8::10]:8080"} {
				if seen := query(v.internet, "tcp", to); seen != internet4 && seen != internet6 {
					t.Errorf("after the repair: %s: %s", to, seen)
				}
			}
			v.node.Run(t, "tc", "qdisc", "del", "dev", v.links("enb")[0], "root")
			if err := a.check(); err == nil || !strings.Contains(err.Error(), "lacks tbf") {
				t.Errorf("CHECK without the limit: %v", err)
			}
			if lines := v.checkNode(); len(lines) != 1 || !strings.Contains(lines[0], "lacks tbf") {
				t.Errorf("pool check without the limit: %q", lines)
			}
			v.reload()
			v.must(a.check())
			if lines := v.checkNode(); len(lines) > 0 {
				t.Errorf("pool check when the limit is put back: %q", lines)
			}
		})
	}
}

// The kubelet's order: the sandbox's namespace is gone before DEL is called, twice.
func TestHostPortsAndLimitsGoWithoutTheSandbox(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			before := v.node.Run(t, "nft", "-s", "list", "ruleset")
			a := v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)},
				"bandwidth": map[string]any{"egressRate": 80000000, "egressBurst": 8000000}})
			v.pods["a"].Delete()
			v.must(a.del())
			v.must(a.del())
			if left := v.node.Run(t, "ip", "-br", "link"); strings.Contains(left, "enb") {
				t.Errorf("left over:\n%s", left)
			}
			if records := v.records(); len(records) > 0 {
				t.Errorf("records %v", records)
			}
			if after := v.node.Run(t, "nft", "-s", "list", "ruleset"); after != before {
				t.Errorf("the packet filter before:\n%s\nafter:\n%s", before, after)
			}
			if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != "refused" {
				t.Errorf("the closed port: %s", seen)
			}
		})
	}
}

// A UDP peer that sent to the port before it was open, and goes on sending when its
// pod is replaced, reaches the pod that has the port now.
func TestUDPPeersReachThePodThatHasThePort(t *testing.T) {
	v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
	peer := func() *net.UDPConn {
		var c *net.UDPConn
		v.must(v.internet.Do(func() (err error) {
			c, err = net.DialUDP("udp4", &net.UDPAddr{Port: 4000}, &net.UDPAddr{IP: net.ParseIP("10.0.0.10"), Port: 8080})
			return err
		}))
		return c
	}
	c := peer()
	defer c.Close()
	asks := func() string {
		v.must(c.SetDeadline(time.Now().Add(500 * time.Millisecond)))
		_, _ = c.Write([]byte("?")) // an answer of ICMP to the one before may be told here
		b := make([]byte, 100)
		n, _ := c.Read(b)
		return string(b[:n])
	}
	// Each time before the kernel would forget the flow of a port that nobody had.
	isHeard := func() bool {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			if asks() == internet4 {
				return true
			}
		}
		return false
	}
	asks()
	for _, id := range []string{"a", "b"} {
		answerAll(t, v.pods[id], "80")
		a := v.replacePod(v.builtIn(), id, map[string]any{"portMappings": []port{udp(8080, 80)}})
		if !isHeard() {
			t.Errorf("pod %s does not hear the peer:\n%s", id, v.node.Run(t, "cat", "/proc/net/nf_conntrack"))
		}
		v.must(a.del())
		asks()
	}
}

// A pod can't reach what listens on the node's loopback only, though the loopback
// reaches the pod.
func TestAPodDoesNotReachTheNodesLoopback(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
			answerAll(t, v.node, "7000")
			answerAll(t, v.pods["a"], "80")
			if seen := query(v.node, "tcp", "127.0.0.1:8080"); seen != "10.0.0.10" {
				t.Errorf("the loopback: %s", seen)
			}
			pod := v.pods["a"]
			pod.Run(t, "sh", "-c", "ip addr del 127.0.0.1/8 dev lo; echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet; ip route flush table local; ip route add local 10.0.0.11 dev lo table local;"+
				" ip route add 127.0.0.1 via 169.254.1.1 dev eth0 src 10.0.0.11 onlink")
			if seen := queryWithin(silence, pod, "tcp", "127.0.0.1:7000"); seen != "timeout" {
				t.Errorf("the node's loopback answers a pod: %s", seen)
			}
			if seen := query(pod, "tcp", "10.0.0.10:7000"); seen != "10.0.0.11" {
				t.Errorf("the node does not answer the pod at all: %s", seen)
			}
		})
	}
}

// limitedRate sends and returns in Mbit/s what arrives beyond the burst, from the first
// byte that is sent to the last one that is received. However busy the machine is, it
// is not more than the limit.
func limitedRate(t *testing.T, from, to nettest.Netns, addr string, burst int) float64 {
	t.Helper()
	const size = 1_500_000
	received := make(chan time.Time, 1)
	stop := serveTCP(t, to, "9", func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := io.CopyN(io.Discard, c, size); err != nil {
			t.Errorf("%d bytes arrived: %v", n, err)
		}
		received <- time.Now()
	})
	defer stop()
	c := dial(t, from, addr+":9")
	began := time.Now()
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Errorf("send to %s: %v", addr, err)
	}
	return float64(size-burst) * 8 / 1e6 / (<-received).Sub(began).Seconds()
}

// mustLimit measures until the limit is reached, which a busy machine may miss at first.
func mustLimit(t *testing.T, from, to nettest.Netns, addr string, limit float64, burst int) {
	t.Helper()
	var seen []float64
	for range 8 {
		got := limitedRate(t, from, to, addr, burst)
		seen = append(seen, got)
		if got > 1.1*limit {
			break
		}
		if got >= 0.7*limit {
			return
		}
	}
	t.Errorf("%s -> %s: %.2f Mbit/s, want about %.0f", from.Name, addr, seen, limit)
}

// bucketOf is the token bucket of the node's link that a name begins with so, as the
// kernel keeps it: rate, burst and the limit that the latency comes to.
func (v *vpc) bucketOf(prefix string) (b netlink.Tbf) {
	v.t.Helper()
	v.must(v.node.Do(func() error {
		for _, name := range v.links(prefix) {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			list, err := netlink.QdiscList(link)
			if err != nil {
				return err
			}
			for _, q := range list {
				if bucket, ok := q.(*netlink.Tbf); ok {
					b = *bucket
					b.QdiscAttrs = netlink.QdiscAttrs{} // where it is
				}
			}
		}
		return nil
	}))
	if b.Rate == 0 {
		v.t.Fatalf("no link %s... has a token bucket", prefix)
	}
	return b
}

// The buckets are the very same, whatever the limit; that they limit is measured once.
func TestLimitsAreThoseOfTheBandwidthPlugin(t *testing.T) {
	v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
	for i, limit := range []map[string]any{
		{"ingressRate": 10000000, "ingressBurst": 1600000, "egressRate": 20000000, "egressBurst": 1600000},
		{"ingressRate": 1000000, "ingressBurst": 800000, "egressRate": 1234567, "egressBurst": 7654321},
		{"ingressRate": 8000000000, "ingressBurst": 2147483647, "egressRate": 30000000000, "egressBurst": 80000000},
	} {
		var reference map[string]netlink.Tbf
		for _, way := range []string{"chained", "built in"} {
			// The plugin too limits what the pod receives on the link that enipool made.
			conf, prefixes := v.chained(), map[string]string{"ingress": "eni", "egress": "bwp"}
			if way == "built in" {
				conf, prefixes["egress"] = v.builtIn(), "enb"
			}
			a := v.replacePod(conf, "a", map[string]any{"bandwidth": limit})
			buckets := map[string]netlink.Tbf{}
			for direction, prefix := range prefixes {
				buckets[direction] = v.bucketOf(prefix)
			}
			if reference == nil {
				reference = buckets
			} else if diff := cmp.Diff(reference, buckets, cmp.Comparer(sameBucket)); diff != "" {
				t.Errorf("%v: the bandwidth plugin's buckets and ours (-theirs +ours):\n%s", limit, diff)
			}
			if i == 0 {
				mustLimit(t, v.internet, v.pods["a"], "10.0.0.11", 10, 200_000)
				mustLimit(t, v.pods["a"], v.internet, internet4, 20, 200_000)
			}
			v.must(a.del())
			if left := v.node.Run(t, "ip", "-br", "link"); strings.Contains(left, "enb") || strings.Contains(left, "bwp") {
				t.Errorf("%s: left over:\n%s", way, left)
			}
		}
	}
}

// sameBucket allows a thousandth of the burst: the plugin counts it in ticks of 64 ns
// and we in bytes, and the kernel rounds both.
func sameBucket(a, b netlink.Tbf) bool {
	larger, smaller := max(a.Buffer, b.Buffer), min(a.Buffer, b.Buffer)
	a.Buffer = b.Buffer
	return a == b && larger-smaller <= larger/1000
}

// A node whose configuration called portmap and bandwidth until now: the pods that
// they served end without them in the configuration, and leave nothing.
func TestPodsOfTheFormerChainEndByTheNewConfiguration(t *testing.T) {
	v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
	a := v.replacePod(v.chained(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)},
		"bandwidth": map[string]any{"ingressRate": 8000000, "ingressBurst": 8000000, "egressRate": 8000000, "egressBurst": 8000000}})
	if rules := v.node.Run(t, "iptables-save"); !strings.Contains(rules, "--dport 8080") || len(v.links("bwp")) != 1 {
		t.Fatalf("the chain made something else:\n%s", rules)
	}
	a.conf = v.builtIn()
	v.must(a.del())
	if rules := v.node.Run(t, "iptables-save"); strings.Contains(rules, "8080") || strings.Contains(rules, "CNI-DN") {
		t.Errorf("rules are left:\n%s", rules)
	}
	if left := v.links("bwp"); len(left) > 0 {
		t.Errorf("links %v are left", left)
	}
	// And the same port by enipool itself, which the old one would have led astray.
	answerAll(t, v.pods["a"], "80")
	v.must(a.add())
	if seen := query(v.internet, "tcp", "10.0.0.20:8080"); seen != internet4 {
		t.Errorf("the new pod saw %s", seen)
	}
}

// The records are not in the way of a packet: whoever loses them, or damages one, closes no
// port and lifts no limit of a living pod, with the node cache or without.
func TestALivePodKeepsItsHostPortsAndLimitsWithoutItsRecord(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4, eni.IPv6) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			limit := map[string]any{"ingressRate": 80000000, "ingressBurst": 8000000, "egressRate": 80000000, "egressBurst": 8000000}
			v.plugin("DEL", "a")
			a := v.newAttachment(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80), tcp(8081, 80).on("10.0.0.10")}, "bandwidth": limit})
			a.refuseFormer()
			v.must(a.add())
			answerAll(t, v.pods["a"], "80")
			folder := v.n.Cache.Path + ".pods"
			record := filepath.Join(folder, v.records()[0])
			was, err := os.ReadFile(record)
			v.must(err)
			for _, damage := range []func() error{
				func() error { return os.RemoveAll(folder) },
				func() error { return os.Truncate(record, int64(len(was)-5)) },
			} {
				v.must(damage())
				lines := v.checkNode()
				if all := strings.Join(lines, "\n"); !strings.Contains(all, "record of pod a was lost") || strings.Contains(all, "firewall:") {
					t.Errorf("pool check: %q", lines)
				}
				v.reload()
				for _, to := range []string{"10.0.0.20:8080", "10.0.0.10:8081", "[2001:db8::10]:8080"} {
					if seen := query(v.internet, "tcp", to); seen != internet4 && seen != internet6 {
						t.Errorf("%s: %s", to, seen)
					}
				}
				if is, err := os.ReadFile(record); err != nil || string(is) != string(was) {
					t.Errorf("the record was\n%s\nis\n%s (%v)", was, is, err)
				}
				v.must(a.check())
				if lines := v.checkNode(); len(lines) > 0 {
					t.Errorf("pool check after the repair: %q", lines)
				}
			}
			v.must(errors.Join(os.RemoveAll(folder), os.Remove(v.n.Cache.Path)))
			v.load(v.inv)
			if seen := query(v.internet, "tcp", "10.0.0.10:8081"); seen != internet4 {
				t.Errorf("after the node cache was lost: %s", seen)
			}
			if lines := v.checkNode(); len(lines) > 0 || len(v.records()) != 1 {
				t.Errorf("after the node cache was lost: records %q, pool check %q", v.records(), lines)
			}
			// Without a repair in between DEL finds all of it by itself.
			for _, damage := range []func() error{
				func() error { return os.RemoveAll(folder) },
				func() error { return os.Truncate(record, 20) },
			} {
				v.must(damage())
				v.must(a.del())
				if left := append(v.links("enb"), v.records()...); len(left) > 0 {
					t.Errorf("left by DEL: %q", left)
				}
				if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != "refused" {
					t.Errorf("the closed port: %s", seen)
				}
				if lines := v.checkNode(); len(lines) > 0 {
					t.Errorf("pool check after DEL: %q", lines)
				}
				v.must(a.add())
			}
		})
	}
}

// refuseFormer makes it an error to call the portmap or bandwidth plugin for the pod.
func (a *attachment) refuseFormer() {
	a.v.t.Helper()
	dir := a.v.t.TempDir()
	for _, name := range []string{"portmap", "bandwidth"} {
		a.v.must(os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	}
	a.cni = libcni.NewCNIConfigWithCacheDir(append([]string{dir}, filepath.SplitList(cniPath(a.v.t))...), a.v.t.TempDir(), nil)
}

func TestAHostPortOfOneAddressLeadsBeforeTheSameOneOfAll(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			answerAll(t, v.pods["a"], "80")
			answerAll(t, v.pods["b"], "81") // to port 80 it says no
			ask := map[string]map[string]any{"a": {"portMappings": []port{tcp(9090, 80)}}, "b": {"portMappings": []port{tcp(9090, 80).on("10.0.0.10")}}}
			for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
				for _, id := range []string{"a", "b"} {
					v.plugin("DEL", id)
				}
				var list []*attachment
				for _, id := range order {
					list = append(list, v.newAttachment(v.builtIn(), id, ask[id]))
					v.must(list[len(list)-1].add())
				}
				for to, want := range map[string]string{"10.0.0.10:9090": "refused", "10.0.0.20:9090": internet4} {
					if seen := query(v.internet, "tcp", to); seen != want {
						t.Errorf("%v: %s: %s, want %s", order, to, seen, want)
					}
				}
				for _, a := range list {
					v.must(a.del())
				}
			}
		})
	}
}
