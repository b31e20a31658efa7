package filelock

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// Flock is flock(2), called again where a signal interrupts it.
func Flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); err != unix.EINTR {
			return err
		}
	}
}

// Wait is how a lock is waited for that somebody else has: in the kernel's queue, because polling collapses under a hundred
// contenders.
type Wait struct {
	Lock    func() error  // waits for the lock
	Release func()        // releases it and closes the file
	Every   time.Duration // how often GiveUp is asked
	GiveUp  func() error  // says why it is waited for no longer, nil to go on
}

// Await waits for the lock. gaveUp tells that GiveUp or the end of ctx ended the wait, and not an error of Lock. flock(2) can't be
// cancelled: if it takes the lock late, the lock is released at once. On an error the file is closed, or will be.
func (w Wait) Await(ctx context.Context) (gaveUp bool, err error) {
	locked := make(chan error, 1)
	go func() { locked <- w.Lock() }()
	timer := time.NewTicker(w.Every)
	defer timer.Stop()
	for err == nil {
		select {
		case err := <-locked:
			if err != nil {
				w.Release()
			}
			return false, err
		case <-timer.C:
			err = w.GiveUp()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	go func() {
		<-locked
		w.Release()
	}()
	return true, err
}
