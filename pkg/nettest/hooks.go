package nettest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Hooks is the peace among tests at netfilter's hooks. The kernel does not say of which
// network namespace a program there is, so one that a test hangs there is in the way of the
// fast path in all others, of other processes too.
type Hooks struct {
	t    testing.TB
	file *os.File
}

// FreeHooks waits until no test has a program at a hook, and lets none have one while
// this one runs.
func FreeHooks(t testing.TB) Hooks {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "enipool-nettest-hooks"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	h := Hooks{t, file}
	t.Cleanup(func() { file.Close() })
	h.Free()
	return h
}

// Take waits until no other test needs the hooks free: this one may have programs there.
func (h Hooks) Take() { h.t.Helper(); h.lock(syscall.LOCK_EX) }

// Free is FreeHooks after a Take.
func (h Hooks) Free() { h.t.Helper(); h.lock(syscall.LOCK_SH) }

func (h Hooks) lock(how int) {
	h.t.Helper()
	if err := flock(h.file, how); err != nil {
		h.t.Fatal(err)
	}
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("lock "+f.Name(), err)
		}
	}
}
