package simulate

import (
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Price is an action of the cloud's API that a call of a method makes.
type Price struct {
	Action string // the API's name for it
	Looks  bool   // it changes nothing
	Count  int    // how many of them a call makes
	Each   int    // one is about so many addresses at most, and there are more of them for more; 0 is any
	Later  bool   // a change of the call comes before
}

// Prices are what the calls of a node are made of that meet no others, the looks as those
// of one that begins: by method, nil where calls are counted.
func (w World) Prices() map[string][]Price {
	if w.Driver == nil {
		return nil
	}
	t, prices := newTolls(w), map[string][]Price{}
	for _, method := range append(slices.Clone(looks[:]), create, assign, unassign, remove) {
		for _, f := range t.requestsOf(part{method, 1}) {
			p := Price{Action: f.action, Looks: f.looks, Count: f.count, Later: f.later}
			if more := w.Driver.PerCall + 1; more > 1 && more <= w.Limits.PerENI(eni.IPv4) && t.countAction(part{method, more}, f.action) > f.count {
				p.Each = w.Driver.PerCall
			}
			prices[method] = append(prices[method], p)
		}
	}
	return prices
}
