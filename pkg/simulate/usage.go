package simulate

import (
	"maps"
	"slices"
	"time"
)

// Usage is what a load made of the rate that the account has for a kind of request.
type Usage struct {
	Name      string  `json:"name"`
	Passed    int     `json:"passed"`
	Refused   int     `json:"refused"`
	PerSecond float64 `json:"perSecond"` // that were made, on average
	Limit     float64 `json:"limit"`     // a second in the long run, 0 for any number
}

// Share is how much of the limit they are, from 0 to 1 and above; 0 without a limit.
func (u Usage) Share() float64 {
	if u.Limit == 0 {
		return 0
	}
	return u.PerSecond / u.Limit
}

// usage returns the kinds of requests that were made since before, by name.
func (p *play) usage(before map[string]Passed, over time.Duration) (list []Usage) {
	done := p.till.requestCounts()
	for _, name := range slices.Sorted(maps.Keys(done)) {
		u := Usage{Name: name, Passed: done[name].Passed - before[name].Passed, Refused: done[name].Refused - before[name].Refused}
		if u.Passed+u.Refused == 0 {
			continue
		}
		u.PerSecond = float64(u.Passed+u.Refused) / over.Seconds()
		if b := p.world.bucketFor(name, p.till.describing[name]); b.Every > 0 {
			u.Limit = float64(time.Second) / float64(b.Every)
		}
		list = append(list, u)
	}
	return list
}
