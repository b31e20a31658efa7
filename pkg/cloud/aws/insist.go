package aws

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// insist makes a change that is a later step of a method, and makes it again where EC2
// has too many: nothing has happened then, and to give up would leave things half
// done. Nodes that were refused together do not come back together.
func insist[I, O any](ctx context.Context, c *Client, do request[I, O], in *I) (*O, error) {
	began := c.now()
	for most := 2 * c.pace[0]; ; most = min(2*most, 2*c.pace[1]) {
		out, err := change(ctx, c, do, in)
		if !errors.Is(err, cloud.ErrThrottled) || c.now().Sub(began) > mostWait {
			return out, err
		}
		if pause(ctx, most/2+rand.N(most/2+1)) != nil {
			return nil, err
		}
	}
}

// mostWait is how long EC2 may take for a step; it needs some seconds.
const mostWait = 2 * time.Minute
