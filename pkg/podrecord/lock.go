package podrecord

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/mounts"
	"golang.org/x/sys/unix"
)

// Lock is held by whoever changes records together with the kernel state that
// they stand for, so that records and kernel agree for everybody else. Only pods
// that ask for something wait for it.
type Lock struct{ fd int }

// FD is the open lock. A child process that inherits it holds the lock until it
// ends, even if this process is killed.
func (l *Lock) FD() uintptr { return uintptr(l.fd) }

// Unlock releases the lock.
func (l *Lock) Unlock() { unix.Close(l.fd) }

// Each holder may take LockTimeout, which is longer than the slowest needs, the agent's repair
// of iptables. If the lock changes hands a caller waits longer, up to queueTimeout: hundreds of
// pods may start at once.
const (
	LockTimeout  = 20 * time.Second
	queueTimeout = 90 * time.Second
)

// LockFile is the file whose lock that is.
func (f Folder) LockFile() string { return filepath.Join(f.Path, "lock") }

// Lock waits for the lock, in the kernel's queue.
func (f Folder) Lock(ctx context.Context) (*Lock, error) {
	return f.lockWithin(ctx, LockTimeout, queueTimeout)
}

func (f Folder) lockWithin(ctx context.Context, holder, queue time.Duration) (*Lock, error) {
	path := f.LockFile()
	fd, err := f.openLock()
	if err != nil {
		return nil, mounts.Explain(path, fmt.Errorf("open lock of pod records: %w", &os.PathError{Op: "open", Path: path, Err: err}))
	}
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		err = waitForLock(ctx, fd, holder, queue)
	} else if err != nil {
		unix.Close(fd)
	}
	if err != nil {
		return nil, filelock.Busy(path, err)
	}
	// The new time tells those who wait that the lock has changed hands. Where it can't be
	// written they wait for one holder's time in all.
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, path, nil, 0)
	return &Lock{fd}, nil
}

func (f Folder) openLock() (int, error) {
	name := f.LockFile()
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

func waitForLock(ctx context.Context, fd int, holder, queue time.Duration) error {
	began := time.Now()
	waiting := patience{turn: turnOf(fd), queue: queue}
	_, err := filelock.Wait{
		Lock:    func() error { return filelock.Flock(fd, unix.LOCK_EX) },
		Release: func() { unix.Close(fd) },
		Every:   holder,
		GiveUp: func() error {
			if waited := time.Since(began); waiting.givesUp(waited, turnOf(fd)) {
				return fmt.Errorf("gave up waiting after %s", waited.Round(time.Second))
			}
			return nil
		},
	}.Await(ctx)
	return err
}

// turnOf returns the file's time, which each holder sets: with another one the lock has
// changed hands.
func turnOf(fd int) unix.Timespec {
	var st unix.Stat_t
	_ = unix.Fstat(fd, &st)
	return st.Mtim
}

// patience decides when a caller gives up. It is asked once every LockTimeout.
type patience struct {
	turn  unix.Timespec // when it was asked last
	queue time.Duration
}

// givesUp tells whether the holder is the same as when it was asked last, or the wait too long.
func (p *patience) givesUp(waited time.Duration, turn unix.Timespec) bool {
	stuck := turn == p.turn
	p.turn = turn
	return stuck || waited >= p.queue
}
