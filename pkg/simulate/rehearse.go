package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// tolls knows which requests the calls of a world are made of. No table of that is kept, which
// would have to follow the engine: each call is rehearsed once, by the engine and the driver
// that the nodes have.
type tolls struct {
	w       World
	known   map[part]toll
	courses map[part]course
}

// course is a call that runs alone over time: when each of its requests passes, since the call began, and how long it takes.
type course struct {
	requests []passing
	took     time.Duration
}

// passing is a request of a course.
type passing struct {
	action string
	at     time.Duration
}

// toll is the requests of a call that runs alone, in the order in which each action is first
// asked for.
type toll []fare

// fare is the requests that a call makes of one action.
type fare struct {
	action    string
	describes bool // it changes nothing
	later     bool // there was a change of the call before
	count     int
	left      time.Duration // what the call takes at least when the last of them has passed
}

func newTolls(w World) *tolls { return &tolls{w, map[part]toll{}, map[part]course{}} }

// requestsOf returns the requests of a call. Where calls are counted it is one.
func (t *tolls) requestsOf(call part) toll {
	if isDescribe(call.method) {
		call.slots = 0
	}
	if list, done := t.known[call]; done {
		return list
	}
	if t.w.Driver == nil {
		kind := anyChange
		if isDescribe(call.method) {
			kind = anyDescribe
		}
		t.known[call] = toll{{action: kind, describes: isDescribe(call.method), count: 1, left: t.w.leastTime(call.method)}}
	} else {
		t.known[call] = t.rehearseCall(call)
	}
	return t.known[call]
}

// countAction returns how many requests of an action a call makes.
func (t *tolls) countAction(call part, action string) int {
	for _, f := range t.requestsOf(call) {
		if f.action == action {
			return f.count
		}
	}
	return 0
}

// settled is how long a node of a rehearsal has run before the call. It is longer than the
// consistency window, as with most calls: the engine need not wait for what an earlier process
// may have done.
const settled = time.Minute

// rehearseCall makes the call on a node that is alone in an account of its own: every request
// passes, and each takes the shortest time that it can.
func (t *tolls) rehearseCall(call part) toll {
	w := t.w
	w.Mutating, w.Describing, w.Buckets, w.MaxENIs = sim.Bucket{}, sim.Bucket{}, nil, 0
	w.Latency, w.Subnets = map[string]sim.Latency{}, slices.Clone(w.Subnets)
	for method, l := range t.w.Latency {
		w.Latency[method] = sim.Latency{Base: l.Base}
	}
	for i := range w.Subnets {
		w.Subnets[i].Taken = 0
	}
	c := &clock{}
	a, err := w.newAccount(c)
	if err == nil {
		_, err = a.AddNode(w.instanceOf(0))
	}
	if err != nil {
		return nil // the play itself returns this error
	}
	r := &rehearsal{priced: newPriced(a, w.instanceOf(0).Name, newTill(w, c)), clock: c}
	c.beginCall(time.Hour, func() { r.playCall(call) }, func() {})
	defer c.stopCalls()
	for c.runNext(forever) {
	}
	t.courses[call] = r.course
	return r.list
}

// courseOf returns how a call goes, in a world whose requests are counted.
func (t *tolls) courseOf(call part) course {
	t.requestsOf(call)
	return t.courses[call]
}

// rehearsal is a node whose call is rehearsed.
type rehearsal struct {
	priced
	clock *clock
	list  toll
	last  []time.Duration // of each fare
	course
}

// playCall makes the calls of an agent that starts, in the agent's order, then the call that is
// rehearsed, and records that one alone.
func (r *rehearsal) playCall(call part) {
	ctx := context.Background()
	// Engine and driver keep what these describes show. Without them the rehearsed call would describe
	// first, and those requests would be counted as its own.
	var list []cloud.Interface
	for _, first := range []struct {
		method string
		do     func() error
	}{
		{interfaces, func() (err error) { list, err = r.Interfaces(ctx); return err }},
		{describeMethods[0], func() error { _, err := r.Limits(ctx); return err }},
		{describeMethods[2], func() error { _, err := r.Subnets(ctx); return err }},
	} {
		if first.method == call.method {
			r.recordCall(first.do)
			return
		}
		if first.do() != nil {
			return
		}
	}
	_ = r.clock.Wait(ctx, settled)
	on := list[0]
	spec := cloud.Create{Token: "rehearsal", Subnet: r.till.w.Subnets[0].ID, V4: call.slots}
	switch {
	case call.method == assign && r.till.w.Limits.NoPrimary:
		// The primary ENI takes no addresses for pods: the call needs another one.
		spec.V4 = 0
		on, _ = r.CreateInterface(ctx, spec)
	case call.method == unassign, call.method == remove:
		// What is released must be there, and older than the consistency window.
		on, _ = r.CreateInterface(ctx, spec)
		_ = r.clock.Wait(ctx, settled)
	}
	r.recordCall(func() (err error) {
		switch call.method {
		case create:
			_, err = r.CreateInterface(ctx, spec)
		case assign:
			_, err = r.AssignAddresses(ctx, on.ID, eni.IPv4, call.slots)
		case unassign:
			err = r.UnassignAddresses(ctx, on.ID, on.Addresses)
		case remove:
			err = r.DeleteInterface(ctx, on.ID)
		}
		return err
	})
}

// recordCall makes a call and records its requests; if it fails, none.
func (r *rehearsal) recordCall(do func() error) {
	changed, began := false, r.clock.now
	r.till.passed = func(action string) {
		r.requests = append(r.requests, passing{action, r.clock.now - began})
		at := slices.IndexFunc(r.list, func(f fare) bool { return f.action == action })
		if at < 0 {
			at = len(r.list)
			r.list, r.last = append(r.list, fare{action: action, describes: r.till.describing[action], later: changed}), append(r.last, 0)
		}
		r.list[at].count++
		r.last[at] = r.clock.now
		changed = changed || !r.till.describing[action]
	}
	err := do()
	r.till.passed = nil
	r.took = r.clock.now - began
	if err != nil {
		r.list, r.course = nil, course{}
	}
	for i := range r.list {
		r.list[i].left = r.clock.now - r.last[i]
	}
}
