package nodecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Watch sends on C when the file may have changed. Changes that come together are sent once.
type Watch struct {
	C       <-chan struct{}
	watcher *fsnotify.Watcher
	done    chan struct{}
}

// Watch starts watching the file, whether it exists or not; its folder must.
// Call it before looking at the node state, then no change is missed. Close ends it.
func (c Cache) Watch() (*Watch, error) {
	name := filepath.Base(c.Path)
	return c.watch(func(_ *fsnotify.Watcher, e fsnotify.Event) bool { return changed(e, name) }, filepath.Dir(c.Path))
}

// WatchAll is Watch for the agent: it wakes also when an ADD begins or ends to
// wait for an address, and when the cache, the agent's lock or their folder is removed
// or moved away. After the folder it sees nothing any more: start another one then. The ADDs
// themselves use Watch, or each that comes would wake all that wait.
func (c Cache) WatchAll() (*Watch, error) {
	// The folder is there before the first pending ADD, so that it can be watched.
	if err := os.Mkdir(c.pendingDir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("watch node cache: %w", err)
	}
	name, pending := filepath.Base(c.Path), filepath.Base(c.pendingDir())
	folder, lock := filepath.Dir(c.Path), filepath.Base(c.AgentLock())
	return c.watch(func(w *fsnotify.Watcher, e fsnotify.Event) bool {
		gone := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
		switch {
		case gone && filepath.Clean(e.Name) == folder:
			return true
		case filepath.Base(filepath.Dir(e.Name)) == pending:
			return (e.Has(fsnotify.Create) || e.Has(fsnotify.Remove)) && !strings.HasSuffix(e.Name, unfinished)
		case filepath.Base(e.Name) == pending && e.Has(fsnotify.Create):
			_ = w.Add(c.pendingDir()) // somebody removed it; if this fails the agent's next tick reads it
			return true
		case gone && (filepath.Base(e.Name) == name || filepath.Base(e.Name) == lock):
			return true
		}
		return changed(e, name)
	}, folder, c.pendingDir())
}

// changed tells whether the event is a change of the file.
func changed(e fsnotify.Event, name string) bool {
	return filepath.Base(e.Name) == name && (e.Has(fsnotify.Write) || e.Has(fsnotify.Create))
}

// watch watches folders, and not files: a new layout comes by rename. matters
// tells which events wake.
func (c Cache) watch(matters func(*fsnotify.Watcher, fsnotify.Event) bool, dirs ...string) (*Watch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch node cache: %w", err)
	}
	for _, dir := range dirs {
		if err := watcher.Add(dir); err != nil {
			watcher.Close()
			return nil, fmt.Errorf("watch node cache: %w", err)
		}
	}
	wake := make(chan struct{}, 1)
	w := &Watch{C: wake, watcher: watcher, done: make(chan struct{})}
	go w.forward(matters, wake)
	return w, nil
}

func (w *Watch) forward(matters func(*fsnotify.Watcher, fsnotify.Event) bool, wake chan<- struct{}) {
	defer close(w.done)
	for {
		select {
		case e, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			if !matters(w.watcher, e) {
				continue
			}
		case _, ok := <-w.watcher.Errors:
			// An overflow lost events: the file may have changed.
			if !ok {
				return
			}
		}
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// Close ends the watch and waits for its goroutine.
func (w *Watch) Close() error {
	err := w.watcher.Close()
	<-w.done
	return err
}
