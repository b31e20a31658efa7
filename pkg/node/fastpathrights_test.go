package node

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// withoutRights runs do in a thread that lacks what only the component
// conf/kubernetes/fast-path gives the agent.
func withoutRights(t *testing.T, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never again free: the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var sets [2]unix.CapUserData
		err := unix.Capget(&header, &sets[0])
		for _, right := range []uint{unix.CAP_SYS_ADMIN, unix.CAP_BPF, unix.CAP_PERFMON} {
			sets[right/32].Effective &^= 1 << (right % 32)
		}
		if err == nil {
			err = unix.Capset(&header, &sets[0])
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// In Kubernetes an agent has fewer rights unless it is given those of the fast path.
// It says so once, and goes on.
func TestAnAgentWithoutTheRightsOfTheFastPathSaysSoOnce(t *testing.T) {
	nettest.Need(t)
	var log bytes.Buffer
	f := &FastPath{Log: slog.New(slog.NewTextHandler(&log, nil)), Changed: make(chan struct{}, 1)}
	f.Switch(true)
	withoutRights(t, func() {
		for range 3 {
			if f.Keep(t.Context()) {
				t.Error("packets jump")
			}
			f.LookAgain()
		}
	})
	off := strings.Join(f.Status().Off, "\n")
	if !strings.Contains(off, "CAP_SYS_ADMIN") || !strings.Contains(off, "conf/kubernetes/fast-path") {
		t.Errorf("it is off because of %q", off)
	}
	if n := strings.Count(log.String(), "fast path is off"); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, &log)
	}
}
