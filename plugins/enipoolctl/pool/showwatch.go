package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// showEvery is how often the pool is shown on a terminal, for the times in it, and how often a node
// cache is looked for whose folder does not exist: nothing can announce it then.
const showEvery = time.Second

// cacheWatch shows the pool now and after each change of the node cache. While the cache can't be
// used it says what it waits for: an agent makes it, or `pool load`.
type cacheWatch struct {
	cache  nodecache.Cache
	out    io.Writer
	screen *cli.Screen // a terminal: each picture replaces the one before. nil: there is none
	errOut io.Writer
	show   func(io.Writer) error

	said bool // what it waits for, as long as that lasts
}

func (w *cacheWatch) run(ctx context.Context) error {
	for {
		if again, err := w.showOnce(ctx); !again || err != nil {
			return err
		}
	}
}

// showOnce shows the pool and waits until it is to be shown again; again is false if ctx has ended.
func (w *cacheWatch) showOnce(ctx context.Context) (again bool, err error) {
	watch, err := w.openWatch(ctx)
	if err != nil || ctx.Err() != nil {
		return false, err
	}
	if watch != nil {
		defer watch.Close()
	}
	if w.screen != nil {
		err = w.screen.Show(isBad, w.show)
	} else {
		err = w.show(w.out)
	}
	unusable := nodecache.Unusable(err)
	if err != nil && !unusable {
		return false, err
	}
	if unusable && (w.screen != nil || !w.said) {
		fmt.Fprintf(w.errOut, "enipoolctl: waiting for the node cache: %v\n", err)
	}
	w.said = unusable
	switch {
	case w.screen != nil:
		return sleepOr(ctx, watch), nil
	case watch == nil: // its folder may exist by now
		return ctx.Err() == nil, nil
	}
	select {
	case <-watch.C:
		return true, nil
	case <-ctx.Done():
		return false, nil
	}
}

// openWatch begins to watch the cache, so that no change after that is missed. Without the cache's folder
// it returns none before it has been said what it waits for, and on a terminal; else it waits for the folder.
func (w *cacheWatch) openWatch(ctx context.Context) (*nodecache.Watch, error) {
	for {
		watch, err := w.cache.Watch()
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			return watch, err
		case w.screen != nil || !w.said || !sleepOr(ctx, nil):
			return nil, nil
		}
	}
}

// sleepOr sleeps for showEvery, or until watch tells of a change where there is one. It returns false
// if ctx ended before.
func sleepOr(ctx context.Context, watch *nodecache.Watch) bool {
	var changed <-chan struct{}
	if watch != nil {
		changed = watch.C
	}
	select {
	case <-changed:
	case <-time.After(showEvery):
	case <-ctx.Done():
		return false
	}
	return true
}
