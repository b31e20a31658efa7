package bce

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// readTries is how often a read is made that the cloud refuses for its rate: all
// nodes of an account share that, and lists pass once a second. It takes about as
// long as the agent lets a call take.
const readTries = 15

// again waits before the next try of a read that was refused, and tells whether there
// is one. Nodes that were refused together do not come back together.
func (c *Client) again(ctx context.Context, k call, try int, err error) bool {
	if k.mutates || try >= readTries || !errors.Is(err, cloud.ErrThrottled) {
		return false
	}
	wait := c.poll << min(try-1, 3)
	wait = wait/2 + rand.N(wait/2+1)
	if f, ok := errors.AsType[*failure](err); ok {
		wait = max(wait, f.failed.RetryAfter)
	}
	if end, limited := ctx.Deadline(); limited && time.Until(end) < wait {
		return false // what the cloud said tells more than that time ran out
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
