package history

import (
	"net/netip"
	"slices"
)

// timeline is a history with what can be told from the times of its calls alone. It keeps
// steps from the search that can't have an effect: each that goes on at the same time as
// others doubles the orders to be tried.
type timeline struct {
	calls []Call
	frees map[string][]Call // the calls of a pod after which it has nothing
}

func newTimeline(calls []Call) timeline {
	t := timeline{calls, map[string][]Call{}}
	for _, c := range calls {
		if c.Outcome == Done && (c.Kind == Del || c.Kind == GC) {
			for _, name := range c.Pods {
				t.frees[name] = append(t.frees[name], c)
			}
		}
	}
	return t
}

// apart tells whether the pod can't have at the second call what it got by the first: the
// first begins when the second is over, or a call between them frees all that the pod has.
func (t timeline) apart(name string, first, second Call) bool {
	return second.End < first.Begin || slices.ContainsFunc(t.frees[name], func(free Call) bool {
		return first.End < free.Begin && free.End < second.Begin
	})
}

// hasSeen tells whether a look may have seen what the ADD took, an address that ok accepts,
// beside the one that it returned. What an ADD without a result took matters only then: the
// model never asks that somebody gets an address, so one that was taken and never seen
// forbids nothing that the history shows.
func (t timeline) hasSeen(add Call, ok func(netip.Addr) bool) bool {
	name := add.Pods[0]
	return slices.ContainsFunc(t.calls, func(c Call) bool {
		if c.Kind != Look || t.apart(name, add, c) || add.Outcome == Done && c.Begin > add.End {
			return false
		}
		for addr, owner := range c.Owners {
			if owner == name && ok(addr) {
				return true
			}
		}
		return false
	})
}

// mayHaveTaken returns the ADDs that may have taken the address, for a while at least.
func (t timeline) mayHaveTaken(addr netip.Addr) (adds []Call) {
	for _, c := range t.calls {
		if c.Kind == Add && c.Outcome != Refused && (c.returned(addr) || t.hasSeen(c, func(a netip.Addr) bool { return a == addr })) {
			adds = append(adds, c)
		}
	}
	return adds
}

// returned tells whether the call gave out the address.
func (c Call) returned(addr netip.Addr) bool {
	return c.Kind == Add && c.Outcome == Done && c.Addr == addr
}
