package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
)

// waitingAdd is an ADD in the background.
type waitingAdd struct {
	call
	cmd *exec.Cmd
	out bytes.Buffer
	log bytes.Buffer
}

func (n *node) patient() string {
	return strings.Replace(n.conf("1.0.0"), `"waitForAddress":"0s"`, `"waitForAddress":"100s"`, 1)
}

func (n *node) startAdd(c call) *waitingAdd {
	n.t.Helper()
	c.command, c.conf = "ADD", n.patient()
	a := &waitingAdd{call: c, cmd: n.cmd(c)}
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.log
	if err := a.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = a.cmd.Process.Kill() })
	return a
}

// startWaiting starts an ADD and returns when it has its place in the queue and says
// that it waits.
func (n *node) startWaiting(c call) *waitingAdd {
	n.t.Helper()
	a := n.startAdd(c)
	if !n.waitsOr(c.id, nil) {
		n.t.Fatalf("%s does not wait: %s%s", c.id, &a.out, &a.log)
	}
	return a
}

// waitsOr tells whether the ADD waits, false once it has ended.
func (n *node) waitsOr(id string, ended chan error) bool {
	ctx, cancel := deadline(n.t)
	defer cancel()
	for {
		list, _ := n.Cache.PendingADDs(0)
		if slices.ContainsFunc(list, func(w nodecache.PendingADD) bool { return w.Owner.Container == id }) {
			return true
		}
		select {
		case err := <-ended:
			ended <- err
			return false
		case <-ctx.Done():
			return false
		case <-time.After(time.Millisecond):
		}
	}
}

// address waits for the end of the ADD and returns what it got.
func (a *waitingAdd) address(t testing.TB) netip.Addr {
	t.Helper()
	if err := a.cmd.Wait(); err != nil {
		t.Fatalf("add %s: %v\n%s%s", a.id, err, &a.out, &a.log)
	}
	var res struct {
		IPs []struct{ Address netip.Prefix }
	}
	if err := json.Unmarshal(a.out.Bytes(), &res); err != nil || len(res.IPs) != 1 {
		t.Fatalf("add %s: %v\n%s", a.id, err, &a.out)
	}
	return res.IPs[0].Address.Addr()
}

// The address that comes free first has been free the longest, so each ADD gets just the
// one that its place in the queue earns it.
func TestAHundredWaitingAddsAreServedInOrderAsAddressesComeFree(t *testing.T) {
	const count = 100
	n := newNode(t, ipam.Settings{}, count)
	ids, paths := pods(t, count)
	got := n.addAll(ids, paths)
	if len(got) != count {
		t.Fatalf("%d of %d got an address", len(got), count)
	}
	var queue []*waitingAdd
	for i := range count {
		id := fmt.Sprint("late", i)
		queue = append(queue, n.startWaiting(call{id: id, netns: nettest.NewNetns(t, id).Path}))
	}
	for _, id := range ids {
		n.mustRun(call{command: "DEL", id: id, netns: paths[id], conf: n.conf("1.0.0")})
	}
	for i, a := range queue {
		if addr := a.address(t); addr != got[ids[i]] {
			t.Errorf("number %d got %s, want %s", i, addr, got[ids[i]])
		}
		n.mustRun(call{command: "DEL", id: a.id, netns: a.netns, conf: n.conf("1.0.0")})
	}
	if n.Cache.Queued() {
		t.Error("the queue is still there")
	}
}

// An ADD that is killed at any system call while it waits, or when it is served, keeps
// nobody behind it: the next gets the address as soon as it is free.
func TestAnAddKilledWhileItWaitsKeepsNobody(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace: make test installs it where it may")
	}
	n := newNode(t, ipam.Settings{}, 1)
	ns := map[string]nettest.Netns{}
	for _, id := range []string{"first", "killed", "next"} {
		ns[id] = nettest.NewNetns(t, id)
	}
	del := func(id string) { n.mustRun(call{command: "DEL", id: id, netns: ns[id].Path, conf: n.conf("1.0.0")}) }
	round := func(wrap []string) (killed bool) {
		n.mustRun(call{command: "ADD", id: "first", netns: ns["first"].Path, conf: n.conf("1.0.0")})
		if err := os.RemoveAll(n.Cache.Path + ".waiters"); err != nil { // of those killed before
			t.Fatal(err)
		}
		a := n.startAdd(call{id: "killed", netns: ns["killed"].Path, wrap: wrap})
		ended := make(chan error, 1)
		go func() { ended <- a.cmd.Wait() }()
		n.waitsOr("killed", ended)
		next := n.startWaiting(call{id: "next", netns: ns["next"].Path})
		del("first")
		if err := <-ended; err != nil {
			killed = true
		}
		del("killed") // what it got before it was killed, or all of it
		next.address(t)
		del("next")
		n.view(func(s *ipam.State) {
			if c := s.Count(time.Hour*1e6, func(eni.Address) bool { return true }); c.Free != 1 || len(s.Damaged) > 0 {
				t.Fatalf("%v: %+v, damaged %v", wrap, c, s.Damaged)
			}
		})
		if needs, err := n.Cache.Waiting(); len(needs) > 0 || err != nil || n.Cache.Queued() {
			t.Fatalf("%v: in the queue: %q, %v", wrap, needs, err)
		}
		return killed
	}
	// How often an ADD looks while it waits goes by how long that is: a call counts as often as
	// each of three runs makes it, and later runs come as far.
	var list []point
	for i := range 3 {
		trace := filepath.Join(t.TempDir(), fmt.Sprint("trace", i))
		if round(traced(trace)) {
			t.Fatal("the ADD that is only watched failed")
		}
		seen := pointsOf(t, trace, map[string]int{"flock": 4, "pwrite64": 1, "inotify_add_watch": 1})
		if i == 0 {
			list = seen
		}
		list = slices.DeleteFunc(list, func(p point) bool { return !slices.Contains(seen, p) })
	}
	killed := 0
	for _, p := range list {
		if round(p.killed()) {
			killed++
		}
	}
	t.Logf("%d of %d runs were killed", killed, len(list))
	if killed < len(list)*9/10 {
		t.Errorf("only %d of %d runs were killed", killed, len(list))
	}
}
