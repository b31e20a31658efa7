package nodefiles

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// keptNode is a node whose folder a keeper keeps.
type keptNode struct {
	*Keeper
	t   *testing.T
	dir string
}

func keep(t *testing.T) (*keptNode, func() error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "enipool")
	conf := agentconf.Config{Cache: filepath.Join(dir, "node.cache"), State: filepath.Join(dir, "agent.json")}
	locks := NewLocks(conf)
	if err := locks.TakeAll(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.ReleaseAll)
	k := NewKeeper(nodecache.Cache{Path: conf.Cache}, locks, slog.New(slog.NewTextHandler(io.Discard, nil)))
	k.WatchCacheFolder()
	ctx, stop := context.WithCancel(t.Context())
	ended, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		ended <- k.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done // else it makes files in a folder that the test removes
	})
	return &keptNode{k, t, dir}, func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Second):
			t.Fatal("the keeper goes on")
			return nil
		}
	}
}

// waitFor waits until ok, woken by the keeper.
func (n *keptNode) waitFor(what string, ok func() bool) {
	n.t.Helper()
	end := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-n.wake:
		case <-end:
			n.t.Fatal(what)
		}
	}
}

// waitHeard waits until so many changes of the cache woke the loop: the first wakes may be
// what is left of before.
func (n *keptNode) waitHeard(changes int) {
	n.t.Helper()
	end := time.After(20 * time.Second)
	for heard := 0; heard < changes; {
		if err := os.WriteFile(n.cache.Path, []byte{byte(heard)}, 0o600); err != nil {
			n.t.Fatal(err)
		}
		select {
		case <-n.wake:
			heard++
		case <-time.After(100 * time.Millisecond): // it was not watched yet
		case <-end:
			n.t.Fatal("changes in the folder that is there now are not heard")
		}
	}
}

// A second agent would start beside the first one, and what pods wait for would not be
// heard, if the agent stayed with a folder that nobody else sees.
func TestTheAgentTakesAFolderThatWasReplacedAgain(t *testing.T) {
	for name, replace := range map[string]func(dir string) error{
		"removed":           os.RemoveAll,
		"removed and made":  func(dir string) error { return firstError(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
		"moved away":        func(dir string) error { return os.Rename(dir, dir+".old") },
		"its files removed": func(dir string) error { return removeAllIn(dir) },
		"the lock removed":  func(dir string) error { return os.Remove(filepath.Join(dir, "node.cache.agent")) },
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := keep(t)
			old, err := os.Open(n.cache.AgentLock()) // open, its number is no other file's
			if err != nil {
				t.Fatal(err)
			}
			defer old.Close()
			before, err := old.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if err := replace(n.dir); err != nil {
				t.Fatal(err)
			}
			n.waitFor("the lock is not taken again", func() bool {
				holder, running := n.cache.Agent()
				is, err := os.Stat(n.cache.AgentLock())
				return err == nil && !os.SameFile(before, is) && running && holder.PID == os.Getpid()
			})
			// What is written to the folder of now is heard.
			n.waitHeard(5)
		})
	}
}

// Nothing tells that a file system became read-only: the keeper looks, and wakes the loop once
// for each turn. A cache that leads to itself can't be written by root either.
func TestTheLoopIsWokenWhenTheCacheCanNotBeWrittenAnyMoreAndWhenItCanAgain(t *testing.T) {
	cache := nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}
	k := NewKeeper(cache, nil, slog.New(slog.DiscardHandler))
	look := func(what string, want bool) {
		t.Helper()
		if got := k.writableTurned(); got != want {
			t.Errorf("%s: turned %t", what, got)
		}
	}
	look("there is none yet", false)
	if err := os.Symlink("node.cache", cache.Path); err != nil {
		t.Fatal(err)
	}
	look("it can't be written", true)
	look("it can't be written still", false)
	if err := os.Remove(cache.Path); err != nil {
		t.Fatal(err)
	}
	look("it can be written again", true)
	look("it can be written still", false)
}

// Nobody is to wait for a node that can be used again; while all is well each look wakes the process.
func TestTheFolderIsLookedAtOftenWhileSomethingIsWrongWithIt(t *testing.T) {
	watch := &nodecache.Watch{}
	for name, tt := range map[string]struct {
		k    Keeper
		want time.Duration
	}{
		"watched":             {Keeper{watch: watch}, 7 * time.Second},
		"not watched":         {Keeper{}, lookTime},
		"files can't be made": {Keeper{watch: watch, said: "no space left on device"}, lookTime},
		"something was lost":  {Keeper{watch: watch, lost: true}, lookTime},
		"mounted read-only":   {Keeper{watch: watch, refused: "mounted read-only"}, lookTime},
	} {
		if got := tt.k.nextLook(63 * time.Second); got != tt.want {
			t.Errorf("%s: it looks again in %s, want %s", name, got, tt.want)
		}
	}
}

// removeAllIn removes what is in the folder.
func removeAllIn(dir string) error {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		err = firstError(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAnAgentWhoseNodeAnotherOneTookEnds(t *testing.T) {
	n, ended := keep(t)
	other := n.dir + ".other"
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	l := flock.New(filepath.Join(other, "node.cache.agent"))
	if got, err := l.TryLock(); !got || err != nil {
		t.Fatalf("%t, %v", got, err)
	}
	defer l.Unlock()
	if err := unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, n.dir, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	if err := ended(); err == nil || !strings.Contains(err.Error(), "meanwhile another agent took the node") || !strings.Contains(err.Error(), n.cache.AgentLock()) {
		t.Errorf("it ends with %v", err)
	}
}
