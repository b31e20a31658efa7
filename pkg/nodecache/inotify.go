package nodecache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// notice is a change in a watched folder, or of it.
type notice struct {
	dir  string // as it was given
	name string // "" for the folder itself
	what uint32 // the kernel's bits
}

// What a notice tells, by inotify(7).
const (
	came    = unix.IN_CREATE | unix.IN_MOVED_TO
	written = unix.IN_MODIFY
	removed = unix.IN_DELETE | unix.IN_DELETE_SELF
	moved   = unix.IN_MOVED_FROM | unix.IN_MOVE_SELF
)

func (n notice) has(what uint32) bool { return n.what&what != 0 }

// inotify reads what the kernel tells of folders. The plugin waits with it, whose size counts: fsnotify does the same for
// all systems, for trees and for many goroutines, in 25 KB.
type inotify struct {
	file *os.File
	dirs map[int32]string // by the kernel's number of the watch
	told []byte           // read, and not yet returned
}

func newInotify() (*inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	return &inotify{file: os.NewFile(uintptr(fd), "inotify"), dirs: map[int32]string{}}, nil
}

// add watches a folder from now on.
func (i *inotify) add(dir string) error {
	conn, err := i.file.SyscallConn() // Fd would let a Close wait for the next notice
	if err != nil {
		return err
	}
	var wd int
	closed := conn.Control(func(fd uintptr) {
		wd, err = unix.InotifyAddWatch(int(fd), dir, came|written|removed|moved|unix.IN_ONLYDIR)
	})
	if err = cmp.Or(closed, err); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	i.dirs[int32(wd)] = dir
	return nil
}

// next waits for the next notice. lost: the kernel had more to tell than it could keep. After close it is an error.
func (i *inotify) next() (n notice, lost bool, err error) {
	if len(i.told) < unix.SizeofInotifyEvent {
		buf := make([]byte, 4096) // more than one with the longest name
		read, err := i.file.Read(buf)
		if err != nil {
			return notice{}, false, err
		}
		i.told = buf[:read]
	}
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(i.told[at:]) }
	wd, what, end := int32(word(0)), word(4), unix.SizeofInotifyEvent+int(word(12))
	name, _, _ := bytes.Cut(i.told[unix.SizeofInotifyEvent:end], []byte{0})
	n = notice{dir: i.dirs[wd], name: string(name), what: what}
	i.told = i.told[end:]
	if n.has(unix.IN_IGNORED) { // the folder is gone, and its number may be another's
		delete(i.dirs, wd)
	}
	return n, n.has(unix.IN_Q_OVERFLOW), nil
}
