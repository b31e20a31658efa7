package cluster

import (
	"sync"
	"time"
)

// silence notes that the watch fails. Nobody tells when it works again, but while it fails it is tried again at least once a minute; and
// a watch that ends in the usual way, as each does after some minutes, is an error too.
type silence struct {
	mu    sync.Mutex
	first time.Time // error of those that came one after the other
	last  time.Time
	why   error
}

// inARow is how far apart errors are at most that are one failure.
const inARow = 2 * time.Minute

func (s *silence) note(now time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) > inARow {
		s.first = now
	}
	s.last, s.why = now, err
}

// since returns since when the watch has failed and why, nil if it works.
func (s *silence) since(now time.Time) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil || now.Sub(s.last) > inARow {
		return time.Time{}, nil
	}
	return s.first, s.why
}
