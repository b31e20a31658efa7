package sim

import (
	"context"
	"maps"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Price is a kind of request to a cloud's own API that a call of a method makes. Where
// Options have Prices, each kind of request has a bucket of its own, and a call makes
// its requests in the order of the list.
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

// Bucket returns the bucket of a kind of request.
func (o Options) Bucket(p Price) Bucket {
	b, own := o.Buckets[p.Request]
	switch {
	case own:
		return b
	case p.Looks:
		return o.Describing
	}
	return o.Mutating
}

// Requests counts requests of a kind.
type Requests struct{ Passed, Refused int }

// Requests returns how many requests there were, by their names: none where Options
// have no Prices.
func (a *Account) Requests() map[string]Requests {
	a.lock()
	defer a.mu.Unlock()
	return maps.Clone(a.nodes.tolls.requests)
}

// tolls are what requests are counted with.
type tolls struct {
	meters   map[string]*Meter
	requests map[string]Requests
	paid     map[paid]bool
}

// paid is a change that CreateInterface made for a token: later calls with it find
// that it is done.
type paid struct{ token, request string }

// toll lets a call pass or refuses it, where calls are counted and not requests.
func (a *Account) toll(r request) error {
	m := &a.nodes.describe
	if mutates(r.Method) {
		m = &a.nodes.mutating
	}
	if a.o.Prices != nil {
		return nil
	}
	if again := m.Take(a.now); again > 0 {
		return &cloud.Error{Kind: cloud.ErrThrottled, Detail: "request rate of the account exceeded", RetryAfter: again}
	}
	return nil
}

// ask makes the requests of a call that come before its effect. Where one is refused
// nothing has happened. EC2 and its like do not tell when to come again.
func (a *Account) ask(ctx context.Context, r request) error {
	for _, p := range a.requests(r, false) {
		if err := a.insist(ctx, r, p); err != nil {
			return err
		}
	}
	return nil
}

// attaching lets the time pass that an ENI takes to be attached, with the requests that
// are made in it.
func (a *Account) attaching(ctx context.Context, r request, d time.Duration) error {
	later := a.requests(r, true)
	part := d / time.Duration(len(later)+1)
	for _, p := range later {
		if err := a.pass(ctx, part); err != nil {
			return err
		}
		if err := a.insist(ctx, r, p); err != nil {
			return err
		}
	}
	return a.pass(ctx, d-part*time.Duration(len(later)))
}

// requests returns those of a call, in their order.
func (a *Account) requests(r request, later bool) []Price {
	var list []Price
	for _, p := range a.o.Prices[r.Method] {
		if p.Later != later {
			continue
		}
		for range p.Of(max(r.Count, len(r.Addresses), r.Create.V4+r.Create.V6)) {
			list = append(list, p)
		}
	}
	return list
}

// longestRetry is the longest that clients of clouds wait before they ask again.
const longestRetry = 20 * time.Second

// insist makes a request, and makes it again as clients do: after a random time of up
// to a second, then two, and so on.
func (a *Account) insist(ctx context.Context, r request, p Price) error {
	for try, most := 1, time.Second; ; try, most = try+1, min(2*most, longestRetry) {
		again, passed := a.pay(r, p, most)
		if passed {
			return nil
		}
		if try >= p.Tries {
			return failed(cloud.ErrThrottled, "", "request rate of %s exceeded", p.Request)
		}
		if err := a.pass(ctx, again); err != nil {
			return failed(cloud.ErrUnavailable, "", "%v before %s passed", err, p.Request)
		}
	}
}

// pay takes a request from its bucket, or tells when to try again.
func (a *Account) pay(r request, p Price, most time.Duration) (again time.Duration, passed bool) {
	a.lock()
	defer a.mu.Unlock()
	t := &a.nodes.tolls
	if t.meters == nil {
		*t = tolls{map[string]*Meter{}, map[string]Requests{}, map[paid]bool{}}
	}
	once := paid{r.Create.Token, p.Request}
	if t.paid[once] {
		return 0, true
	}
	if t.meters[p.Request] == nil {
		t.meters[p.Request] = &Meter{Bucket: a.o.Bucket(p)}
	}
	n := t.requests[p.Request]
	if passed = t.meters[p.Request].Take(a.now) == 0; passed {
		n.Passed++
		if r.Method == createInterface && !p.Looks {
			t.paid[once] = true
		}
	} else {
		n.Refused++
		again = a.upTo(most)
	}
	t.requests[p.Request] = n
	return again, passed
}
