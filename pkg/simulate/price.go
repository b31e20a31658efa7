package simulate

import "github.com/enipool/enipool/pkg/cloud/sim"

// Price is a kind of request to a cloud's own API that a call of a method makes. Each kind
// of request has a bucket of its own, and a call makes its requests in the order of the
// list.
type Price struct {
	Request string // the API's name for it
	Looks   bool   // it changes nothing
	Count   int    // how many of them a call makes, 0 for one
	Each    int    // a request is about so many addresses at most, and there are more of them for more; 0 is any
	Tries   int    // how often a client makes it that is refused, 0 for once
	Later   bool   // CreateInterface makes it between making the ENI and having it attached
}

// Of returns how many requests a call about that many addresses makes.
func (p Price) Of(addresses int) int {
	n := max(p.Count, 1)
	if p.Each > 0 {
		n *= max(1, (addresses+p.Each-1)/p.Each)
	}
	return n
}

// bucket returns the bucket of a kind of request.
func (w World) bucket(p Price) sim.Bucket {
	b, own := w.Buckets[p.Request]
	switch {
	case own:
		return b
	case p.Looks:
		return w.Describing
	}
	return w.Mutating
}

// Passed counts requests of a kind.
type Passed struct{ Passed, Refused int }
