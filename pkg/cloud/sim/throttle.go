package sim

import "time"

// Bucket lets Burst calls pass at once and then one each Every, as clouds count
// the calls of an account. The zero Bucket lets all pass.
type Bucket struct {
	Burst int
	Every time.Duration
}

// Meter is a Bucket in use. It keeps the time at which the bucket will be full again: each call moves
// it later by Every.
type Meter struct {
	Bucket
	full time.Time
}

// Take takes a token and returns 0, or returns how long it takes until there is one.
func (m *Meter) Take(now time.Time) time.Duration {
	if m.Every <= 0 {
		return 0
	}
	if m.full.Before(now) {
		m.full = now
	}
	most := time.Duration(max(m.Burst, 1)-1) * m.Every
	if over := m.full.Sub(now) - most; over > 0 {
		return over
	}
	m.full = m.full.Add(m.Every)
	return 0
}
