package wire

import (
	"sync"
	"time"
)

// Clock knows, from the last answer, how far the machine's clock is ahead of the cloud's.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
	known bool
}

// Note takes the machine's time when an answer came, and the time in the answer.
func (c *Clock) Note(ours, theirs time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.known = ours.Sub(theirs), true
}

// Skew returns how far ahead the machine's clock is, unless there was no answer yet.
func (c *Clock) Skew() (ahead time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.known
}
