package configfile

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// writing is how long a writer may rest before the end of the file.
const writing = 100 * time.Millisecond

// watchFolder reports what happens in the folder, nothing where inotify refuses.
func watchFolder(dir string, log *slog.Logger) (events <-chan fsnotify.Event, errs <-chan error, stop func()) {
	watch, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watch.Add(dir); err == nil {
			return watch.Events, watch.Errors, func() { _ = watch.Close() }
		}
		_ = watch.Close()
	}
	log.Warn("configuration can't be watched; SIGHUP reloads it", "error", err)
	return nil, nil, func() {}
}

// waitForWriter waits until a writer has most likely ended: half a file may be no
// configuration, or another one.
func waitForWriter(ctx context.Context, events <-chan fsnotify.Event) {
	most := time.After(10 * writing)
	for {
		select {
		case <-events:
		case <-time.After(writing):
			return
		case <-most:
			return
		case <-ctx.Done():
			return
		}
	}
}

// lookTime is how often it is looked for a file that is gone.
const lookTime = time.Second

// configFile is the agent's configuration as it was found last.
type configFile struct {
	path string
	text string
	gone bool
}

// changed tells whether the file is another one now, has gone or is back. One that is there
// and can't be read is as it was.
func (f *configFile) changed() bool {
	text, err := os.ReadFile(f.path)
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone || gone == f.gone && string(text) == f.text {
		return false
	}
	f.text, f.gone = string(text), gone
	return true
}

// lookRefused is how often a file that is refused is looked at once more: what was wrong may be
// the node's, like a file that it names.
const lookRefused = time.Minute

// watchConfig sends each configuration after the one that was found, if it can be read, until
// ctx ends. One that can't, or that is gone, is refused with what is wrong, and the old one stays.
func watchConfig(ctx context.Context, file configFile, log *slog.Logger, refused *refusal) <-chan Source {
	// The folder and not the file: editors and ConfigMaps rename.
	events, errs, stop := watchFolder(filepath.Dir(file.path), log)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	out := make(chan Source)
	go func() {
		defer func() { stop() }()
		defer signal.Stop(hup)
		var look <-chan time.Time // while the file is gone: its folder may be, too, and nobody tells when that is back
		if file.gone {
			look = time.After(lookTime)
		}
		again := time.NewTicker(lookRefused)
		defer again.Stop()
		for first := true; ; first = false {
			asked := false
			if !first { // it may have changed before it was watched
				select {
				case <-ctx.Done():
					return
				case <-hup:
					asked = true
					refused.tellNextAgain()
				case <-again.C:
					if asked = refused.Status() != nil; !asked {
						continue
					}
				case <-events:
					waitForWriter(ctx, events)
				case <-errs:
				case <-look:
					look = time.After(lookTime)
					if _, err := os.Stat(file.path); err != nil {
						continue
					}
					stop()
					events, errs, stop = watchFolder(filepath.Dir(file.path), log) // it may be another one
				}
			}
			if !file.changed() && !asked {
				continue
			}
			if look = nil; file.gone {
				look = time.After(lookTime)
			}
			found, err := Read(file.path)
			if err != nil {
				refused.refuseFile(err)
				continue
			}
			select {
			case out <- found:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
