package kpa

import "time"

// Peak is the largest of the newest values, the window of the scale-down delay. Its
// time goes in slots; a value leaves with its slot, when a later slot is recorded.
type Peak struct {
	Slots       int           `json:"slots"` // that count, the newest included
	Granularity time.Duration `json:"granularity"`

	// Candidates can still be the largest: newer than all that are larger, so the
	// first one is.
	Candidates []Candidate `json:"candidates"`
	Newest     int         `json:"newest"` // slot; time does not go back behind it
}

// Candidate is a value with the slot it came in.
type Candidate struct {
	Slot  int `json:"slot"`
	Value int `json:"value"`
}

// NewPeak returns an empty window over a delay, in slots of a granularity. A value
// stays for at least the delay less one slot.
func NewPeak(delay, granularity time.Duration) *Peak {
	return &Peak{Slots: cover(delay, granularity), Granularity: granularity, Candidates: []Candidate{}}
}

// Record takes a value and returns the largest of the window.
func (p *Peak) Record(t time.Duration, value int) int {
	p.Newest = max(p.Newest, int(t/p.Granularity))
	for len(p.Candidates) > 0 && p.Candidates[len(p.Candidates)-1].Value <= value {
		p.Candidates = p.Candidates[:len(p.Candidates)-1]
	}
	p.Candidates = append(p.Candidates, Candidate{p.Newest, value})
	for p.Candidates[0].Slot <= p.Newest-p.Slots {
		p.Candidates = p.Candidates[1:]
	}
	return p.Candidates[0].Value
}
