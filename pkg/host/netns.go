package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The ways in which a path is no namespace for a pod.
var (
	// ErrNetnsGone: nothing is there, or a plain file without a namespace.
	ErrNetnsGone = errors.New("network namespace is gone")
	// ErrNetnsOwn: it is the namespace of the calling process, the node's own.
	ErrNetnsOwn = errors.New("network namespace is the node's own")
)

// ErrNetnsForbidden: this process may not enter the namespaces of pods, as in a container without CAP_SYS_ADMIN.
var ErrNetnsForbidden = errors.New("entering the network namespaces of pods takes CAP_SYS_ADMIN, which this process lacks")

// nsfsMagic is the file system type of namespace files, NSFS_MAGIC in magic.h.
const nsfsMagic = 0x6e736673

// Netns is an open network namespace. Inode identifies it while it lives.
type Netns struct {
	Path  string
	Inode uint64
	fd    int
}

// OpenNetns opens the namespace at path. Errors: ErrNetnsGone, ErrNetnsOwn and
// those of opening.
func OpenNetns(path string) (*Netns, error) {
	// Without O_NONBLOCK a FIFO would keep us until somebody opens its other end. It is
	// no os.File, which would be registered with epoll to no use.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, fmt.Errorf("%w: %s does not exist", ErrNetnsGone, path)
	}
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	n := &Netns{Path: path, fd: fd}
	if n.Inode, err = nsInode(fd, path); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return n, nil
}

// Close closes the file. The namespace lives on.
func (n *Netns) Close() error { return unix.Close(n.fd) }

// ownNetns is the namespace of the calling thread, which is what "own" means to a
// process that runs threads in several namespaces.
const ownNetns = "/proc/thread-self/ns/net"

// nsInode returns the inode of an open namespace that is not the caller's own.
func nsInode(fd int, path string) (uint64, error) {
	var st, own unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("stat %s: %w", path, err)
	}
	if err := statOwn(&own); err != nil {
		return 0, err
	}
	switch {
	case st.Dev != own.Dev: // all namespaces are files of one file system
		return 0, fmt.Errorf("%w: %s is a plain file, not a namespace", ErrNetnsGone, path)
	case st.Ino == own.Ino:
		return 0, fmt.Errorf("%w: %s", ErrNetnsOwn, path)
	}
	return st.Ino, nil
}

func statOwn(st *unix.Stat_t) error {
	if err := unix.Stat(ownNetns, st); err != nil {
		return fmt.Errorf("read own network namespace: %w", err)
	}
	return nil
}

// within runs fn on the calling thread inside the namespace, and comes back.
func (n *Netns) within(fn func() error) error {
	runtime.LockOSThread()
	own, err := unix.Open(ownNetns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open own network namespace: %w", err)
	}
	defer unix.Close(own)
	err = unix.Setns(n.fd, unix.CLONE_NEWNET)
	if err != nil {
		runtime.UnlockOSThread()
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w: %w", ErrNetnsForbidden, err)
		}
		return fmt.Errorf("enter network namespace %s: %w", n.Path, err)
	}
	err = fn()
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		// Never unlocked: a thread that is in the pod's namespace ends with its goroutine.
		return errors.Join(err, fmt.Errorf("return from network namespace %s: %w", n.Path, back))
	}
	runtime.UnlockOSThread()
	return err
}

// NetnsGone tells whether the namespace that had the inode (0 if not known) at
// path is provably gone: the file is not there any more, or is another namespace. These
// prove nothing:
//   - a path whose folder is not there: this process may be in another mount namespace;
//   - the path of a process: its number may be another process's here, and others may be in
//     the namespace, so ofProcessGone decides;
//   - a plain file: the runtime mounts the namespace on it, and a process whose mount
//     namespace does not get the runtime's mounts sees nothing else. What a reboot left of
//     such files does not matter, because no record outlives it.
func NetnsGone(path string, inode uint64) bool {
	if path == "" || strings.HasPrefix(filepath.Clean(path), "/proc/") {
		_, ofProcess := pidOfNetns(path)
		return ofProcess && ofProcessGone("/proc", inode)
	}
	n, err := OpenNetns(path)
	switch {
	case err == nil:
		defer n.Close()
		return inode != 0 && n.Inode != inode
	case errors.Is(err, ErrNetnsGone):
		_, file := os.Lstat(path)
		_, folder := os.Stat(filepath.Dir(path))
		return file != nil && folder == nil
	}
	return false
}

// NetnsUnseen tells whether at path is a plain file. By itself that proves nothing, see
// NetnsGone. Together with a link of ours that is gone it does: the link ends with the namespace.
func NetnsUnseen(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type != nsfsMagic
}

// open returns the network of the namespace.
func (n *Netns) open() (pod *Host, err error) {
	err = n.within(func() error {
		pod, err = New()
		return err
	})
	if err != nil {
		if pod != nil { // opened, but the thread could not come back
			pod.Close()
		}
		return nil, fmt.Errorf("open netlink in the pod's namespace: %w", err)
	}
	pod.where = inPod().where
	return pod, nil
}
