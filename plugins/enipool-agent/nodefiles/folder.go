// Package nodefiles is about the files through which the agent meets others on the node: its locks
// and the folder of the node cache, the network configuration that runtimes take, and what ADDs
// leave of their waits.
package nodefiles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/plugins/enipool-agent/cli"
)

// removing is how long whoever removes a folder may need from its first file on.
const removing = 100 * time.Millisecond

// lookTime is how often the agent looks at a folder that it can't watch.
const lookTime = time.Second

// Keeper keeps the folder of the node cache the agent's: when the folder or a lock in it
// is removed, moved or covered by a mount it makes the folder again, takes the locks again
// and watches what is at the path now.
type Keeper struct {
	cache nodecache.Cache
	locks *Locks
	log   *slog.Logger
	wake  chan struct{} // the loop, when cache, pending ADDs or the folder changed

	watch   *nodecache.Watch // nil: the folder can't be watched
	watched *os.File         // the folder that watch is on: open, its number is no other folder's
	lost    bool             // the last look found something lost: more may go
	said    string           // what was last logged of a failure
	refused string           // why the cache can't be written, as the loop was told last
}

// NewKeeper returns the keeper of the folder of that cache.
func NewKeeper(cache nodecache.Cache, locks *Locks, log *slog.Logger) *Keeper {
	return &Keeper{cache: cache, locks: locks, log: log, wake: make(chan struct{}, 1)}
}

// Run works until ctx ends; WatchCacheFolder comes before it. It fails where another agent took the node meanwhile.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.closeWatch()
	for {
		var events <-chan struct{}
		if k.watch != nil {
			events = k.watch.C
		}
		wakes := k.watch == nil // nobody tells of changes: a node that has no inotify instances left needs its agent all the more
		select {
		case <-ctx.Done():
			return nil
		case <-events:
			wakes = true
		case <-time.After(k.nextLook(nodecache.SinceBoot())):
		}
		lost, err := k.restoreLost(ctx)
		if err != nil {
			return &cli.NodeError{Err: err}
		}
		k.lost = lost
		if wakes || lost || k.writableTurned() {
			k.wakeLoop()
		}
	}
}

// nextLook is how long it rests when it hears nothing. It looks at a folder that it watches too, with each sign
// of life: not everything that takes the folder away is told. It may be mounted over, or somebody may stand in
// it when it is removed. What failed, and what may be over soon, it looks at more often.
func (k *Keeper) nextLook(now time.Duration) time.Duration {
	if k.watch == nil || k.lost || k.said != "" || k.refused != "" {
		return lookTime
	}
	return status.UntilBeat(now)
}

// Changed wakes the loop when the cache, the pending ADDs or the folder changed.
func (k *Keeper) Changed() <-chan struct{} { return k.wake }

func (k *Keeper) wakeLoop() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// restoreLost tells whether the folder or a lock was lost. An error other than that of another
// agent is logged and tried again with the next look: it may be a file system that comes back.
func (k *Keeper) restoreLost(ctx context.Context) (lost bool, err error) {
	paths := k.locks.dropLost()
	if len(paths) > 0 || k.folderLost() {
		lost = true
		select { // whoever removes a folder would else find a new file in it, and fail
		case <-time.After(removing):
		case <-ctx.Done():
			return lost, nil
		}
		paths = append(paths, k.locks.dropLost()...) // that went since: nobody may tell of them any more
	}
	if k.folderLost() {
		k.closeWatch()
		paths = append([]string{filepath.Dir(k.cache.Path)}, paths...)
	}
	if len(paths) > 0 {
		k.log.Error("files of the agent were removed or replaced by others; they are made again", "paths", strings.Join(paths, " "))
	}
	err = k.locks.TakeAll()
	if other := (*otherAgentError)(nil); errors.As(err, &other) {
		return lost, fmt.Errorf("this agent's lock was removed by others, and meanwhile another agent took the node: %s holds %s; this one ends", other.holder, other.path)
	}
	if err != nil {
		k.warnOnce("files of the agent can't be made again", err)
		return lost, nil
	}
	if k.watch == nil {
		k.WatchCacheFolder()
		return lost || k.watch != nil, nil // what happened before was not seen
	}
	k.said = ""
	return lost, nil
}

// writableTurned tells whether the cache can't be written any more, or can again: nothing announces
// that a file system is mounted read-only. The loop asks for itself, and says it.
func (k *Keeper) writableTurned() bool {
	now := ""
	if err := k.cache.CheckWritable(); err != nil {
		now = err.Error()
	}
	was := k.refused
	k.refused = now
	return now != was
}

// folderLost tells whether the folder that is watched is not at its path any more.
func (k *Keeper) folderLost() bool {
	if k.watch == nil {
		return false
	}
	have, err := k.watched.Stat()
	at, look := os.Stat(filepath.Dir(k.cache.Path))
	return err != nil || look != nil || !os.SameFile(at, have)
}

// WatchCacheFolder watches the folder that is at the path now. Where that can't be it leaves none
// watched: the loop then looks every second.
func (k *Keeper) WatchCacheFolder() {
	folder, err := os.Open(filepath.Dir(k.cache.Path))
	if err == nil {
		// The folder before the watch: if it is replaced in between that shows at the next look.
		if k.watch, err = k.cache.WatchAll(); err != nil {
			k.watch = nil
			folder.Close()
		}
	}
	if err != nil {
		k.warnOnce("node cache can't be watched, looking every second; fs.inotify.max_user_instances may be too low", err)
		return
	}
	k.watched, k.said = folder, ""
}

func (k *Keeper) closeWatch() {
	if k.watch != nil {
		_ = k.watch.Close()
		k.watched.Close()
		k.watch, k.watched = nil, nil
	}
}

// warnOnce logs a failure once, and not at each look.
func (k *Keeper) warnOnce(what string, err error) {
	if err.Error() == k.said {
		return
	}
	k.said = err.Error()
	k.log.Warn(what, "error", err)
}
