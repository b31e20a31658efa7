package nodefiles

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status/web"
)

// ReadPool returns what reads the node cache for the agent's page. It has the cache's lock no longer than any reader: what
// it returns is a copy.
func ReadPool(cache nodecache.Cache) web.ReadPool {
	return func(ctx context.Context) (pool *ipam.State, booted time.Duration, err error) {
		err = cache.View(ctx, func(s *ipam.State) error {
			pool = s.Clone()
			return nil
		})
		return pool, nodecache.SinceBoot(), err
	}
}
