package history

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// address is the model's state of one address.
type address struct {
	owner   string        // the pod that has it, or ""
	given   bool          // it has been a pod's and was freed
	freed   time.Duration // not before then
	reached time.Duration // it is not earlier than that: the latest begin of what has happened
}

// addressStep is what a call does to one address.
type addressStep struct {
	do   func(s address) []address // all that may be after it, none if it can't happen now
	call Call
}

// addressModel is one address: one owner at a time, and a rest between two of them.
//
// The times of the real events lie within their calls. An address was freed not before
// anything began that happened before it was, and was given out not after its ADD ended. So
// an order is refused only if even the longest rest that these bounds allow is shorter than
// the cool-down, which a node that keeps it never shows: there are no false alarms, and what
// is too early by less than the two calls took may pass.
func addressModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{address{}} },
		Step: func(state, input, _ any) []any {
			s, step := state.(address), input.(addressStep)
			s.reached = max(s.reached, step.call.Begin)
			var next []any
			for _, n := range step.do(s) {
				next = append(next, n)
			}
			return next
		},
	}
	return model.ToModel()
}

// addressSteps is the part of the history that concerns one address. A call that concerns
// several of them is a step of each: to check them one by one asks less than to check all at
// once, and never refuses a history that is right.
func (t timeline) addressSteps(addr netip.Addr, coolDown time.Duration) []porcupine.Operation {
	var ops []porcupine.Operation
	step := func(c Call, do func(address) []address) {
		ops = append(ops, operation(c, addressStep{do, c}))
	}
	taken := t.mayHaveTaken(addr)
	mayHave := func(name string, at Call) bool {
		return slices.ContainsFunc(taken, func(add Call) bool { return add.Pods[0] == name && !t.apart(name, add, at) })
	}
	for _, c := range t.calls {
		switch {
		case c.Kind == Look:
			step(c, sees(c.Owners[addr]))
		case c.returned(addr):
			step(c, take(c, coolDown))
		case c.Kind == Add && c.Outcome == Refused: // it took nothing
		case c.Kind == Add:
			if t.hasSeen(c, func(a netip.Addr) bool { return a == addr }) {
				step(c, maybe(take(c, coolDown)))
				step(c, maybe(untake(c.Pods[0])))
			}
			if c.Outcome == Done && mayHave(c.Pods[0], c) {
				step(c, notOf(c.Pods[0]))
			}
		default:
			for _, name := range c.Pods {
				switch {
				case !mayHave(name, c):
				case c.Outcome == Done && c.Kind != Death:
					step(c, free(name))
				default:
					step(c, maybe(free(name)))
				}
			}
		}
	}
	return ops
}

// maybe is a step that happens or not.
func maybe(do func(address) []address) func(address) []address {
	return func(s address) []address { return append([]address{s}, do(s)...) }
}

func take(c Call, coolDown time.Duration) func(address) []address {
	return func(s address) []address {
		if s.owner != "" || s.given && c.End-s.freed < coolDown {
			return nil
		}
		s.owner = c.Pods[0]
		return []address{s}
	}
}

// untake takes back what an ADD took that then failed: the address goes on as before it,
// without a rest, because nobody saw it.
func untake(pod string) func(address) []address {
	return func(s address) []address {
		if s.owner != pod {
			return nil
		}
		s.owner = ""
		return []address{s}
	}
}

func free(pod string) func(address) []address {
	return func(s address) []address {
		if s.owner == pod {
			s.owner, s.given, s.freed = "", true, s.reached
		}
		return []address{s}
	}
}

func sees(owner string) func(address) []address {
	return func(s address) []address { return onlyIf(s, s.owner == owner) }
}

func notOf(pod string) func(address) []address {
	return func(s address) []address { return onlyIf(s, s.owner != pod) }
}

func onlyIf[S any](s S, ok bool) []S {
	if !ok {
		return nil
	}
	return []S{s}
}

// addresses returns all that the history names.
func addresses(calls []Call) []netip.Addr {
	var list []netip.Addr
	for _, c := range calls {
		if c.Addr.IsValid() {
			list = append(list, c.Addr)
		}
		for addr := range c.Owners {
			list = append(list, addr)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

func operation(c Call, input fmt.Stringer) porcupine.Operation {
	return porcupine.Operation{ClientId: c.Process, Input: input, Call: int64(c.Begin), Return: int64(c.End)}
}

func (s addressStep) String() string { return s.call.String() }
