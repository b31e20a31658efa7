package explore

import (
	"fmt"
	"strings"
	"time"
)

// option is a way in which things may go on. It costs faults or steps of what a run may
// have; the first option of a choice costs nothing.
type option struct {
	name          string
	faults, steps int
	do            func() // of the pods, nil for an outcome of what the agent does
}

// deviation is a choice that was not the first option.
type deviation struct{ at, option int32 }

// path is what makes a run: its deviations, and what they cost.
type path struct {
	deviations    []deviation
	faults, steps int
}

// with is the path that deviates once more.
func (p path) with(at, chosen int, o option) path {
	list := make([]deviation, len(p.deviations), len(p.deviations)+1)
	copy(list, p.deviations)
	return path{append(list, deviation{int32(at), int32(chosen)}), p.faults + o.faults, p.steps + o.steps}
}

// pruned is the panic that ends a run in a state that was met before.
type pruned struct{}

// choices are those of one run: as the path says up to its end, and then the first option
// each. meet is told of each choice after the path's end.
type choices struct {
	path
	done  int // choices so far
	told  int // deviations so far
	since time.Duration
	meet  func(w *world, at int, name string, options []option)
	trace *[]string // what was chosen, nil if nobody wants to know
}

// over tells whether the path's end has come.
func (c *choices) over() bool { return c.told == len(c.deviations) }

// choose returns the option that is chosen.
func (w *world) choose(name string, options []option) option {
	c := w.choices
	at, chosen := c.done, 0
	c.done++
	switch {
	case !c.over() && int(c.deviations[c.told].at) == at:
		chosen = int(c.deviations[c.told].option)
		if chosen >= len(options) {
			panic(fmt.Sprintf("choice %d, %s, has no option %d: a run is not the same twice", at, name, chosen))
		}
		c.told++
		c.since = w.clock.now
	case c.over():
		w.check()
		c.meet(w, at, name, options)
	}
	if c.trace != nil && (name != "time passes" || chosen > 0) {
		*c.trace = append(*c.trace, fmt.Sprintf("%8.1fs %s%s: %s", w.clock.now.Seconds(), strings.Repeat(" ", 2-min(2, 2*chosen)), name, options[chosen].name))
	}
	return options[chosen]
}
