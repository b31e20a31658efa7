package nodefiles

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"golang.org/x/sys/unix"
)

// enipoolctl and pending ADDs ask whether an agent runs by sharing its lock for a moment: an agent
// that starts meanwhile, or takes a lock again that was removed, is no second one.
func TestWhoOnlyAsksForAnAgentKeepsNoneOff(t *testing.T) {
	dir := t.TempDir()
	locks := NewLocks(agentconf.Config{Cache: filepath.Join(dir, "node.cache"), State: filepath.Join(dir, "agent.json")})
	defer locks.ReleaseAll()
	asks := flockOf(t, locks.paths[0], unix.LOCK_SH)
	ends := time.AfterFunc(20*time.Millisecond, func() { _ = asks.Close() })
	defer ends.Stop()
	if err := locks.TakeAll(); err != nil {
		t.Error(err)
	}
}

func TestASecondAgentIsRefusedAndNamed(t *testing.T) {
	dir := t.TempDir()
	conf := agentconf.Config{Cache: filepath.Join(dir, "node.cache"), State: filepath.Join(dir, "agent.json")}
	for i, path := range NewLocks(conf).paths {
		first, locks := flockOf(t, path, unix.LOCK_EX), NewLocks(conf)
		other := (*otherAgentError)(nil)
		if err := locks.TakeAll(); !errors.As(err, &other) || other.path != path || other.holder.PID != os.Getpid() {
			t.Errorf("lock %d: %v", i, err)
		}
		_ = first.Close()
		if err := locks.TakeAll(); err != nil {
			t.Errorf("lock %d, when it is free: %v", i, err)
		}
		locks.ReleaseAll()
	}
}

// flockOf makes the file and takes its lock.
func flockOf(t *testing.T, path string, how int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		t.Fatal(err)
	}
	return f
}
