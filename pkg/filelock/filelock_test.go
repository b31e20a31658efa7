package filelock

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// take opens the file and locks it.
func take(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return f
}

// eventually waits for what the kernel does in its own time.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func TestTheHolderOfAFreeLockIsNobody(t *testing.T) {
	dir := t.TempDir()
	take(t, filepath.Join(dir, "other"))
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		h := HolderOf(path)
		if want := "a process that /proc/locks does not show here"; h.PID != 0 || h.String() != want {
			t.Errorf("%s: %+v, %s", path, h, h)
		}
		if want := "on the node itself `fuser -v " + path + "` names it"; h.Todo() != want {
			t.Errorf("to do: %s", h.Todo())
		}
	}
}

// A holder is told with its name, and one that can't go on by itself with what lets it.
func TestAHolderIsToldWithWhatToDoAboutIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := take(t, path)
	h := HolderOf(path)
	if want := fmt.Sprintf("process %d (%s)", os.Getpid(), h.Command); h.Command == "" || h.String() != want || h.Todo() != fmt.Sprintf("if it hangs, end it: kill %d", os.Getpid()) {
		t.Errorf("%s; %s, want %s", h, h.Todo(), want)
	}
	f.Close()

	// As `flock FILE sleep` does: the shell keeps the lock with what it starts.
	c := exec.Command("flock", path, "sleep", "300")
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	group := -c.Process.Pid
	t.Cleanup(func() { _ = unix.Kill(group, unix.SIGKILL); _ = c.Wait() })
	is := func(text string) func() bool { return func() bool { return HolderOf(path).String() == text } }
	eventually(t, "the holder is not named", is(fmt.Sprintf("process %d (flock)", c.Process.Pid)))
	_ = c.Process.Signal(unix.SIGSTOP)
	eventually(t, "it is not told that the holder is stopped", is(fmt.Sprintf("process %d (flock), which is stopped", c.Process.Pid)))
	if got, want := HolderOf(path).Todo(), fmt.Sprintf("let it go on: kill -CONT %d", c.Process.Pid); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	_ = c.Process.Signal(unix.SIGCONT)
	eventually(t, "it is told that the holder is stopped", is(fmt.Sprintf("process %d (flock)", c.Process.Pid)))
	_ = c.Process.Kill() // its child has the lock still
	_ = c.Wait()
	h = HolderOf(path)
	if want := fmt.Sprintf("a process that process %d left behind when it ended", c.Process.Pid); h.String() != want || !strings.Contains(h.Todo(), "fuser -v "+path) {
		t.Errorf("%s; %s", h, h.Todo())
	}
}

func TestALockIsAwaitedWhileThisProcessWaitsForIt(t *testing.T) {
	dir := t.TempDir()
	free, taken := filepath.Join(dir, "free"), filepath.Join(dir, "taken")
	take(t, free)
	first := take(t, taken)
	if path := Awaited(free, taken); path != "" {
		t.Errorf("nobody waits, and %s is awaited", path)
	}
	second, err := os.Open(taken)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	done := make(chan error, 1)
	go func() { done <- unix.Flock(int(second.Fd()), unix.LOCK_EX) }()
	eventually(t, "the wait is not seen", func() bool { return Awaited(free, filepath.Join(dir, "none"), taken) == taken })
	first.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if path := Awaited(free, taken); path != "" {
		t.Errorf("nobody waits any more, and %s is awaited", path)
	}
}
