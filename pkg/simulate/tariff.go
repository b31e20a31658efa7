package simulate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// tariff is what is known of an action of the cloud.
type tariff struct {
	name   string
	looks  bool // it changes nothing
	bucket sim.Bucket
	took   time.Duration // what a call still takes, at least, when it has passed
	tolls  *tolls
}

// tariffsOf returns the actions of which the nodes' first looks and the orders are made, by
// name.
func (w World) tariffsOf(tolls *tolls, orders []order) []tariff {
	calls := map[part]bool{}
	for _, method := range looks {
		calls[part{method: method}] = true
	}
	for _, o := range orders {
		for _, call := range o.calls {
			calls[call] = true
		}
	}
	list := map[string]tariff{}
	for call := range calls {
		for _, f := range tolls.requestsOf(call) {
			t, known := list[f.action]
			if !known {
				t = tariff{name: f.action, looks: f.looks, bucket: w.bucketFor(f.action, f.looks), took: f.left, tolls: tolls}
			}
			// A bound must hold whichever call comes last: the one counts that takes the least then.
			t.took = min(t.took, f.left)
			list[f.action] = t
		}
	}
	return slices.SortedFunc(maps.Values(list), byName)
}

// withOthers adds the actions that there were although nothing needs them.
func (w World) withOthers(tariffs []tariff, done map[string]Passed, looking map[string]bool) []tariff {
	all := slices.Clone(tariffs)
	for name := range done {
		if !slices.ContainsFunc(all, func(t tariff) bool { return t.name == name }) {
			all = append(all, tariff{name: name, looks: looking[name], bucket: w.bucketFor(name, looking[name]), tolls: newTolls(w)})
		}
	}
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b tariff) int { return cmp.Compare(a.name, b.name) }

// leastTime is how long a call takes at least.
func (w World) leastTime(method string) time.Duration {
	l, own := w.Latency[method]
	if !own {
		l = w.Latency[""]
	}
	return l.Base
}

// requestsIn returns how many of them a call is.
func (t tariff) requestsIn(call part) int { return t.tolls.countAction(call, t.name) }

// countRequests returns how many of them the orders need and have. A node that is cold looks
// before it does anything.
func (t tariff) countRequests(orders []order, cold bool) (needed, planned int) {
	for _, o := range orders {
		needed += o.lowestCost(t.requestsIn)
		for _, call := range o.calls {
			planned += t.requestsIn(call)
		}
	}
	for _, method := range looks {
		if n := len(orders) * t.requestsIn(part{method: method}); cold {
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

// callsBound is when so many calls have begun as are needed at least, whichever: those
// of a method no sooner than its slowest kind of request lets them. It tells more than
// the bounds of the requests where addresses may come from one method or from another.
func callsBound(tariffs []tariff, orders []order) Seconds {
	need := 0
	for _, o := range orders {
		need += o.lowestCost(func(part) int { return 1 })
	}
	if need == 0 {
		return 0
	}
	begun := func(by time.Duration) int {
		return passed(tariffs, assign, by) + passed(tariffs, create, by)
	}
	at := sort.Search(int(24*time.Hour/time.Millisecond), func(ms int) bool { return begun(time.Duration(ms)*time.Millisecond) >= need })
	return Seconds(time.Duration(at) * time.Millisecond)
}

// passed is how many calls of a method have begun by a time at most.
func passed(tariffs []tariff, method string, by time.Duration) int {
	most := math.MaxInt32
	for _, t := range tariffs {
		b := t.bucket
		if n := t.requestsIn(part{method, 1}); n > 0 && b.Every > 0 {
			most = min(most, (max(b.Burst, 1)+int(by/b.Every))/n)
		}
	}
	return most
}
