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

// tariff is the rate of an action of the cloud, and what calls make of it.
type tariff struct {
	name      string
	describes bool // it changes nothing
	bucket    sim.Bucket
	took      time.Duration // what a call still takes, at least, when it has passed
	tolls     *tolls
}

// tariffsOf returns the actions that the nodes' first describes and their plans make, by name.
func (w World) tariffsOf(tolls *tolls, plans []nodePlan) []tariff {
	calls := map[part]bool{}
	for _, method := range describeMethods {
		calls[part{method: method}] = true
	}
	for _, o := range plans {
		for _, call := range slices.Concat(o.calls, o.must) {
			calls[call] = true
		}
	}
	list := map[string]tariff{}
	for call := range calls {
		for _, f := range tolls.requestsOf(call) {
			t, known := list[f.action]
			if !known {
				t = tariff{name: f.action, describes: f.describes, bucket: w.bucketFor(f.action, f.describes), took: f.left, tolls: tolls}
			}
			// A bound must hold whichever call comes last: the one counts that takes the least then.
			t.took = min(t.took, f.left)
			list[f.action] = t
		}
	}
	return slices.SortedFunc(maps.Values(list), byName)
}

// withOthers adds the actions that were made although no plan needs them.
func (w World) withOthers(tariffs []tariff, done map[string]Passed, describing map[string]bool) []tariff {
	all := slices.Clone(tariffs)
	for name := range done {
		if !slices.ContainsFunc(all, func(t tariff) bool { return t.name == name }) {
			all = append(all, tariff{name: name, describes: describing[name], bucket: w.bucketFor(name, describing[name]), tolls: newTolls(w)})
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

// requestsIn returns how many requests of the action a call makes.
func (t tariff) requestsIn(call part) int { return t.tolls.countAction(call, t.name) }

// countRequests returns how many requests of the action the plans need at least, and how many
// they have. A cold node describes before it changes anything.
func (t tariff) countRequests(plans []nodePlan, cold bool) (needed, planned int) {
	for _, n := range plans {
		needed += (1 + n.alike) * n.lowestCost(t.requestsIn)
		for _, call := range n.calls {
			planned += (1 + n.alike) * t.requestsIn(call)
		}
		for _, call := range n.must {
			more := (1 + n.alike) * t.requestsIn(call)
			needed, planned = needed+more, planned+more
		}
	}
	for _, method := range describeMethods {
		if n := nodesOf(plans) * t.requestsIn(part{method: method}); cold {
			needed, planned = needed+n, planned+n
		}
	}
	return needed, planned
}

// bound is when n requests have passed and their calls have ended, at the soonest: a bucket
// that was full at the beginning lets them pass in (n - Burst) * Every.
func (t tariff) bound(n int) Seconds {
	if n == 0 {
		return 0
	}
	return Seconds(time.Duration(max(0, n-max(t.bucket.Burst, 1)))*t.bucket.Every + t.took)
}

// callsBound is when as many calls have begun as the pods need at least, of whichever method: a
// call begins no sooner than the slowest of its kinds of request passes. Where addresses may
// come from assign or from create this may be later than the bound of either's requests alone.
func callsBound(tariffs []tariff, plans []nodePlan) Seconds {
	need := 0
	for _, n := range plans {
		need += (1 + n.alike) * (n.lowestCost(func(part) int { return 1 }) + len(n.must))
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

// passed is how many calls of a method can have begun by a time.
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
