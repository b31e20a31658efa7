package nodecache

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Here too a wake that does not come hangs the test.

func TestTheAgentWakesWhenAnAddComesAndGoes(t *testing.T) {
	c := newCache(t, pool(3))
	w := watch(t, c.WatchAll)
	mustPick(t, c, "a")
	<-w.C
	one := announce(t, c, owner("b"), SinceBoot()+time.Minute)
	<-w.C
	one.Done()
	<-w.C
	put(t, c, pool(4))
	<-w.C
	announce(t, c, owner("c"), SinceBoot()+time.Minute)
	<-w.C
	// The folder may be removed, and come back with the next pending ADD.
	if err := os.RemoveAll(c.pendingDir()); err != nil {
		t.Fatal(err)
	}
	<-w.C
	announce(t, c, owner("first"), SinceBoot()+time.Minute)
	<-w.C
	if got := waiting(t, c, SinceBoot()); got != "first" {
		t.Errorf("%q wait, want first", got)
	}
	for i := range 5 { // more than wakes can be left over
		announce(t, c, owner(fmt.Sprint(i)), SinceBoot()+time.Minute)
		<-w.C
	}
}

func TestTheAgentSeesTheFirstPendingADDWithoutACache(t *testing.T) {
	c := Cache{Path: filepath.Join(t.TempDir(), "node.cache")}
	w := watch(t, c.WatchAll)
	announce(t, c, owner("a"), SinceBoot()+time.Minute)
	<-w.C
}

// TestPendingADDsWakeNoADDAndLookingNobody: each ADD that comes would otherwise wake
// all that wait, and an agent that looks would wake itself.
func TestPendingADDsWakeNoADDAndLookingNobody(t *testing.T) {
	c := newCache(t, pool(3))
	add := watch(t, c.Watch)
	for i := range 10 {
		w := announce(t, c, owner(fmt.Sprint(i)), SinceBoot()+time.Minute)
		if i > 0 {
			w.Done()
		}
	}
	if err := c.SetWhy("no room"); err != nil {
		t.Fatal(err)
	}
	mark(t, filepath.Dir(c.Path))
	select {
	case <-add.C:
		t.Error("an ADD was woken by another's")
	default:
	}

	agent := watch(t, c.WatchAll)
	if got := waiting(t, c, SinceBoot()); got != "0" || c.Why() != "no room" {
		t.Errorf("%q wait, %q", got, c.Why())
	}
	if err := c.SetWhy("no room"); err != nil {
		t.Fatal(err)
	}
	mark(t, c.pendingDir(), filepath.Dir(c.Path))
	select {
	case <-agent.C:
		t.Error("looking woke the agent")
	default:
	}
}

// mark makes a folder in each of dirs and returns when a watcher has seen it: events
// come in order, so the kernel has told the older ones all that was before.
func mark(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := w.Add(dir); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "mark"+unfinished)
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		for e := range w.Events {
			if e.Name == name {
				break
			}
		}
		remove(t, name)
	}
}
