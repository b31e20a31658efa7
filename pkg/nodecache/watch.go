package nodecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Watch sends on C when the file may have changed. Changes that come together are sent once.
type Watch struct {
	C       <-chan struct{}
	notices *inotify
	done    chan struct{}
}

// Watch starts watching the file, whether it exists or not; its folder must.
// Call it before looking at the node state, then no change is missed. Close ends it.
func (c Cache) Watch() (*Watch, error) {
	name := filepath.Base(c.Path)
	return c.watch(func(_ *inotify, n notice) bool { return changed(n, name) }, filepath.Dir(c.Path))
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
	return c.watch(func(i *inotify, n notice) bool {
		gone := n.has(removed | moved)
		switch {
		case n.dir == c.pendingDir():
			return n.name != "" && n.has(came|removed) && !strings.HasSuffix(n.name, unfinished)
		case n.name == "":
			return gone
		case n.name == pending && n.has(came):
			_ = i.add(c.pendingDir()) // somebody removed it; if this fails the agent's next tick reads it
			return true
		case gone && (n.name == name || n.name == lock):
			return true
		}
		return changed(n, name)
	}, folder, c.pendingDir())
}

// changed tells whether the notice is of a change of the file.
func changed(n notice, name string) bool { return n.name == name && n.has(came|written) }

// watch watches folders, and not files: a new layout comes by rename. matters
// tells which notices wake.
func (c Cache) watch(matters func(*inotify, notice) bool, dirs ...string) (*Watch, error) {
	notices, err := newInotify()
	if err != nil {
		return nil, fmt.Errorf("watch node cache: %w", err)
	}
	for _, dir := range dirs {
		if err := notices.add(dir); err != nil {
			notices.file.Close()
			return nil, fmt.Errorf("watch node cache: %w", err)
		}
	}
	wake := make(chan struct{}, 1)
	w := &Watch{C: wake, notices: notices, done: make(chan struct{})}
	go w.forward(matters, wake)
	return w, nil
}

// forward wakes until the watch is closed. What can't be read may have been a change.
func (w *Watch) forward(matters func(*inotify, notice) bool, wake chan<- struct{}) {
	defer close(w.done)
	for {
		n, lost, err := w.notices.next()
		if errors.Is(err, fs.ErrClosed) {
			return
		}
		if err == nil && !lost && !matters(w.notices, n) {
			continue
		}
		select {
		case wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Close ends the watch and waits for its goroutine.
func (w *Watch) Close() error {
	err := w.notices.file.Close()
	<-w.done
	if errors.Is(err, fs.ErrClosed) { // it had ended
		return nil
	}
	return err
}
