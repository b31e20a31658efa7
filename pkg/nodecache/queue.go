package nodecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/filelock"
	"golang.org/x/sys/unix"
)

// Place is the place of a pending ADD in the queue: an empty file, with an exclusive lock on it
// for as long as the ADD waits. The kernel releases the lock when its holder dies, so an ADD
// that was killed holds up nobody.
type Place struct {
	cache Cache
	fd    int
	entry queued
}

// queued is an entry of the queue, as its file's name has it.
type queued struct {
	name  string        // begins with the time of arrival
	until time.Duration // since boot
	need  string        // the device that it is bound to, "" for none
}

func (c Cache) queueDir() string { return c.Path + ".queue" }

// Queued tells by one system call whether ADDs may wait for addresses: the folder is there only
// while files are in it, which may be those of killed ADDs.
func (c Cache) Queued() bool {
	return unix.Access(c.queueDir(), unix.F_OK) == nil
}

// Enqueue takes the last place in the queue for an ADD that waits until then, as time
// since boot. need is the device that it is bound to, or "": if that is the link of an ENI,
// only this ENI's addresses will do.
func (c Cache) Enqueue(need string, until time.Duration) (*Place, error) {
	err := error(nil)
	for range maxPlaceTries {
		now := SinceBoot()
		name := fmt.Sprintf("%020d.%020d.%d.%s", now, until, os.Getpid(), strings.ReplaceAll(escape(need), "/", "%2F"))
		var fd int
		if fd, err = c.makePlace(name); err == nil {
			return &Place{c, fd, queued{name, until, need}}, nil
		}
		if !errors.Is(err, errPlaceLost) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return nil, fmt.Errorf("wait in line: %w", err)
}

// maxPlaceTries is how often Enqueue tries while others remove the folder or its file.
const maxPlaceTries = 100

// errPlaceLost: somebody removed the new file before it was locked, as that of a killed ADD, or
// the folder, as an empty one.
var errPlaceLost = errors.New("place in the queue was taken away")

// makePlace makes and locks the file.
func (c Cache) makePlace(name string) (fd int, err error) {
	if err := os.Mkdir(c.queueDir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return 0, err
	}
	path := filepath.Join(c.queueDir(), name)
	fd, err = unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, errPlaceLost
	}
	if err != nil {
		return 0, &fs.PathError{Op: "create", Path: path, Err: err}
	}
	err = filelock.Flock(fd, unix.LOCK_EX)
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && st.Nlink == 0 {
		err = errPlaceLost
	}
	if err != nil {
		_ = unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// Leave leaves the queue. On a nil Place it does nothing.
func (p *Place) Leave() {
	if p == nil {
		return
	}
	p.cache.clearPlace(p.entry.name)
	_ = unix.Close(p.fd) // wakes who waits for it
}

// clearPlace removes the file, and the folder if that was the last one. If that fails, the
// next ADD that reads the folder does it.
func (c Cache) clearPlace(name string) {
	_ = os.Remove(filepath.Join(c.queueDir(), name))
	_ = unix.Rmdir(c.queueDir())
}

// Waiting returns the needs of all ADDs in the queue, as given to Enqueue, in order of arrival.
func (c Cache) Waiting() ([]string, error) {
	list, err := c.entries()
	return c.liveNeeds(list), err
}

// Before is Waiting for the ADDs that came before the place: none for a nil Place.
func (p *Place) Before() ([]string, error) {
	if p == nil {
		return nil, nil
	}
	list, err := p.entriesBefore()
	return p.cache.liveNeeds(list), err
}

// Turn returns a channel that is closed when the nearest ADD ahead with the same need has left,
// or its time is over: until then there is no need to read the cache. It is nil where no ADD
// with the same need is ahead, and for a nil Place.
func (p *Place) Turn() (gone <-chan struct{}, err error) {
	if p == nil {
		return nil, nil
	}
	list, err := p.entriesBefore()
	for _, e := range slices.Backward(list) {
		if e.need != p.entry.need {
			continue
		}
		if gone := p.cache.watchPlace(e); gone != nil {
			return gone, nil
		}
	}
	return nil, err
}

func (p *Place) entriesBefore() ([]queued, error) {
	list, err := p.cache.entries()
	at, _ := slices.BinarySearchFunc(list, p.entry.name, func(e queued, name string) int { return strings.Compare(e.name, name) })
	return list[:at], err
}

// entries lists the queue in order of arrival, without those whose time is over: one
// that hangs must not keep the others longer than it may wait itself.
func (c Cache) entries() ([]queued, error) {
	files, err := os.ReadDir(c.queueDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the queue of pending ADDs: %w", err)
	}
	now := SinceBoot()
	var list []queued
	for _, f := range files { // sorted by name, which begins with the time of arrival
		if e, ok := decodeQueued(f.Name()); ok && e.until+pendingGrace > now {
			list = append(list, e)
		} else {
			c.clearIfLeft(f.Name())
		}
	}
	return list, nil
}

func decodeQueued(name string) (queued, bool) {
	fields := strings.SplitN(name, ".", 4)
	if len(fields) != 4 {
		return queued{}, false
	}
	until, err := strconv.ParseInt(fields[1], 10, 64)
	return queued{name, time.Duration(until), unescape(fields[3])}, err == nil
}

// liveNeeds returns the needs of the entries whose ADDs still wait.
func (c Cache) liveNeeds(list []queued) []string {
	var needs []string
	for _, e := range list {
		if !c.clearIfLeft(e.name) {
			needs = append(needs, e.need)
		}
	}
	return needs
}

// clearIfLeft removes the place if its ADD no longer holds it, and tells whether it is gone.
func (c Cache) clearIfLeft(name string) bool {
	fd := c.openPlace(name)
	if fd < 0 {
		return true
	}
	defer unix.Close(fd)
	if filelock.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil {
		return false
	}
	// Under the lock: an ADD that has made the file and not locked it yet sees then that it is gone.
	c.clearPlace(name)
	return true
}

// watchPlace returns a channel that is closed when the entry's holder has gone, nil
// if it has gone already.
func (c Cache) watchPlace(e queued) <-chan struct{} {
	if c.clearIfLeft(e.name) {
		return nil
	}
	fd := c.openPlace(e.name)
	if fd < 0 {
		return nil
	}
	gone, released := make(chan struct{}), make(chan struct{})
	go func() {
		// flock(2) can't be cancelled, and need not be: the kernel ends it with this process.
		_ = filelock.Flock(fd, unix.LOCK_SH)
		_ = unix.Close(fd)
		close(released)
	}()
	go func() {
		over := time.NewTimer(e.until + pendingGrace - SinceBoot())
		defer over.Stop()
		select {
		case <-released:
		case <-over.C:
		}
		close(gone)
	}()
	return gone
}

// openPlace opens the file of an entry. It returns -1 if it is gone or can't be opened.
func (c Cache) openPlace(name string) int {
	// Without O_NONBLOCK a FIFO would block.
	fd, err := unix.Open(filepath.Join(c.queueDir(), name), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1
	}
	return fd
}
