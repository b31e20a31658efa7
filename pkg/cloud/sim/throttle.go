package sim

import "time"

// Bucket lets Burst calls pass at once and then one each Every, as clouds count
// the calls of an account. The zero Bucket lets all pass.
type Bucket struct {
	Burst int
	Every time.Duration
}

// Meter is a Bucket in use. It keeps the time at which the bucket is full again:
// each call puts it off by Every.
type Meter struct {
	Bucket
	full time.Time
}

// Take lets a call pass, or returns how long to wait for the next that will.
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
