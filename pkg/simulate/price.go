package simulate

import (
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Price is an action of the cloud's API that a call of a method makes.
type Price struct {
	Action    string // the API's name for it
	Describes bool   // it changes nothing
	Count     int    // how many of them a call makes
	Each      int    // the most addresses of one request, beyond which a call makes more of them; 0 is any number
	Later     bool   // the call has changed something before it
}

// Prices returns the requests that a call of a node makes which runs alone, by method; describes
// are those of an agent that has just started. It is nil where calls are counted.
func (w World) Prices() map[string][]Price {
	if w.Driver == nil {
		return nil
	}
	t, prices := newTolls(w), map[string][]Price{}
	for _, method := range append(slices.Clone(describeMethods[:]), create, assign, unassign, remove) {
		for _, f := range t.requestsOf(part{method, 1}) {
			p := Price{Action: f.action, Describes: f.describes, Count: f.count, Later: f.later}
			if more := w.Driver.PerCall + 1; more > 1 && more <= w.Limits.PerENI(eni.IPv4) && t.countAction(part{method, more}, f.action) > f.count {
				p.Each = w.Driver.PerCall
			}
			prices[method] = append(prices[method], p)
		}
	}
	return prices
}
