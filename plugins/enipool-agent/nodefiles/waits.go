package nodefiles

import (
	"log/slog"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status/web"
)

// CountWaits returns wants which counts the waits of ADDs that have ended, too: whose
// wait ends wakes the loop.
func CountWaits(cache nodecache.Cache, metrics *web.Metrics, log *slog.Logger, wants wantsFunc) wantsFunc {
	said := ""
	return func(now time.Duration) ([]nodecache.PendingADD, error) {
		list, err := cache.TakeWaits()
		for _, w := range list {
			metrics.Waited(string(w.Outcome), w.Took)
		}
		switch {
		case err == nil:
			said = ""
		case err.Error() != said: // once, and not at each tick
			said = err.Error()
			log.Warn("waits of ADDs are not counted", "error", err)
		}
		return wants(now)
	}
}

// wantsFunc returns the ADDs that wait.
type wantsFunc = func(now time.Duration) ([]nodecache.PendingADD, error)
