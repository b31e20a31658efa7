package wire

import (
	"sync"
	"time"
)

// Clock is how far the machine's clock is ahead of the cloud's, by the last answer.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
	known bool
}

// Note compares the time of an answer with the machine's when it came.
func (c *Clock) Note(ours, theirs time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.known = ours.Sub(theirs), true
}

// Skew returns how far ahead the machine's clock is.
func (c *Clock) Skew() (ahead time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.known
}
