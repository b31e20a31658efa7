package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wait waits for the lock of the file that somebody else has, and says on the channel when it has been released.
func wait(t *testing.T, path string, giveUp func() error) (Wait, chan bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan bool, 1)
	fd := int(f.Fd())
	return Wait{Every: time.Millisecond, GiveUp: giveUp, Lock: func() error { return Flock(fd, unix.LOCK_EX) },
		Release: func() { f.Close(); released <- true }}, released
}

// Who gives up must not have the lock later, when nobody would release it.
func TestALockThatComesTooLateIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := take(t, path)
	enough, gone := errors.New("enough"), errors.New("gone")
	asked := 0
	w, late := wait(t, path, func() error {
		if asked++; asked < 3 {
			return nil
		}
		return enough
	})
	if gaveUp, err := w.Await(t.Context()); !gaveUp || !errors.Is(err, enough) || asked != 3 {
		t.Errorf("%t, %v, asked %d times", gaveUp, err, asked)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(gone)
	w, later := wait(t, path, func() error { return nil })
	if gaveUp, err := w.Await(ended); !gaveUp || !errors.Is(err, gone) {
		t.Errorf("after the end: %t, %v", gaveUp, err)
	}
	holder.Close()
	<-late
	<-later
	w, _ = wait(t, path, func() error { return enough })
	w.Every = time.Hour
	if gaveUp, err := w.Await(t.Context()); gaveUp || err != nil {
		t.Errorf("free again: %t, %v", gaveUp, err)
	}
	w.Release()
}

// An error of the lock itself is no end of patience, and leaves no file open.
func TestALockThatFailsIsNotWaitedFor(t *testing.T) {
	broken := errors.New("no locks available")
	released := false
	w := Wait{Every: time.Hour, Lock: func() error { return broken }, Release: func() { released = true }}
	if gaveUp, err := w.Await(t.Context()); gaveUp || !errors.Is(err, broken) || !released {
		t.Errorf("%t, %v, released: %t", gaveUp, err, released)
	}
}
