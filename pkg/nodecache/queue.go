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

	"golang.org/x/sys/unix"
)

// Place is the place of a pending ADD in the queue of those that wait: an empty file
// with an exclusive lock on it for as long as the ADD waits. The kernel gives the lock
// back when its holder dies, so a killed ADD keeps nobody.
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

// Queued tells by one system call whether ADDs wait for addresses. The folder is
// there only as long as somebody is in it; who was killed may be in it too.
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

// maxPlaceTries is how often Enqueue tries when others clear the folder meanwhile.
const maxPlaceTries = 100

// errPlaceLost: somebody took the new file for that of a dead one before it was
// locked, or the folder for an empty one.
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
	err = lockFile(fd, unix.LOCK_EX)
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

// Leave gives the place up. On a nil Place it does nothing.
func (p *Place) Leave() {
	if p == nil {
		return
	}
	p.cache.clearPlace(p.entry.name)
	_ = unix.Close(p.fd) // wakes who waits for it
}

// clearPlace takes the file away, and the folder if that was the last one. If that
// fails, the next one who looks does it.
func (c Cache) clearPlace(name string) {
	_ = os.Remove(filepath.Join(c.queueDir(), name))
	_ = unix.Rmdir(c.queueDir())
}

// Waiting returns what all those need who wait now, in order of arrival, as Enqueue
// was told.
func (c Cache) Waiting() ([]string, error) {
	list, err := c.entries()
	return c.liveNeeds(list), err
}

// Before is Waiting for those who came before the place: nobody for a nil Place.
func (p *Place) Before() ([]string, error) {
	if p == nil {
		return nil, nil
	}
	list, err := p.entriesBefore()
	return p.cache.liveNeeds(list), err
}

// Turn returns a channel that is closed when the nearest one ahead with the same need
// has gone, or must have because its time is over: until then there is no need to look
// at the cache. It is nil where nobody with the same need is ahead, and for a nil Place.
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
		return nil, fmt.Errorf("look who waits: %w", err)
	}
	now := SinceBoot()
	var list []queued
	for _, f := range files { // sorted by name, which begins with the time of arrival
		if e, ok := decodeQueued(f.Name()); ok && e.until+waiterGrace > now {
			list = append(list, e)
		} else {
			c.dead(f.Name())
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

// liveNeeds returns what those of the list need who are alive.
func (c Cache) liveNeeds(list []queued) []string {
	var needs []string
	for _, e := range list {
		if !c.dead(e.name) {
			needs = append(needs, e.need)
		}
	}
	return needs
}

// dead tells whether nobody holds the place any more, and clears it then.
func (c Cache) dead(name string) bool {
	fd := c.openPlace(name)
	if fd < 0 {
		return true
	}
	defer unix.Close(fd)
	if lockFile(fd, unix.LOCK_SH|unix.LOCK_NB) != nil {
		return false
	}
	// Under the lock: its maker, who locks it after it is made, sees that it is gone.
	c.clearPlace(name)
	return true
}

// watchPlace returns a channel that is closed when the entry's holder has gone, nil
// if it has gone already.
func (c Cache) watchPlace(e queued) <-chan struct{} {
	if c.dead(e.name) {
		return nil
	}
	fd := c.openPlace(e.name)
	if fd < 0 {
		return nil
	}
	gone, released := make(chan struct{}), make(chan struct{})
	go func() {
		// flock(2) can't be called off, and need not be: the kernel ends it with this process.
		_ = lockFile(fd, unix.LOCK_SH)
		_ = unix.Close(fd)
		close(released)
	}()
	go func() {
		over := time.NewTimer(e.until + waiterGrace - SinceBoot())
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
	// A FIFO must not keep us.
	fd, err := unix.Open(filepath.Join(c.queueDir(), name), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1
	}
	return fd
}

// lockFile takes a flock, again after each signal.
func lockFile(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); err != unix.EINTR {
			return err
		}
	}
}
