package cluster

import (
	"errors"
	"testing"
	"time"
)

// A watch has failed since the first of the errors that come one after the other. Single ones are how watches end.
func TestAWatchIsSilentWhileErrorsFollowEachOther(t *testing.T) {
	var s silence
	begin, bad := time.Now(), errors.New("no route")
	for _, tt := range []struct {
		at    time.Duration
		fails bool
		since time.Duration // -1: it works
	}{
		{0, false, -1}, {time.Minute, true, time.Minute}, {4 * time.Minute, false, -1},
		{5 * time.Minute, true, 5 * time.Minute}, {6 * time.Minute, true, 5 * time.Minute}, {7 * time.Minute, true, 5 * time.Minute},
		{8 * time.Minute, false, 5 * time.Minute}, {10 * time.Minute, false, -1}, {11 * time.Minute, true, 11 * time.Minute},
	} {
		now := begin.Add(tt.at)
		if tt.fails {
			s.note(now, bad)
		}
		since, err := s.since(now)
		if (err != nil) != (tt.since >= 0) || err != nil && !since.Equal(begin.Add(tt.since)) {
			t.Errorf("at %s: since %s, %v", tt.at, since.Sub(begin), err)
		}
	}
}
