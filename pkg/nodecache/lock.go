package nodecache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/enipool/enipool/pkg/filelock"
	"golang.org/x/sys/unix"
)

// errLockTimeout ends a wait for the lock.
var errLockTimeout = errors.New("gave up waiting")

// LockFile is the file whose lock guards the cache.
func (c Cache) LockFile() string { return c.Path + ".lock" }

// locked runs fn under the lock. The lock is a file of its own that is never
// renamed or removed: a lock on a file that gets replaced guards nothing.
func (c Cache) locked(ctx context.Context, exclusive bool, fn func() error) (err error) {
	handle, err := openFile(c.LockFile(), os.O_CREATE|os.O_RDONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return c.explainRefusal(err)
	}
	if err != nil {
		return c.unwritable("lock", err)
	}
	if err := c.acquire(ctx, handle, exclusive); err != nil {
		return err
	}
	defer func() {
		if e := handle.unlock(); e != nil && err == nil {
			err = fmt.Errorf("unlock node cache: %w", e)
		}
	}()
	return fn()
}

// acquire takes the lock at once if it is free, else waits for it until the deadline. If it fails the file is closed, or will be.
func (c Cache) acquire(ctx context.Context, handle *file, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	switch got, err := handle.lock(how, false); {
	case err != nil:
		handle.Close()
		return fmt.Errorf("lock node cache: %w", err)
	case got:
		return nil
	}
	limit := cmp.Or(c.LockTimeout, DefaultLockTimeout)
	gaveUp, err := filelock.Wait{
		Lock: func() error {
			_, err := handle.lock(how, true)
			return err
		},
		Release: func() { _ = handle.unlock() },
		Every:   limit,
		GiveUp:  func() error { return fmt.Errorf("%w after %s", errLockTimeout, limit) },
	}.Await(ctx)
	switch {
	case gaveUp:
		return filelock.Busy(handle.path, err)
	case err != nil:
		return fmt.Errorf("lock node cache: %w", err)
	}
	return nil
}
