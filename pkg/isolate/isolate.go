// Package isolate does work inside other network namespaces without letting the
// rest of the program notice: on a thread that is thrown away afterwards.
package isolate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Dir is where `ip netns` and container runtimes keep namespaces by name.
const Dir = "/run/netns"

// Namespace is a named network namespace; `ip netns exec NAME` enters it too.
type Namespace struct{ Name string }

// Path returns the file that holds the namespace.
func (ns Namespace) Path() string { return filepath.Join(Dir, ns.Name) }

// Create makes the namespace. Its loopback is up, as container runtimes leave it.
func (ns Namespace) Create() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create network namespace %s: %w", ns.Name, Hint(err))
		}
	}()
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(ns.Path(), os.O_CREATE|os.O_EXCL, 0o444)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: if nobody uses it, `ip netns del %s` removes it", err, ns.Name)
	}
	if err != nil {
		return err
	}
	f.Close()
	if err := OnThread(ns.mountNew); err != nil {
		return errors.Join(err, ns.Remove())
	}
	return nil
}

// ShareDir makes of the folder of namespaces what the first `ip netns add` makes of it: a mount of its own, which would hide those that are
// there already.
func ShareDir() error {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return err
	}
	share := func() error { return unix.Mount("", Dir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	err := share()
	if errors.Is(err, unix.EINVAL) { // it is no mount yet
		err = unix.Mount(Dir, Dir, "none", unix.MS_BIND|unix.MS_REC, "")
		if err == nil {
			err = share()
		}
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", Dir, Hint(err))
	}
	return nil
}

// mountNew moves the thread to a new namespace, sets its loopback up and gives it its name.
func (ns Namespace) mountNew() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := LoopbackUp(); err != nil {
		return err
	}
	if err := unix.Mount("/proc/thread-self/ns/net", ns.Path(), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", ns.Path(), err)
	}
	return nil
}

// Remove takes the name away; the kernel ends a namespace without users. A
// missing one is fine.
func (ns Namespace) Remove() error {
	err := unix.Unmount(ns.Path(), unix.MNT_DETACH)
	// EINVAL: creation failed before the mount.
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount network namespace %s: %w", ns.Name, Hint(err))
	}
	if err := os.Remove(ns.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove network namespace: %w", err)
	}
	return nil
}

// Do runs fn inside the namespace; see In.
func (ns Namespace) Do(fn func() error) error {
	f, err := os.Open(ns.Path())
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	return In(f, fn)
}

// In runs fn inside the network namespace that the file is, and returns fn's
// error. The rest of the program stays where it is: fn has a thread of its own,
// which ends with it. Sockets that fn opens stay in the namespace and can be used
// anywhere. Goroutines that fn starts are outside. /proc/sys/net shows the
// namespace, /sys does not.
//
// Processes that fn starts are inside and may outlive it:
//
//	err := ns.Do(cmd.Start)
//	...
//	err = cmd.Wait()
//
// Don't set their Pdeathsig unless fn waits for them: to the kernel the parent
// that dies is the thread.
func In(ns *os.File, fn func() error) error {
	return OnThread(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", ns.Name(), Hint(err))
		}
		return fn()
	})
}

var errGoexit = errors.New("function ended its goroutine")

// OnThread runs fn on a thread that is thrown away afterwards, and waits for it.
func OnThread(fn func() error) error {
	err := errGoexit
	done := make(chan struct{})
	run := func() {
		defer close(done) // also when fn calls runtime.Goexit, as t.FailNow does
		err = fn()
	}
	go func() {
		// Never unlocked: the runtime then ends the thread instead of reusing it.
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			run()
			return
		}
		// The main thread never ends, and /proc/self would show the namespace it
		// was left in. While it is kept here another one does the work.
		defer runtime.UnlockOSThread()
		go func() {
			runtime.LockOSThread()
			run()
		}()
		<-done
	}()
	<-done
	return err
}

// LoopbackUp sets the loopback link of the calling thread's namespace up.
func LoopbackUp() error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

// Hint adds to a refusal of the kernel what is missing.
func Hint(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: needs root, or root of a user namespace (unshare -Urnm)", err)
	}
	return err
}
