package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Netns is a named network namespace of one test.
type Netns struct{ Name, Path string }

// NewNetns makes a named namespace that goes with the test. Its loopback is up,
// as runtimes leave it.
func NewNetns(t testing.TB, name string) Netns {
	t.Helper()
	Need(t)
	err := onThread(func() error {
		ns, err := netns.NewNamed(name)
		if err != nil {
			return err
		}
		return ns.Close()
	})
	if err != nil {
		t.Fatalf("make network namespace %s: %v", name, err)
	}
	ns := Netns{Name: name, Path: "/run/netns/" + name}
	t.Cleanup(ns.Delete)
	ns.Run(t, "ip", "link", "set", "lo", "up")
	return ns
}

// Delete unmounts and removes the namespace's name; repeated it does nothing.
func (n Netns) Delete() {
	_ = unix.Unmount(n.Path, unix.MNT_DETACH)
	_ = os.Remove(n.Path)
}

// Do runs fn on a thread inside the namespace. Processes that it starts are born
// there.
func (n Netns) Do(t testing.TB, fn func() error) {
	t.Helper()
	err := onThread(func() error {
		ns, err := netns.GetFromPath(n.Path)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return err
		}
		return fn()
	})
	if err != nil {
		t.Fatalf("in %s: %v", n.Name, err)
	}
}

// Run runs a command inside the namespace and returns what it printed.
func (n Netns) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := n.Try(name, args...)
	if err != nil {
		t.Fatalf("in %s: %v", n.Name, err)
	}
	return out
}

// Try is Run for a command that may fail.
func (n Netns) Try(name string, args ...string) (out string, err error) {
	err = onThread(func() error {
		ns, err := netns.GetFromPath(n.Path)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return err
		}
		out, err = command(name, args...)
		return err
	})
	return out, err
}

// Run runs a command in the namespace of the tests themselves.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := command(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// onThread runs fn on a thread that ends with it, so that no other goroutine
// ever runs in the wrong namespace.
func onThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- fn()
	}()
	return <-done
}
