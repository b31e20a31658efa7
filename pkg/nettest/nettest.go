// Package nettest runs a package's tests inside a network, mount and (where the
// caller is not root) user namespace of their own, so that kernel tests need no
// rights, leave nothing behind and can't touch the machine's network.
package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/isolate/sandbox"
)

// inside is "yes" in the environment of the child that Main starts, or the
// kernel's reason for refusing it.
const inside = "ENIPOOL_NETTEST"

// Main runs m inside fresh namespaces and exits. Call it from TestMain:
//
//	func TestMain(m *testing.M) { nettest.Main(m) }
//
// Where the kernel refuses the namespaces the tests run all the same, and those
// that call Need are skipped with the kernel's reason.
func Main(m *testing.M) {
	Isolate()
	os.Exit(m.Run())
}

// Isolate is Main without the running: it returns inside the namespaces, or
// outside of any where the kernel refuses them. Files, such as sockets that listen outside,
// are the first that the program has inside.
func Isolate(files ...*os.File) {
	if os.Getenv(inside) == "" {
		code, err := sandbox.AgainWith(files, inside+"=yes")
		if err == nil {
			os.Exit(code)
		}
		os.Setenv(inside, err.Error())
	} else if err := sandbox.Enter(); err != nil {
		os.Setenv(inside, err.Error())
	}
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

// Netns is a named network namespace of one test.
type Netns struct {
	isolate.Namespace
	Path string
}

// NewNetns makes a named namespace that goes with the test.
func NewNetns(t testing.TB, name string) Netns {
	t.Helper()
	Need(t)
	ns := Netns{isolate.Namespace{Name: name}, isolate.Namespace{Name: name}.Path()}
	if err := ns.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Delete)
	return ns
}

// Delete removes the namespace's name; repeated it does nothing.
func (n Netns) Delete() { _ = n.Remove() }

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
	err = n.Do(func() error {
		out, err = runCommand(name, args...)
		return err
	})
	return out, err
}

// Run runs a command in the namespace of the tests themselves.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := runCommand(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func runCommand(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
