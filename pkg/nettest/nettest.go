// Package nettest runs a package's tests inside a network, mount and (where the
// caller is not root) user namespace of their own, so that kernel tests need no
// rights, leave nothing behind and can't touch the machine's network.
package nettest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is set, to the reason or "yes", in the environment of the child that
// Main starts.
const inside = "ENIPOOL_NETTEST"

// Main runs m inside fresh namespaces and exits. Call it from TestMain:
//
//	func TestMain(m *testing.M) { nettest.Main(m) }
//
// Where the kernel refuses the namespaces the tests run all the same, and those
// that call Need are skipped with the kernel's reason.
func Main(m *testing.M) {
	if os.Getenv(inside) != "" {
		os.Exit(m.Run())
	}
	code, err := Reexec(inside + "=yes")
	if err != nil {
		os.Setenv(inside, err.Error())
		os.Exit(m.Run())
	}
	os.Exit(code)
}

// Need skips the test when it does not run inside namespaces of its own.
func Need(t testing.TB) {
	t.Helper()
	switch reason := os.Getenv(inside); reason {
	case "yes":
	case "":
		t.Fatal("the package's TestMain must call nettest.Main")
	default:
		t.Skipf("needs a network namespace of its own: %s", reason)
	}
}

// Reexec runs the current program again, with its arguments and the extra
// environment, as root of new user (unless already root), network, mount and pid
// namespaces, and returns its exit code. Inside, /run is an empty tmpfs and
// /proc and /sys are of the new namespaces. The child dies with the caller.
func Reexec(env ...string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// The mounts need a process inside the namespaces; sh is the smallest one
	// that every machine has.
	const setup = `mount --make-rprivate / && mount -t tmpfs -o mode=755 tmpfs /run && mount -t proc proc /proc &&
mount -t sysfs sysfs /sys 2>/dev/null; ip link set lo up && exec "$0" "$@"`
	cmd := exec.Command("sh", append([]string{"-c", setup, self}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  unix.SIGKILL,
	}
	if uid := os.Geteuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	// A Ctrl-C at the terminal reaches the child as well: let it clean up, and
	// keep waiting for it.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start in new namespaces: %w", err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
