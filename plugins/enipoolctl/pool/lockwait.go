package pool

import (
	"fmt"
	"io"
	"time"

	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/podrecord"
)

// lockLook is how often tellWaits checks whether the command waits for a lock. A wait of
// milliseconds is not worth a line.
const lockLook = time.Second

// tellWaits tells which lock of the pool's the command waits for, and who has it, until
// stop is called: the wait may last, and ends in an error if the holder hangs.
func tellWaits(cache nodecache.Cache, screen io.Writer) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	paths := []string{cache.LockFile(), podrecord.Beside(cache.Path).LockFile()}
	go func() {
		defer close(ended)
		tick := time.NewTicker(lockLook)
		defer tick.Stop()
		for said := ""; ; {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			path := filelock.Awaited(paths...)
			if path == "" {
				continue
			}
			holder := filelock.HolderOf(path)
			text := fmt.Sprintf("waiting for the lock %s, held by %s; %s", path, holder, holder.Todo())
			if text != said {
				fmt.Fprintln(screen, text)
			}
			said = text
		}
	}()
	return func() { close(end); <-ended }
}
