package filelock

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// TakeAlone takes the lock of an open file for this process alone, and returns unix.EWOULDBLOCK if
// another has it alone. Who only asks whether somebody has it shares it for a moment: as long as it
// can be shared nobody has it, and it is tried again for that time.
func TakeAlone(fd int, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB); err != nil {
			return err
		}
		_ = unix.Flock(fd, unix.LOCK_UN)
		if time.Now().After(deadline) {
			return unix.EWOULDBLOCK
		}
	}
}
