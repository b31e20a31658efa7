// Package sandbox runs a program inside namespaces of its own, where it is root
// of a network that nobody else sees: demo and kernel tests change nothing of the
// machine and need no rights where the kernel lets everybody have namespaces.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/enipool/enipool/pkg/isolate"
	"golang.org/x/sys/unix"
)

// FirstFile is the descriptor of the first file that AgainWith passes on.
const FirstFile = 3

// Again runs the current program again, with the same arguments and the extra
// environment, in new network and mount and, for a caller who is not root, user
// namespaces, and returns its exit code. The child must call Enter first. It dies
// with the caller; an interrupt reaches both, and the caller waits for the child
// to clean up.
func Again(env ...string) (code int, err error) { return AgainWith(nil, env...) }

// AgainWith is Again for a program that gets files, from descriptor FirstFile on: a socket that listens outside of the
// new network is one that the child can serve.
func AgainWith(files []*os.File, env ...string) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find own program: %w", err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), env...), files
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if uid := os.Geteuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	interrupted := make(chan os.Signal, 1)
	defer close(interrupted) // last: it ends who passes signals on
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupted)
	// The parent whose death kills the child is the thread that started it.
	err = isolate.OnThread(func() error {
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start in new namespaces: %w", isolate.Hint(err))
		}
		go func() {
			for s := range interrupted {
				_ = cmd.Process.Signal(s)
			}
		}()
		return cmd.Wait()
	})
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Enter makes the new namespaces fit to work in: mounts are private, /run and
// /var/lib, where CNI programs keep what they know, are empty, /sys shows the new
// network, loopback is up.
func Enter() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", isolate.Hint(err))
	}
	// The folder of namespaces is a mount of its own, or the first `ip netns add`
	// would make it one on top of those that are there.
	for _, dir := range []string{"/run", "/var/lib", isolate.Dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, isolate.Hint(err))
		}
	}
	// /sys is a help for looking around; a kernel that refuses it does no harm.
	_ = unix.Mount("sysfs", "/sys", "sysfs", 0, "")
	return isolate.LoopbackUp()
}

// InUserNamespace tells whether the caller is root only inside a user namespace.
func InUserNamespace() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(ids)), " ") != "0 0 4294967295"
}
