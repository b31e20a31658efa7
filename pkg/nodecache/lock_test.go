package nodecache

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func nothing(*ipam.State) error { return nil }

// calls are all ways to take the lock.
func calls(c Cache) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"View":          func(ctx context.Context) error { return c.View(ctx, nothing) },
		"View of one":   func(ctx context.Context) error { return c.For(key("web")).View(ctx, nothing) },
		"Update":        func(ctx context.Context) error { return c.Update(ctx, nothing) },
		"Update of one": func(ctx context.Context) error { return c.For(key("web")).Update(ctx, nothing) },
		"Replace": func(ctx context.Context) error {
			return c.Replace(ctx, func(s *ipam.State, err error) (*ipam.State, error) { return s, err })
		},
	}
}

// openLocks counts the lock files this process holds open.
func openLocks(t *testing.T, c Cache) int {
	open := 0
	for _, fd := range ls(t, "/proc/self/fd") {
		if path, _ := os.Readlink("/proc/self/fd/" + fd); path == c.Path+".lock" {
			open++
		}
	}
	return open
}

func TestAHolderThatHangsIsNamedInBoundedTime(t *testing.T) {
	c := newCache(t, small())
	before := runtime.NumGoroutine()
	cmd, _, out := child(t, "hold", c)
	if !out.Scan() || out.Text() != "held" {
		t.Fatalf("the child says %q", out.Text())
	}
	stop(t, cmd)

	c.LockTimeout = 20 * time.Millisecond
	for name, call := range calls(c) {
		err := call(t.Context())
		var busy *filelock.BusyError
		if !errors.As(err, &busy) || !errors.Is(err, errLockTimeout) || Unusable(err) {
			t.Fatalf("%s: %v", name, err)
		}
		want := fmt.Sprintf("lock %s.lock: held by process %d (%s), which is stopped: gave up waiting after 20ms; let it go on: kill -CONT %[2]d",
			c.Path, cmd.Process.Pid, busy.Holder.Command)
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	// Those that gave up get the lock now, and give it back.
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	c.LockTimeout = time.Minute
	for range 20 {
		for name, call := range calls(c) {
			if err := call(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	// A goroutine of an earlier test that has ended since makes room in the count for one of these.
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before || openLocks(t, c) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d lock files are still open, %d goroutines after %d", openLocks(t, c), runtime.NumGoroutine(), before)
		}
	}
}

// stop stops the child and returns when it has stopped.
func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var status unix.WaitStatus
	err := cmd.Process.Signal(unix.SIGSTOP)
	for err == nil && !status.Stopped() {
		if _, err = unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err == unix.EINTR {
			err = nil
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	c := newCache(t, small())
	c.LockTimeout = time.Hour
	held, release, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- c.Update(context.Background(), func(*ipam.State) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	cause := errors.New("the runtime gave up")
	for name, call := range calls(c) {
		ctx, cancel := context.WithCancelCause(t.Context())
		waits := make(chan error)
		go func() { waits <- call(ctx) }()
		cancel(cause)
		err := <-waits
		var busy *filelock.BusyError
		if !errors.As(err, &busy) || !errors.Is(err, cause) || busy.Holder.PID != os.Getpid() {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	for openLocks(t, c) > 0 {
		runtime.Gosched()
	}
}

func TestReadersShareTheLockAndWritersDoNot(t *testing.T) {
	c := newCache(t, small())
	c.LockTimeout = 10 * time.Millisecond
	for name, call := range calls(c) {
		reads := strings.HasPrefix(name, "View")
		err := c.View(t.Context(), func(*ipam.State) error { return call(t.Context()) })
		if busy := (*filelock.BusyError)(nil); errors.As(err, &busy) == reads {
			t.Errorf("%s within View: %v", name, err)
		}
		// The lock may still be passing through the hands of the one that gave up.
		patient := Cache{Path: c.Path, LockTimeout: time.Minute}
		err = patient.Update(t.Context(), func(*ipam.State) error { return call(t.Context()) })
		if busy := (*filelock.BusyError)(nil); !errors.As(err, &busy) {
			t.Errorf("%s within Update: %v", name, err)
		}
		if err := patient.Update(t.Context(), nothing); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFreeLockNeedsNoPatience(t *testing.T) {
	c := newCache(t, small())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(c) {
		if err := call(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAllWhoPickAtOnceGetAddressesOfTheirOwn: goroutines and processes together
// empty a pool to the last address.
func TestAllWhoPickAtOnceGetAddressesOfTheirOwn(t *testing.T) {
	const processes, goroutines = 4, 100
	c := newCache(t, pool(processes*picks+goroutines))
	c.LockTimeout = time.Minute
	var wait sync.WaitGroup
	got := make(chan netip.Addr, processes*picks+goroutines)
	for range processes {
		cmd, _, out := child(t, "pick", c)
		wait.Go(func() {
			for out.Scan() {
				addr, err := netip.ParseAddr(out.Text())
				if err != nil {
					t.Error(out.Text())
				}
				got <- addr
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range goroutines {
		wait.Go(func() {
			addr, err := pick(c, fmt.Sprintf("goroutine-%d", i))
			if err != nil {
				t.Error(err)
			}
			got <- addr
		})
	}
	wait.Wait()
	close(got)
	seen := map[netip.Addr]bool{}
	for addr := range got {
		if seen[addr] {
			t.Errorf("%s was given twice", addr)
		}
		seen[addr] = true
	}
	s := get(t, c)
	if err := s.Check(); err != nil || len(s.Used()) != len(seen) || len(seen) != processes*picks+goroutines {
		t.Errorf("%d given, %d used, %v", len(seen), len(s.Used()), err)
	}
	if addr, err := pick(c, "one more"); err == nil {
		t.Errorf("one more got %s", addr)
	}
}

// TestAKilledWriterLeavesAWholeFile: one line is one write into one page, and a
// new file comes by rename.
func TestAKilledWriterLeavesAWholeFile(t *testing.T) {
	for _, job := range []string{"churn", "reload"} {
		t.Run(job, func(t *testing.T) {
			c := newCache(t, pool(30))
			for round := range 15 {
				cmd, _, out := child(t, job, c)
				for range round%5 + 1 {
					if !out.Scan() {
						t.Fatal("the child ended by itself")
					}
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				s := get(t, c)
				if err := s.Check(); err != nil || len(s.Damaged) > 0 || len(s.Addresses) != 30 || len(s.Used()) > round+1 {
					t.Fatalf("round %d: %v, %d damaged, %d addresses, %d used", round, err, len(s.Damaged), len(s.Addresses), len(s.Used()))
				}
			}
			put(t, c, get(t, c))
			if diff := cmp.Diff([]string{"node.cache", "node.cache.lock"}, ls(t, filepath.Dir(c.Path))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
