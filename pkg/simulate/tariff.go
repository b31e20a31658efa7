package simulate

import (
	"math"
	"sort"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// tariff is what is known of a kind of request.
type tariff struct {
	Price
	bucket sim.Bucket
	took   time.Duration      // what a call still takes, at least, when it has passed
	by     map[string][]Price // methods
	first  int                // as World.FirstLook has it
}

// tariffs returns all kinds of requests by name.
func (w World) tariffs() map[string]tariff {
	list := map[string]tariff{}
	for method, prices := range w.Prices {
		for _, price := range prices {
			t, known := list[price.Request]
			took := w.took(method)
			if price.Later {
				took = 0
			}
			if !known {
				t = tariff{Price: price, bucket: w.bucket(price), took: took, by: map[string][]Price{}, first: w.FirstLook}
			}
			t.took = min(t.took, took)
			t.by[method] = append(t.by[method], price)
			list[price.Request] = t
		}
	}
	return list
}

// took is how long a call takes at least.
func (w World) took(method string) time.Duration {
	l, own := w.Latency[method]
	if !own {
		l = w.Latency[""]
	}
	return l.Base
}

// requests returns how many of them a call is.
func (t tariff) requests(call part) int {
	sum := 0
	for _, price := range t.by[call.method] {
		sum += price.Of(call.slots)
	}
	return sum
}

// count returns how many of them the orders need and have. A node that is cold looks
// before it does anything.
func (t tariff) count(orders []order, cold bool) (needed, planned int) {
	for _, o := range orders {
		needed += o.least(t.requests)
		for _, call := range o.calls {
			planned += t.requests(call)
		}
	}
	for _, method := range looks {
		n := len(orders) * t.requests(part{method: method})
		if method == interfaces {
			n *= max(t.first, 1)
		}
		if cold {
			needed, planned = needed+n, planned+n
		}
	}
	return needed, planned
}

// bound is when n requests have passed and their calls have ended, at the soonest: a
// bucket that was full lets them pass in (n - Burst) * Every.
func (t tariff) bound(n int) Seconds {
	if n == 0 {
		return 0
	}
	return Seconds(time.Duration(max(0, n-max(t.bucket.Burst, 1)))*t.bucket.Every + t.took)
}

// pooled are the prices of a cloud that counts calls and not requests.
func pooled() map[string][]Price {
	change, look := []Price{{Request: "changes"}}, []Price{{Request: "looks", Looks: true}}
	prices := map[string][]Price{assign: change, create: change, "UnassignAddresses": change, "DeleteInterface": change}
	for _, method := range looks {
		prices[method] = look
	}
	return prices
}

// callsBound is when so many calls have begun as are needed at least, whichever: those
// of a method no sooner than its slowest kind of request lets them. It tells more than
// the bounds of the requests where addresses may come from one method or from another.
func (w World) callsBound(tariffs map[string]tariff, orders []order) Seconds {
	need := 0
	for _, o := range orders {
		need += o.least(func(part) int { return 1 })
	}
	if need == 0 {
		return 0
	}
	begun := func(by time.Duration) int {
		return w.passed(tariffs, assign, by) + w.passed(tariffs, create, by)
	}
	at := sort.Search(int(24*time.Hour/time.Millisecond), func(ms int) bool { return begun(time.Duration(ms)*time.Millisecond) >= need })
	return Seconds(time.Duration(at) * time.Millisecond)
}

// passed is how many calls of a method have begun by a time at most.
func (w World) passed(tariffs map[string]tariff, method string, by time.Duration) int {
	most := math.MaxInt32
	for _, t := range tariffs {
		b := t.bucket
		if n := t.requests(part{method: method}); n > 0 && b.Every > 0 {
			most = min(most, (max(b.Burst, 1)+int(by/b.Every))/n)
		}
	}
	return most
}
