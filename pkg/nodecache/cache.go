// Package nodecache keeps the node state of one node in one small file that a person
// can read with cat and grep: a head, the node's settings, a line per ENI and a
// line per address, all of the same width and each with a checksum. DESIGN.md
// beside this file says why it looks the way it does.
package nodecache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"golang.org/x/sys/unix"
)

// DefaultPath is the path that plugin and agent use unless they are configured otherwise.
const DefaultPath = "/run/enipool/node.cache"

// DefaultLockTimeout is how long View, Update and Replace wait for the lock,
// which is held for microseconds.
const DefaultLockTimeout = 5 * time.Second

// Cache is a handle on the file at Path. It holds nothing open between calls.
type Cache struct {
	Path        string
	LockTimeout time.Duration // 0 means DefaultLockTimeout

	only *eni.Key // see For
}

// For returns the handle for one attachment. The node state that its View and Update hand out
// lacks the addresses that other attachments use, and damage in their lines. On a node with
// thousands of addresses it is several times faster.
func (c Cache) For(k eni.Key) Cache {
	c.only = &k
	return c
}

// View reads the node state under a shared lock and hands it to fn. Errors:
// ErrMissing, ErrDamaged, ErrVersion, ErrBoot, *filelock.BusyError and those of reading.
func (c Cache) View(ctx context.Context, fn func(*ipam.State) error) error {
	return c.locked(ctx, false, func() error {
		snap, err := c.readState(c.only)
		if err != nil {
			return err
		}
		return fn(&snap.State)
	})
}

// Update reads the node state under the exclusive lock, lets fn change it by the methods of
// ipam.State, and writes just the lines that changed, each by one pwrite. If fn returns an
// error nothing is written. Errors are View's and those of writing.
func (c Cache) Update(ctx context.Context, fn func(*ipam.State) error) error {
	return c.locked(ctx, true, func() error {
		handle, size, err := c.openLocked(os.O_RDWR)
		if err != nil {
			return err
		}
		defer handle.Close()
		snap, err := c.decodeState(handle, size, c.only)
		if err != nil {
			return err
		}
		if err := fn(&snap.State); err != nil {
			return err
		}
		return snap.writeTouched(c, handle)
	})
}

func (s *snapshot) writeTouched(cache Cache, handle *file) error {
	if len(s.Addresses) != len(s.lines) {
		return errors.New("update node cache: the layout changed; that needs Replace")
	}
	touched := slices.Compact(slices.Sorted(slices.Values(s.Touched())))
	// All lines are made before the first is written, so that one that does not
	// fit leaves the file alone.
	lines := make([][]byte, len(touched))
	for i, at := range touched {
		if s.Addresses[at].Reservation != nil && s.version < reservedVersion {
			return errOldHead // an old plugin would read on
		}
		text, err := encodeAddress(&s.Addresses[at])
		if err != nil {
			return err
		}
		lines[i] = appendLine(nil, text, s.lines[at])
	}
	for i, at := range touched {
		if _, err := handle.WriteAt(lines[i], int64(s.lines[at])*lineSize); err != nil {
			return cache.unwritable("write", err)
		}
	}
	return nil
}

// Replace writes a whole new node state by temporary file and rename. renew gets the
// old one, or a nil state and the error by which it can't be read, and returns the new
// one, which must pass its own Check. A new one that still has damaged records is refused with
// ErrDamaged: the file has no place for them, so their addresses would be forgotten and come
// back as new ones. The folder is made if it is missing.
func (c Cache) Replace(ctx context.Context, renew func(old *ipam.State, err error) (*ipam.State, error)) error {
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return fmt.Errorf("make folder of the node cache: %w", err)
	}
	return c.locked(ctx, true, func() error {
		var old *ipam.State
		generation := uint64(1)
		snap, err := c.readState(nil)
		if err == nil {
			old, generation = &snap.State, snap.generation+1
		} else if !Unusable(err) {
			return err
		}
		next, err := renew(old, err)
		if err != nil {
			return err
		}
		if err := next.Check(); err != nil {
			return fmt.Errorf("refuse to write a node cache that contradicts itself: %w", err)
		}
		if len(next.Damaged) > 0 {
			return c.DamagedRecord(next.Damaged[0].Cause)
		}
		boot, err := BootID()
		if err != nil {
			return err
		}
		file, err := encode(next, boot, generation)
		if err != nil {
			return err
		}
		return c.renameOver(file)
	})
}

func (c Cache) renameOver(file []byte) (err error) {
	tmp := c.Path + ".new"
	defer func() {
		if err != nil {
			os.Remove(tmp)
			err = c.unwritable("write", err)
		}
	}()
	// A leftover of a killed writer may have other rights: start from nothing.
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(tmp, file, 0o600); err != nil {
		return err
	}
	err = os.Rename(tmp, c.Path)
	if info, look := os.Lstat(c.Path); err != nil && look == nil && info.IsDir() {
		return c.notRegular(true) // the kernel says "file exists"
	}
	return err
}

// openLocked opens the file and returns its size. The lock is held.
func (c Cache) openLocked(flag int) (*file, int64, error) {
	// Without O_NONBLOCK it would wait for a FIFO's other end.
	handle, err := openFile(c.Path, flag|unix.O_NONBLOCK, 0)
	var st unix.Stat_t
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EISDIR) {
		return nil, 0, c.notRegular(errors.Is(err, unix.EISDIR))
	}
	if err != nil {
		return nil, 0, c.explainRefusal(err)
	}
	if err := unix.Fstat(handle.fd, &st); err != nil {
		handle.Close()
		return nil, 0, c.explainRefusal(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxSize {
		handle.Close()
		return nil, 0, c.notRegular(st.Mode&unix.S_IFMT == unix.S_IFDIR)
	}
	return handle, st.Size, nil
}

func (c Cache) notRegular(folder bool) error {
	if folder {
		return damaged("%s is a folder: remove it", c.Path)
	}
	return c.damage(damaged("it is no regular file of at most %d MiB", maxSize>>20))
}

func (c Cache) readState(only *eni.Key) (*snapshot, error) {
	handle, size, err := c.openLocked(os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	return c.decodeState(handle, size, only)
}

func (c Cache) decodeState(handle *file, size int64, only *eni.Key) (*snapshot, error) {
	snap, err := handle.decode(size, only)
	if errors.Is(err, ErrVersion) {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	if err != nil {
		return nil, c.damage(err)
	}
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	if snap.boot != boot {
		return nil, fmt.Errorf("%w: %s is of boot %.8s, this is %.8s; the agent or `enipoolctl pool load` makes a new one", ErrBoot, c.Path, snap.boot, boot)
	}
	return snap, nil
}

func (c Cache) explainRefusal(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.missing()
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open node cache: %w; it is root's alone", err)
	}
	return c.unwritable("open", err)
}

// BootID returns the kernel's name of the present boot.
func BootID() (string, error) {
	handle, err := openFile("/proc/sys/kernel/random/boot_id", unix.O_RDONLY, 0)
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	defer handle.Close()
	id := make([]byte, len("01234567-89ab-cdef-0123-456789abcdef"))
	if _, err := handle.ReadAt(id, 0); err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return string(id), nil
}

// SinceBoot is the clock of the node state, the time since boot with that of suspends: it never
// jumps and never runs backwards, and all processes of a boot agree on it.
func SinceBoot() time.Duration {
	var ts unix.Timespec
	// CLOCK_BOOTTIME exists since Linux 2.6.39; the call can't fail with it.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano())
}
