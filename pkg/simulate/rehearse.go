package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// tolls knows of what requests the calls of a world are made. Nobody writes that down: each
// call is rehearsed once, by the engine over the driver that the nodes have, too.
type tolls struct {
	w     World
	known map[part]toll
}

// toll is the requests of a call that meets no other, in the order of their first.
type toll []fare

// fare is what a call makes of one action.
type fare struct {
	action string
	looks  bool // it changes nothing
	later  bool // there was a change of the call before
	count  int
	left   time.Duration // what the call takes at least when the last of them has passed
}

func newTolls(w World) *tolls { return &tolls{w, map[part]toll{}} }

// requestsOf returns the requests of a call. Where calls are counted it is one.
func (t *tolls) requestsOf(call part) toll {
	if isLook(call.method) {
		call.slots = 0
	}
	if list, done := t.known[call]; done {
		return list
	}
	if t.w.Driver == nil {
		kind := anyChange
		if isLook(call.method) {
			kind = anyLook
		}
		t.known[call] = toll{{action: kind, looks: isLook(call.method), count: 1, left: t.w.leastTime(call.method)}}
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

// settled is how long a node of a rehearsal has been there before the call: as in most calls,
// nothing from before its time can show late.
const settled = time.Minute

// rehearseCall makes the call on a node of its own, alone in its account: every request passes,
// and what may take longer takes as long as it does at least.
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
		_, err = a.AddNode(w.machineOf(0))
	}
	if err != nil {
		return nil // as the play itself says
	}
	r := &rehearsal{priced: newPriced(a, w.machineOf(0).Name, newTill(w, c)), clock: c}
	c.beginCall(time.Hour, func() { r.playCall(call) }, func() {})
	defer c.stopCalls()
	for c.runNext(forever) {
	}
	return r.list
}

// rehearsal is a node whose call is rehearsed.
type rehearsal struct {
	priced
	clock *clock
	list  toll
	last  []time.Duration // of each fare
}

// playCall makes the calls of an agent that begins, in its order, and the one that is asked for.
func (r *rehearsal) playCall(call part) {
	// A driver keeps what an agent asks for first: without that here the call would seem to cost it.
	ctx := context.Background()
	var list []cloud.Interface
	for _, first := range []struct {
		method string
		do     func() error
	}{
		{interfaces, func() (err error) { list, err = r.Interfaces(ctx); return err }},
		{looks[0], func() error { _, err := r.Limits(ctx); return err }},
		{looks[2], func() error { _, err := r.Subnets(ctx); return err }},
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
	wish := cloud.Create{Token: "rehearsal", Subnet: r.till.w.Subnets[0].ID, V4: call.slots}
	switch {
	case call.method == assign && r.till.w.Limits.NoPrimary:
		wish.V4 = 0
		on, _ = r.CreateInterface(ctx, wish)
	case call.method == unassign, call.method == remove:
		on, _ = r.CreateInterface(ctx, wish)
		_ = r.clock.Wait(ctx, settled)
	}
	r.recordCall(func() (err error) {
		switch call.method {
		case create:
			_, err = r.CreateInterface(ctx, wish)
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

// recordCall makes a call and takes down its requests. Of one that fails nothing is known.
func (r *rehearsal) recordCall(do func() error) {
	changed := false
	r.till.passed = func(action string) {
		at := slices.IndexFunc(r.list, func(f fare) bool { return f.action == action })
		if at < 0 {
			at = len(r.list)
			r.list, r.last = append(r.list, fare{action: action, looks: r.till.looking[action], later: changed}), append(r.last, 0)
		}
		r.list[at].count++
		r.last[at] = r.clock.now
		changed = changed || !r.till.looking[action]
	}
	err := do()
	r.till.passed = nil
	if err != nil {
		r.list = nil
	}
	for i := range r.list {
		r.list[i].left = r.clock.now - r.last[i]
	}
}
