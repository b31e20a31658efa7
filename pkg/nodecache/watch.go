package nodecache

import (
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Watch wakes a waiter when the file may have changed. Changes that come
// together are one wake.
type Watch struct {
	C       <-chan struct{}
	watcher *fsnotify.Watcher
	done    chan struct{}
}

// Watch starts watching the file, whether it exists or not; its folder must.
// Call it before looking at the book, then no change is missed. Close ends it.
func (c Cache) Watch() (*Watch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch node cache: %w", err)
	}
	// The folder and not the file: a new layout comes by rename.
	if err := watcher.Add(filepath.Dir(c.Path)); err != nil {
		watcher.Close()
		return nil, fmt.Errorf("watch node cache: %w", err)
	}
	wake := make(chan struct{}, 1)
	w := &Watch{C: wake, watcher: watcher, done: make(chan struct{})}
	go w.forward(filepath.Base(c.Path), wake)
	return w, nil
}

func (w *Watch) forward(name string, wake chan<- struct{}) {
	defer close(w.done)
	for {
		select {
		case e, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			if filepath.Base(e.Name) != name || !(e.Has(fsnotify.Write) || e.Has(fsnotify.Create)) {
				continue
			}
		case _, ok := <-w.watcher.Errors:
			// An overflow lost events: the waiter must look for itself.
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
