package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netnsDir is where `ip netns` looks for namespaces.
const netnsDir = "/run/netns"

// Namespace is a named network namespace; `ip netns exec NAME` enters it too.
type Namespace struct{ Name string }

// Path returns the file that holds the namespace.
func (ns Namespace) Path() string { return filepath.Join(netnsDir, ns.Name) }

// Do runs fn inside the namespace and returns its error. The rest of the program
// stays where it is: fn has a thread of its own, which ends with it. Sockets that
// fn opens stay in the namespace and can be used anywhere. Goroutines that fn
// starts are outside. /proc/sys/net shows the namespace, /sys does not.
//
// Processes that fn starts are inside and may outlive Do:
//
//	err := ns.Do(cmd.Start)
//	...
//	err = cmd.Wait()
//
// Don't set their Pdeathsig unless fn waits for them: to the kernel the parent
// that dies is the thread.
func (ns Namespace) Do(fn func() error) error {
	f, err := os.Open(ns.Path())
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	return onThread(func() error {
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", ns.Name, hint(err))
		}
		return fn()
	})
}

var errGoexit = errors.New("function ended its goroutine")

// onThread runs fn on a thread that is thrown away afterwards.
func onThread(fn func() error) error {
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

// create makes the namespace, loopback up and nothing else.
func (ns Namespace) create() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create network namespace %s: %w", ns.Name, hint(err))
		}
	}()
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
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
	defer func() {
		if err != nil {
			err = errors.Join(err, ns.remove())
		}
	}()
	if err := onThread(ns.mountNew); err != nil {
		return err
	}
	return ns.loopbackUp()
}

// mountNew moves the thread to a new namespace and gives that its name.
func (ns Namespace) mountNew() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("/proc/thread-self/ns/net", ns.Path(), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", ns.Path(), err)
	}
	return nil
}

func (ns Namespace) loopbackUp() error {
	h, err := ns.handle()
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("look up lo: %w", err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

// remove takes the name away; the kernel ends a namespace without users.
func (ns Namespace) remove() error {
	err := unix.Unmount(ns.Path(), unix.MNT_DETACH)
	// EINVAL: creation failed before the mount.
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount network namespace %s: %w", ns.Name, hint(err))
	}
	if err := os.Remove(ns.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove network namespace: %w", err)
	}
	return nil
}

// handle opens a netlink handle whose socket is in the namespace.
func (ns Namespace) handle() (*netlink.Handle, error) {
	f, err := os.Open(ns.Path())
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	h, err := netlink.NewHandleAt(netns.NsHandle(f.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink in %s: %w", ns.Name, hint(err))
	}
	return h, nil
}

// sysctls writes "key value" lines inside the namespace, keys below net.
func (ns Namespace) sysctls(lines ...string) error {
	return ns.Do(func() error {
		for _, line := range lines {
			key, value, _ := strings.Cut(line, " ")
			// No O_CREATE: /proc would answer it with a permission error that misleads.
			f, err := os.OpenFile(filepath.Join("/proc/sys/net", key), os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString(value)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				return fmt.Errorf("set sysctl net/%s to %s in %s: %w", key, value, ns.Name, err)
			}
		}
		return nil
	})
}

// hint tells what is missing where the kernel only says no.
func hint(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: needs root, or root of a user namespace (unshare -Urnm)", err)
	}
	return err
}
