package node

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// The name of a namespace is not the namespace: a process that is still in it still has
// the pod's address, and nothing takes that back.
func TestANamespaceThatLostItsNameAndLivesIsToldWithWhoIsInIt(t *testing.T) {
	n, dev := withPod(t)
	n.Keeper = "the agent puts it right"
	if lines, err := n.Lingering(t.Context()); err != nil || len(lines) > 0 {
		t.Fatalf("%q, %v", lines, err)
	}
	path := ""
	if err := n.Cache.View(t.Context(), func(s *ipam.State) error { path = s.Used()[0].Owner.Netns; return nil }); err != nil {
		t.Fatal(err)
	}
	inside := exec.Command("nsenter", "--net="+path, "sleep", "300")
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inside.Process.Kill(); _ = inside.Wait() }()
	want := fmt.Sprintf("10.0.0.21 of default/web: its namespace has lost its name %s and lives on: process %d (sleep) is in it; the address is freed when that ends, or by the runtime's DEL", path, inside.Process.Pid)
	wait(t, func() bool {
		return strings.TrimSpace(nettest.Run(t, "cat", fmt.Sprintf("/proc/%d/comm", inside.Process.Pid))) == "sleep"
	})
	nettest.Run(t, "sh", "-c", "umount "+path+"; rm "+path)
	for name, tell := range map[string]func() ([]string, error){
		"check":     func() ([]string, error) { return n.Check(t.Context()) },
		"lingering": func() ([]string, error) { return n.Lingering(t.Context()) },
	} {
		if lines, err := tell(); err != nil || len(lines) != 1 || lines[0] != want {
			t.Errorf("%s: %q, %v; want %q", name, lines, err, want)
		}
	}
	_ = inside.Process.Kill()
	_ = inside.Wait()
	wait(t, func() bool { return nettest.Run(t, "sh", "-c", "ip link show "+dev+" 2>/dev/null || true") == "" })
	if lines, err := n.Lingering(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("after the process ended: %q, %v", lines, err)
	}
	lines, err := n.Check(t.Context())
	if check := strings.Join(lines, "\n"); err != nil || !strings.Contains(check, "its namespace "+path+" is gone; the agent puts it right") {
		t.Errorf("after the process ended: %v\n%s", err, check)
	}
}

func wait(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it takes too long")
		}
	}
}
