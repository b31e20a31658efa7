package history

import (
	"net/netip"
	"slices"

	"github.com/anishathalye/porcupine"
)

// pod is the model's state of one pod.
type pod struct {
	has  bool
	addr netip.Addr // not valid while it is not known
}

// podStep is what a call does to one pod.
type podStep struct {
	do   func(s pod) []pod // all that may be after it, none if it can't happen now
	call Call
}

func (s podStep) String() string { return s.call.String() }

// podModel is one pod: it has no address or one, which stays until a DEL, a GC that leaves
// the pod out or the death of its sandbox.
func podModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{pod{}} },
		Step: func(state, input, _ any) []any {
			var next []any
			for _, n := range input.(podStep).do(state.(pod)) {
				next = append(next, n)
			}
			return next
		},
	}
	return model.ToModel()
}

// podSteps is the part of the history that concerns one pod.
func (t timeline) podSteps(name string) []porcupine.Operation {
	var ops []porcupine.Operation
	step := func(c Call, do func(pod) []pod) { ops = append(ops, operation(c, podStep{do, c})) }
	for _, c := range t.calls {
		switch {
		case c.Kind == Look:
			step(c, shows(addressOf(c, name)))
		case !slices.Contains(c.Pods, name):
		case c.Kind == Add && c.Outcome == Refused:
			step(c, hasOne)
		case c.Kind == Add:
			// It may have taken another address, found it held by others and gone on.
			if c.Outcome == Unknown || t.hasSeen(c, func(a netip.Addr) bool { return a != c.Addr }) {
				step(c, orNot(gets(netip.Addr{})))
				step(c, orNot(loses))
			}
			if c.Outcome == Done {
				step(c, gets(c.Addr))
			}
		case c.Outcome == Done && c.Kind != Death:
			step(c, loses)
		default:
			step(c, orNot(loses))
		}
	}
	return ops
}

func addressOf(look Call, name string) netip.Addr {
	for addr, owner := range look.Owners {
		if owner == name {
			return addr
		}
	}
	return netip.Addr{}
}

func orNot(do func(pod) []pod) func(pod) []pod {
	return func(s pod) []pod { return append([]pod{s}, do(s)...) }
}

// gets is an ADD: the runtime asked for one address, and a pod that has one gets no second.
func gets(addr netip.Addr) func(pod) []pod {
	return func(s pod) []pod { return onlyIf(pod{true, addr}, !s.has) }
}

func hasOne(s pod) []pod { return onlyIf(s, s.has) }

func loses(pod) []pod { return []pod{{}} }

// shows is a look that saw the pod with the address, or without any if that is not valid.
func shows(addr netip.Addr) func(pod) []pod {
	return func(s pod) []pod {
		if !addr.IsValid() {
			return onlyIf(s, !s.has)
		}
		return onlyIf(pod{true, addr}, s.has && (s.addr == addr || !s.addr.IsValid()))
	}
}

// pods returns all that the history names.
func pods(calls []Call) []string {
	var list []string
	for _, c := range calls {
		list = append(list, c.Pods...)
		for _, owner := range c.Owners {
			list = append(list, owner)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
