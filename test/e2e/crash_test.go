package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
)

// point is a system call of a run: the nth of its name.
type point struct {
	name string
	nth  int
}

// inner are the system calls by which the Go runtime keeps house. They change
// nothing outside the process, so being killed at one of them is the same as
// being killed at the next of the others.
var inner = strings.Fields(`rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack tgkill futex mmap munmap madvise
	nanosleep gettid getpid sched_getaffinity sched_yield clone clone3 arch_prctl prctl prlimit64 getrandom execve exit_group`)

// points lists the system calls that the plugin's main thread, which does all
// the work, makes when it serves c.
func (n *node) points(c call) []point {
	n.t.Helper()
	trace := filepath.Join(n.t.TempDir(), "trace")
	c.wrap = traced(trace)
	n.mustRun(c)
	return pointsOf(n.t, trace, map[string]int{"sendto": 2, "pwrite64": 1, "flock": 2})
}

// traced is the command line that writes down the plugin's system calls.
func traced(file string) []string {
	return []string{"strace", "-qq", "-e", "signal=none", "-o", file}
}

// pointsOf reads the system calls of a trace that change something outside the process.
// A whole run has so many of each of least.
func pointsOf(t testing.TB, trace string, least map[string]int) []point {
	t.Helper()
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	var list []point
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, "(")
		if count[name]++; !slices.Contains(inner, name) {
			list = append(list, point{name, count[name]})
		}
	}
	for name, n := range least {
		if count[name] < n {
			t.Fatalf("this is no whole run, which has %d calls of %s: %v", n, name, count)
		}
	}
	return list
}

// killed is the command line that kills the plugin as it enters the call.
func (p point) killed() []string {
	return []string{"strace", "-qq", "-o", "/dev/null", "-e", "trace=" + p.name, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", p.name, p.nth)}
}

// A plugin killed at any system call of an ADD or a DEL leaves nothing that a
// DEL, a GC or a reboot does not clean up, and no address is lost or has two
// owners.
func TestKilledAtAnySystemCallNothingIsLostOrLeft(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace: make test installs it where it may")
	}
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		for _, command := range []string{"ADD", "DEL"} {
			for by, way := range recoveries() {
				t.Run(fmt.Sprintf("%s, routing %s, recovered by %s", command, routing, by), func(t *testing.T) {
					killEverywhere(t, newNode(t, ipam.Settings{Routing: routing}, 1, 2), command, []recovery{way})
				})
			}
		}
	}
}

// The same holds for a pod with host ports and limits. It makes so many system calls that
// each is recovered from in one way, and its neighbours in the others. With iptables a
// call takes ten times as long, so there a quarter of all is drawn.
func TestKilledAtAnySystemCallNoHostPortOrLimitIsLeft(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace: make test installs it where it may")
	}
	for _, command := range []string{"ADD", "DEL"} {
		for name, settings := range map[string]ipam.Settings{"nftables": {}, "iptables": {Firewall: ipam.Iptables, Routing: ipam.Rule}} {
			t.Run(command+", "+name, func(t *testing.T) {
				n := newNode(t, settings, 1, 2)
				if name == "iptables" {
					n.every = 4
				}
				if settings.Routing == ipam.Rule {
					n.filterPackets() // in routing mode map it is there
				}
				killEverywhere(t, n, command, slices.Collect(maps.Values(recoveries())),
					`"runtimeConfig":{"portMappings":[{"hostPort":80,"containerPort":8080,"protocol":"tcp"},`+
						`{"hostPort":53,"containerPort":53,"protocol":"udp","hostIP":"10.0.0.2"}],`+
						`"bandwidth":{"ingressRate":8000000,"ingressBurst":800000,"egressRate":8000000,"egressBurst":800000}}`)
			})
		}
	}
}

// filterPackets sets the node's firewall up, without the routing that would be left.
func (n *node) filterPackets() {
	n.t.Helper()
	n.view(func(s *ipam.State) {
		if _, err := firewall.Apply(n.t.Context(), netconf.NewFirewall(s)); err != nil {
			n.t.Fatal(err)
		}
	})
	n.t.Cleanup(func() {
		if _, err := firewall.Remove(context.Background()); err != nil {
			n.t.Error(err)
		}
	})
}

// The same holds for a pod that claims what is reserved for it: wherever it is killed, that is its own or
// reserved for it, and never any pod's.
func TestKilledAtAnySystemCallWhatIsReservedStaysSo(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace: make test installs it where it may")
	}
	for _, command := range []string{"ADD", "DEL"} {
		t.Run(command, func(t *testing.T) {
			n := newNode(t, ipam.Settings{}, 1, 2)
			n.reserved = netip.MustParseAddr("10.0.1.11")
			n.reserve(n.reserved, "pod")
			killEverywhere(t, n, command, slices.Collect(maps.Values(recoveries())))
		})
	}
}

// reserve keeps an address for the pod of the name in the namespace db.
func (n *node) reserve(addr netip.Addr, pod string) {
	n.t.Helper()
	err := n.Cache.Replace(n.t.Context(), func(s *ipam.State, err error) (*ipam.State, error) {
		if err == nil {
			s.Reserve(map[netip.Addr]eni.Reservation{addr: {Topology: "db", Namespace: "db", Pod: pod}}, nodecache.SinceBoot())
		}
		return s, err
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// extras returns what there is of pods' host ports and limits.
func (n *node) extras() (left []string) {
	records, err := filepath.Glob(n.Cache.Path + ".pods/eni*")
	if err != nil {
		n.t.Fatal(err)
	}
	// What was half written is no record, and goes with the next look at all records.
	records = slices.DeleteFunc(records, func(name string) bool { return strings.HasSuffix(name, ".new") })
	limits, err := filepath.Glob("/proc/sys/net/ipv4/conf/enb*")
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(nettest.Run(n.t, "nft", "list", "ruleset")) {
		if strings.Contains(line, " . 80 : ") || strings.Contains(line, " . 53 : ") || strings.Contains(line, "elements = { 10.0.1.1") && strings.Contains(line, " . 10.0.1.1") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	for line := range strings.Lines(nettest.Run(n.t, "iptables-save", "-t", "nat")) {
		if strings.Contains(line, "--dport ") || strings.Contains(line, "-s 10.0.1.1") && strings.Contains(line, "-d 10.0.1.1") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	return slices.Concat(left, records, limits)
}

// recovery is a way to clean up after a plugin that was killed.
type recovery func(n *node, ns nettest.Netns)

func recoveries() map[string]recovery {
	return map[string]recovery{
		"DEL": func(n *node, ns nettest.Netns) {
			n.mustRun(call{command: "DEL", id: "pod", netns: ns.Path, conf: n.conf("1.0.0")})
		},
		"GC": func(n *node, ns nettest.Netns) {
			n.mustRun(call{command: "GC", conf: n.conf("1.1.0", `"cni.dev/valid-attachments":[{"containerID":"first","ifname":"eth0"}]`)})
		},
		"the end of the sandbox and a GC without a list": func(n *node, ns nettest.Netns) {
			ns.Delete()
			n.waitForNoPodLink()
			n.mustRun(call{command: "GC", conf: n.conf("1.1.0")})
		},
	}
}

// killEverywhere kills the command of a pod with extra keys in its configuration, at one
// system call after the other, and recovers from that in one way after the other.
func killEverywhere(t *testing.T, n *node, command string, ways []recovery, extra ...string) {
	// One address on ENI 0 is taken, so that the pod is on ENI 1, where routing
	// mode rule has rules.
	first := nettest.NewNetns(t, "first")
	n.mustRun(call{command: "ADD", id: "first", netns: first.Path, conf: n.conf("1.0.0")})
	tries := 0
	try := func(run func(c call)) {
		ns := nettest.NewNetns(t, "pod")
		c := call{command: command, id: "pod", netns: ns.Path, conf: n.conf("1.0.0", extra...), args: "K8S_POD_NAMESPACE=db;K8S_POD_NAME=pod"}
		if command == "DEL" {
			n.mustRun(call{command: "ADD", id: "pod", netns: ns.Path, conf: c.conf, args: c.args})
		}
		run(c)
		ways[tries%len(ways)](n, ns)
		tries++
		ns.Delete()
	}
	var points []point
	for range 3 { // the shortest: while a call waits for a link, it asks more than once
		try(func(c call) {
			if p := n.points(c); points == nil || len(p) < len(points) {
				points = p
			}
		})
	}
	if n.every > 1 {
		at := len(t.Name()) // the same calls at each run, others in each test
		points = slices.DeleteFunc(points, func(point) bool { at++; return at%n.every > 0 })
	}
	killed := 0
	for _, p := range points {
		try(func(c call) {
			c.wrap = p.killed()
			if n.run(c).exit != 0 {
				killed++
			}
			n.oneOwnerAtMost(p)
		})
		n.mustBeAsBefore(p)
	}
	// A few calls are the runtime's after all and do not come in every run. A sample may
	// have more than its share of them.
	if killed < len(points)*9/10-n.every {
		t.Errorf("only %d of %d runs were killed: %v", killed, len(points), points)
	}
	n.mustRun(call{command: "DEL", id: "first", netns: first.Path, conf: n.conf("1.0.0")})
}

func (n *node) oneOwnerAtMost(at point) {
	n.t.Helper()
	n.view(func(s *ipam.State) {
		if err := s.Check(); err != nil || len(s.Damaged) > 0 {
			n.t.Fatalf("killed at %v: %v %v", at, err, s.Damaged)
		}
		for _, a := range s.Addresses {
			if kept := a.Reservation != nil; kept != (a.Addr == n.reserved) {
				n.t.Fatalf("killed at %v: %s is %s, reserved for %v", at, a.Addr, a.State, a.Reservation)
			}
		}
	})
}

// mustBeAsBefore wants the first pod's address used, all others free or cooling,
// and of the kernel just the first pod's link.
func (n *node) mustBeAsBefore(at point) {
	n.t.Helper()
	n.view(func(s *ipam.State) {
		if used := s.Used(); len(used) != 1 || used[0].Owner.Container != "first" {
			n.t.Fatalf("killed at %v: used %v", at, used)
		}
		if c := s.Count(time.Hour*1e6, nil); c.Free+c.Reserved != 2 || n.reserved.IsValid() != (c.Reserved == 1) || len(s.Damaged) > 0 {
			n.t.Fatalf("killed at %v: %+v, damaged %v", at, c, s.Damaged)
		}
	})
	if links := podLinks(n.t); len(links) != 1 {
		n.t.Fatalf("killed at %v: links %v", at, links)
	}
	if left := n.extras(); len(left) > 0 {
		n.t.Fatalf("killed at %v: left over %q", at, left)
	}
	if rules := nettest.Run(n.t, "ip", "rule", "show", "priority", "1538"); rules != "" {
		n.t.Fatalf("killed at %v: rules %s", at, rules)
	}
}

// podLinks returns the node's ends of pods' links.
func podLinks(t testing.TB) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/sys/net/ipv4/conf/eni*")
	if err != nil {
		t.Fatal(err)
	}
	return links
}

// waitForNoPodLink waits until the kernel has finished off a deleted namespace,
// with all pods' links but the first one's.
func (n *node) waitForNoPodLink() {
	n.t.Helper()
	ctx, cancel := deadline(n.t)
	defer cancel()
	for len(podLinks(n.t)) > 1 {
		select {
		case <-ctx.Done():
			n.t.Fatalf("links %v did not go with their namespace", podLinks(n.t))
		case <-time.After(time.Millisecond):
		}
	}
}

// rebooted makes the machine look as after a reboot to what runs in the tests'
// mount namespace: another boot id, no namespaces, no links of pods.
func rebooted(t *testing.T) {
	t.Helper()
	id := filepath.Join(t.TempDir(), "boot_id")
	if err := os.WriteFile(id, []byte("11111111-2222-3333-4444-555555555555\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const file = "/proc/sys/kernel/random/boot_id"
	nettest.Run(t, "mount", "--bind", id, file)
	t.Cleanup(func() { nettest.Run(t, "umount", file) })
}

func TestAfterARebootNothingOfTheOldBootIsServed(t *testing.T) {
	n := newNode(t, ipam.Settings{}, 2)
	ns := nettest.NewNetns(t, "old")
	n.mustRun(call{command: "ADD", id: "old", netns: ns.Path, conf: n.conf("1.0.0")})
	ns.Delete()
	ctx, cancel := deadline(t)
	defer cancel()
	for len(podLinks(t)) > 0 {
		select {
		case <-ctx.Done():
			t.Fatal("the namespace did not go")
		case <-time.After(time.Millisecond):
		}
	}
	t.Run("rebooted", func(t *testing.T) {
		rebooted(t)
		fresh := nettest.NewNetns(t, "fresh")
		if e := n.run(call{command: "ADD", id: "fresh", netns: fresh.Path, conf: n.conf("1.0.0")}).cniError(t); e.Code != 11 {
			t.Errorf("ADD: %+v, want code 11", e)
		}
		if e := n.run(call{command: "STATUS", conf: n.conf("1.1.0")}).cniError(t); e.Code != 50 {
			t.Errorf("STATUS: %+v, want code 50", e)
		}
		n.mustRun(call{command: "DEL", id: "old", conf: n.conf("1.0.0")})
		// The agent makes a new cache, in which nobody has anything.
		err := n.Cache.Replace(t.Context(), func(old *ipam.State, err error) (*ipam.State, error) {
			if old != nil || err == nil {
				t.Errorf("the old boot's cache was offered: %v", err)
			}
			return &ipam.State{Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		n.nothingLeft()
	})
	// Back in the first boot that new cache is the stranger.
	if err := os.Remove(n.Cache.Path); err != nil {
		t.Fatal(err)
	}
	err := n.Cache.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) {
		return &ipam.State{Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
