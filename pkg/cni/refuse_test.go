package cni

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
	"golang.org/x/sys/unix"
)

func discard(*current.Result) error { return nil }

// Each refused ADD leaves the node as it was: that is checked after every test.
func TestARefusedAddSaysWhyAndChangesNothing(t *testing.T) {
	for _, tt := range []struct {
		name, netns, conf, args string
		code                    uint
		msg                     string
	}{
		{"the node's own namespace", "/proc/thread-self/ns/net", plain, "", 8, "network namespace is the node's own: /proc/thread-self/ns/net"},
		{"no namespace", "/run/netns/none", plain, "", 8, "network namespace is gone: /run/netns/none does not exist"},
		{"a plain file", "/proc/cmdline", plain, "", 8, "network namespace is gone: /proc/cmdline is a plain file, not a namespace"},
		{"an option of a wrong type", "", `{"cniVersion":"1.0.0","name":"pods","type":"enipool","mtu":"big"}`, "", 7, `mtu: "big": must be 0 for the ENI's, or 576 to 65535`},
		{"an impossible value", "", `{"cniVersion":"1.0.0","name":"pods","type":"enipool","waitForAddress":"-1s"}`, "", 7, `waitForAddress: "-1s": must be a duration like "5s", from "0s" to "1m40s"`},
		{"malformed CNI_ARGS", "", plain, "FOO", 4, `CNI_ARGS: pair "FOO" has no =`},
		{"a fixed address", "", plain, "IgnoreUnknown=1;IP=10.0.0.12", 4, "CNI_ARGS: IP=10.0.0.12 asks for a fixed address: the pool chooses addresses"},
		{"a capability that somebody declared", "", `{"cniVersion":"1.0.0","name":"pods","type":"enipool","runtimeConfig":{"mac":"0a:00:00:00:00:01"}}`, "", 2,
			`runtimeConfig.mac: "0a:00:00:00:00:01": must be absent: the pool chooses addresses; remove the capability from the network configuration`},
		{"a prevResult of another shape", "", `{"cniVersion":"1.0.0","name":"pods","type":"enipool","prevResult":"x"}`, "", 7, `prevResult: "x": must be a result of version 1.0.0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, ipam.Settings{})
			netns := tt.netns
			if netns == "" {
				netns = nettest.NewNetns(t, "pod").Path
			}
			c, confErr := parse(tt.conf)
			r, err := NewRequest(c, confErr, "pod", netns, "eth0", tt.args, false)
			if err == nil {
				err = l.Add(t.Context(), r, discard)
			}
			if err == nil {
				t.Fatal("it was not refused")
			}
			if e := Error(err); e.Code != tt.code || !strings.HasPrefix(e.Msg, tt.msg) {
				t.Errorf("code %d %q, want %d %q", e.Code, e.Msg, tt.code, tt.msg)
			}
			if got := l.takenAddresses(); got != "" {
				t.Errorf("node state:\n%s", got)
			}
		})
	}
}

func TestAFailedAddIsUndone(t *testing.T) {
	boom := errors.New("the runtime hung up")
	for _, tt := range []struct {
		name    string
		prepare func(nettest.Netns)
		emit    func(*current.Result) error
		code    uint
	}{
		{"the pod has such a link", func(ns nettest.Netns) { ns.Run(t, "ip", "link", "add", "eth0", "type", "bridge") }, discard, 4},
		{"the answer can't be written", func(nettest.Netns) {}, func(*current.Result) error { return boom }, 999},
	} {
		for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
			t.Run(tt.name+", routing "+routing.String(), func(t *testing.T) {
				l := newLab(t, ipam.Settings{Routing: routing})
				ns := nettest.NewNetns(t, "pod")
				tt.prepare(ns)
				before := l.file()
				r, err := l.request("pod", ns.Path, plain, false)
				if err != nil {
					t.Fatal(err)
				}
				if err = l.Add(t.Context(), r, tt.emit); err == nil || Error(err).Code != tt.code {
					t.Fatalf("error %v, want code %d", err, tt.code)
				}
				if l.file() != before {
					t.Errorf("the node state is not as it was:\n%s", l.takenAddresses())
				}
			})
		}
	}
}

func (l *lab) file() string {
	l.t.Helper()
	text, err := os.ReadFile(l.Cache.Path)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

func TestASecondAddOfALiveSandboxKeepsTheFirst(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	ns := nettest.NewNetns(t, "a")
	res := l.mustAdd("a", ns.Path, plain)
	_, err := l.add("a", ns.Path, plain)
	if err == nil || Error(err).Code != CodeDuplicate {
		t.Fatalf("second add: %v", err)
	}
	if err := l.check("a", ns.Path, plain, res); err != nil {
		t.Errorf("the first one: %v", err)
	}
	l.mustDel("a", ns.Path, plain)
}

func inodeOf(t *testing.T, ns nettest.Netns) uint64 {
	t.Helper()
	var is unix.Stat_t
	if err := unix.Stat(ns.Path, &is); err != nil {
		t.Fatal(err)
	}
	return is.Ino
}

func TestAnAddReplacesTheSameSandboxIfItIsDead(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	ns := nettest.NewNetns(t, "a")
	l.mustAdd("a", ns.Path, plain)
	was := inodeOf(t, ns)
	ns.Delete()
	l.waitForNoLink(hostDev("a"))
	ns = nettest.NewNetns(t, "a")
	if inodeOf(t, ns) == was { // the kernel gives numbers again, and one that is taken can't be
		f, err := os.Open(ns.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ns.Delete()
		ns = nettest.NewNetns(t, "a")
	}
	l.mustAdd("a", ns.Path, plain)
	if got, want := l.takenAddresses(), "10.0.0.11 cooling\n10.0.0.12 used a"; got != want {
		t.Errorf("node state:\n%s\nwant:\n%s", got, want)
	}
	l.mustDel("a", ns.Path, plain)
}

func TestAnExhaustedPoolGivesTheNumbers(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	for _, id := range []string{"a", "b", "c", "d"} {
		l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
	}
	l.mustDel("d", "", plain)
	l.now += 10 * time.Second
	l.keepNode()
	late := nettest.NewNetns(t, "late")
	_, err := l.add("late", late.Path, plain)
	const numbers = "no free ipv4 address: 4 addresses on 2 ENIs, 3 used, 1 cooling (next free in 20s)"
	if want := "an address is free in 20s: " + numbers; err == nil || Error(err).Code != 11 || err.Error() != want {
		t.Errorf("error %q, want %q and code 11", err, want)
	}
	l.now += 20 * time.Second
	l.mustAdd("late", late.Path, plain)
	for _, id := range []string{"a", "b", "c", "late"} {
		l.mustDel(id, "", plain)
	}
}

func TestAnAddThatWaitsGetsTheAddressThatComes(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	waiting := strings.Replace(plain, `"0s"`, `"1m"`, 1)
	for _, id := range []string{"a", "b", "c", "d"} {
		l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
	}
	ns := nettest.NewNetns(t, "late")
	done := make(chan error, 1)
	go func() {
		_, err := l.add("late", ns.Path, waiting)
		done <- err
	}()
	// Whether the agent adds it before, while or after the ADD begins to wait.
	err := l.Cache.Replace(t.Context(), func(s *ipam.State, err error) (*ipam.State, error) {
		if err != nil {
			return nil, err
		}
		more := eni.Address{Addr: s.ENIs[1].V4.Primary.Addr().Next(), ENI: 1}
		for range 5 {
			more.Addr = more.Addr.Next()
		}
		s.Addresses = append(s.Addresses, more)
		l.setTable(s)
		return s, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c", "d", "late"} {
		l.mustDel(id, "", plain)
	}
}

func TestAnExhaustedPoolFreesDeadSandboxes(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	for _, id := range []string{"a", "b", "c", "dead"} {
		l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
	}
	l.kill("dead")
	if _, err := l.add("late", nettest.NewNetns(t, "late").Path, plain); err == nil {
		t.Error("a dead sandbox's address was handed out before it had cooled")
	}
	if got := l.takenAddresses(); !strings.HasSuffix(got, "10.0.0.22 cooling") {
		t.Errorf("node state:\n%s", got)
	}
	for _, id := range []string{"a", "b", "c"} {
		l.mustDel(id, "", plain)
	}
}

// The cache keeps whole milliseconds, and an ADD that may not wait looks in the same one.
func TestWithoutACoolDownADeadSandboxServesTheAddThatFindsIt(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	err := l.Cache.Replace(t.Context(), func(s *ipam.State, err error) (*ipam.State, error) {
		if err == nil {
			s.Settings.CoolDown = 0
		}
		return s, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c", "dead"} {
		l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
	}
	l.kill("dead")
	l.now += 100 * time.Microsecond
	l.mustAdd("late", nettest.NewNetns(t, "late").Path, plain)
	l.delAll("a", "b", "c", "late")
}

func TestStatusTellsWhetherAPodCouldStart(t *testing.T) {
	const conf = `{"cniVersion":"1.1.0","name":"pods","type":"enipool"}`
	const strict = `{"cniVersion":"1.1.0","name":"pods","type":"enipool","statusFailsWhenExhausted":true}`
	status := func(l *lab, conf string) (string, error) {
		r, err := l.request("", "", conf, false)
		if err != nil {
			t.Fatal(err)
		}
		return l.Status(context.Background(), r)
	}
	l := newLab(t, ipam.Settings{})
	if warning, err := status(l, strict); warning != "" || err != nil {
		t.Errorf("free addresses: %q, %v", warning, err)
	}
	before := l.file()
	for _, id := range []string{"a", "b", "c", "d"} {
		l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
	}
	if warning, err := status(l, conf); warning == "" || err != nil {
		t.Errorf("exhausted: %q, %v; want a warning and no error", warning, err)
	}
	if _, err := status(l, strict); err == nil || Error(err).Code != 50 {
		t.Errorf("exhausted with statusFailsWhenExhausted: %v", err)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		l.mustDel(id, "", plain)
	}
	broken := map[string]func(text string) string{
		"damaged head": func(s string) string { return "x" + s[1:] },
		"damaged line": func(s string) string { return s[:len(s)-40] + "x" + s[len(s)-39:] },
		"cut":          func(s string) string { return s[:len(s)-100] },
		"empty":        func(string) string { return "" },
	}
	for name, damage := range broken {
		if err := os.WriteFile(l.Cache.Path, []byte(damage(before)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := status(l, conf); err == nil || Error(err).Code != 50 {
			t.Errorf("%s: %v, want code 50", name, err)
		}
	}
	if err := os.Remove(l.Cache.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := status(l, conf); err == nil || Error(err).Code != 50 {
		t.Errorf("missing: %v, want code 50", err)
	}
	if err := os.WriteFile(l.Cache.Path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Where the pool can't be watched (a node may be out of inotify instances) an ADD
// that waits looks from time to time.
func TestAnAddWaitsWithoutAWatchToo(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	r, err := l.request("late", nettest.NewNetns(t, "late").Path, patient, false)
	if err != nil {
		t.Fatal(err)
	}
	nowhere := &Plugin{Log: slog.New(slog.DiscardHandler), Cache: nodecache.Cache{Path: filepath.Join(t.TempDir(), "none", "node.cache")}}
	s := &search{Plugin: l.Plugin, host: nil, request: r, reclaimed: time.Now(), watch: nowhere.watchCache}
	done := make(chan error, 1)
	go func() { done <- s.awaitAddress(t.Context(), &ipam.Exhausted{}) }()
	for l.pendingADDs() == "" {
		time.Sleep(time.Millisecond)
	}
	l.addAddress()
	if err := <-done; err != nil || len(s.lease.Addresses) != 1 {
		t.Errorf("%v, %v", s.lease, err)
	}
	l.mustDel("late", "", plain)
}
