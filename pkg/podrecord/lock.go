package podrecord

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is held by whoever changes records together with the kernel state that
// they stand for, so that records and kernel agree for everybody else. Only pods
// that ask for something wait for it.
type Lock struct{ fd int }

// FD is the open lock. A child process that inherits it holds the lock until it
// ends, even if this process is killed.
func (l *Lock) FD() uintptr { return uintptr(l.fd) }

// Unlock gives the lock back.
func (l *Lock) Unlock() { unix.Close(l.fd) }

// lockTimeout is longer than any holder needs: the agent's repair of iptables.
const lockTimeout = 20 * time.Second

// Lock waits for the lock, in the kernel's queue.
func (f Folder) Lock(ctx context.Context) (*Lock, error) {
	fd, err := f.openLock()
	if err != nil {
		return nil, fmt.Errorf("open lock of pod records: %w", &os.PathError{Op: "open", Path: filepath.Join(f.Path, "lock"), Err: err})
	}
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		err = waitForLock(ctx, fd)
	} else if err != nil {
		unix.Close(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("lock pod records %s: %w; who holds it: fuser -v %[1]s", filepath.Join(f.Path, "lock"), err)
	}
	return &Lock{fd}, nil
}

func (f Folder) openLock() (int, error) {
	name := filepath.Join(f.Path, "lock")
	const flags = unix.O_RDONLY | unix.O_CREAT | unix.O_CLOEXEC
	fd, err := unix.Open(name, flags, 0o600)
	if errors.Is(err, unix.ENOENT) {
		// Before the node cache is written first, its folder may be missing too.
		if err = os.MkdirAll(f.Path, 0o700); err != nil {
			return -1, err
		}
		fd, err = unix.Open(name, flags, 0o600)
	}
	return fd, err
}

func waitForLock(ctx context.Context, fd int) error {
	locked := make(chan error, 1)
	go func() {
		err := unix.Flock(fd, unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(fd, unix.LOCK_EX)
		}
		locked <- err
	}()
	timer := time.NewTimer(lockTimeout)
	defer timer.Stop()
	var err error
	select {
	case err := <-locked:
		if err != nil {
			unix.Close(fd)
		}
		return err
	case <-timer.C:
		err = fmt.Errorf("gave up waiting after %s", lockTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	// flock(2) can't be called off: whoever gets it late gives it back.
	go func() {
		<-locked
		unix.Close(fd)
	}()
	return err
}
