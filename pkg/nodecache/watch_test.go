package nodecache

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/fsnotify/fsnotify"
)

// watch begins a watch, which ends with the test.
func watch(t *testing.T, begin func() (*Watch, error)) *Watch {
	t.Helper()
	w, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func mustPick(t *testing.T, c Cache, name string) {
	t.Helper()
	if _, err := pick(c, name); err != nil {
		t.Fatal(err)
	}
}

// In all of these a wake that does not come hangs the test.

func TestAWatchWakesOnUpdateAndOnReplace(t *testing.T) {
	c := newCache(t, pool(3))
	w := watch(t, c.Watch)
	mustPick(t, c, "a")
	<-w.C
	put(t, c, pool(4))
	<-w.C
	// The new file is watched as the old one was.
	mustPick(t, c, "b")
	<-w.C
}

func TestAWatchSeesTheFirstFile(t *testing.T) {
	c := Cache{Path: filepath.Join(t.TempDir(), "node.cache")}
	w := watch(t, c.Watch)
	put(t, c, pool(3))
	<-w.C
}

func TestAWatchKnowsAPathHoweverItIsWritten(t *testing.T) {
	for name, write := range map[string]func(dir string) string{
		"relative":      func(string) string { return "node.cache" },
		"with a dot":    func(string) string { return "./node.cache" },
		"twice slashed": func(dir string) string { return dir + "//node.cache" },
		"by its parent": func(dir string) string { return dir + "/../" + filepath.Base(dir) + "/node.cache" },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			c := Cache{Path: write(dir)}
			w := watch(t, c.Watch)
			put(t, c, pool(3))
			<-w.C
		})
	}
}

// TestAChangeBeforeTheWaitIsNotLost: Watch, look, change by another, wait.
func TestAChangeBeforeTheWaitIsNotLost(t *testing.T) {
	c := newCache(t, pool(200))
	w := watch(t, c.Watch)
	done := make(chan error, 1)
	go func() {
		for i := range 200 {
			if _, err := pick(c, fmt.Sprint(i)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	// Wakes may be fewer than changes, but after the last change comes one.
	for used := 0; used < 200; {
		<-w.C
		if err := c.View(t.Context(), func(s *ipam.State) error { used = len(s.Used()); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestLookingWakesNobody: an agent that looks when it wakes must not wake itself.
func TestLookingWakesNobody(t *testing.T) {
	c := newCache(t, pool(3))
	dir := filepath.Dir(c.Path)
	all, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if err := all.Add(dir); err != nil {
		t.Fatal(err)
	}
	w := watch(t, c.Watch)
	get(t, c)
	if err := c.Update(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	// Events come in order: when this one is here, all before it were.
	if err := os.Mkdir(filepath.Join(dir, "mark"), 0o700); err != nil {
		t.Fatal(err)
	}
	for e := range all.Events {
		if e.Name == filepath.Join(dir, "mark") {
			break
		}
		if e.Name == c.Path {
			t.Errorf("looking made a %s", e)
		}
	}
	select {
	case <-w.C:
		t.Error("looking woke who waits")
	default:
	}
}

func TestAWatchNeedsAFolder(t *testing.T) {
	c := Cache{Path: filepath.Join(t.TempDir(), "none", "node.cache")}
	if w, err := c.Watch(); err == nil {
		_ = w.Close()
		t.Error("watches a folder that is not there")
	}
}

func TestACloseEndsTheWatch(t *testing.T) {
	c := newCache(t, pool(3))
	w, err := c.Watch()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	mustPick(t, c, "a")
	select {
	case <-w.C:
		t.Error("woken after Close")
	default:
	}
}
