package nettest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

// Hooks is the peace among tests at netfilter's hooks. The kernel does not say of which
// network namespace a program there is, so one that a test hangs there is in the way of the
// fast path in all others, of other processes too.
type Hooks struct {
	t    testing.TB
	lock *flock.Flock
}

// FreeHooks waits until no test has a program at a hook, and lets none have one while
// this one runs.
func FreeHooks(t testing.TB) Hooks {
	t.Helper()
	h := Hooks{t, flock.New(filepath.Join(os.TempDir(), "enipool-nettest-hooks"), flock.SetPermissions(0o666))}
	t.Cleanup(func() { h.lock.Close() })
	h.Free()
	return h
}

// Take waits until no other test needs the hooks free: this one may have programs there.
func (h Hooks) Take() { h.t.Helper(); h.relock(h.lock.Lock) }

// Free is FreeHooks after a Take.
func (h Hooks) Free() { h.t.Helper(); h.relock(h.lock.RLock) }

func (h Hooks) relock(to func() error) {
	h.t.Helper()
	err := h.lock.Unlock()
	if err == nil {
		err = to()
	}
	if err != nil {
		h.t.Fatalf("lock %s: %v", h.lock, err)
	}
}
