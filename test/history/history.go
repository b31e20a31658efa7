// Package history judges what processes did to a node's pool at the same time: whether there
// is an order of their effects, each between its call's begin and end, in which no address
// has two owners, none is given out within its cool-down and no pod loses its own.
package history

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Kind is what a call does.
type Kind int

const (
	Add   Kind = iota
	Del        // of one pod
	GC         // of the pods that are not in the runtime's list
	Death      // the pod's sandbox goes without a DEL: whoever notices may free its address
	Look       // reads the node cache
)

func (k Kind) String() string { return [...]string{"ADD", "DEL", "GC", "death", "look"}[k] }

// Outcome is what the caller knows of a call's effect.
type Outcome int

const (
	Done    Outcome = iota
	Refused         // ADD: the pod has an address already
	Unknown         // killed, or failed in another way: all, part or nothing of it happened
)

// Call is one call of a history.
type Call struct {
	Process int
	Kind    Kind
	Pods    []string // one, or those that GC is to free

	// Begin and End are on one clock that never goes back. What a killed process had left
	// undone stays undone, so that End is the time when it was seen to be gone.
	Begin, End time.Duration

	Outcome Outcome
	Addr    netip.Addr            // of an ADD that is done
	Owners  map[netip.Addr]string // what Look saw: the addresses that pods have
}

func (c Call) String() string {
	text := fmt.Sprintf("%9.3f-%9.3f ms  process %2d  %s", milliseconds(c.Begin), milliseconds(c.End), c.Process, c.Kind)
	if c.Kind == Look {
		text += " ->"
		for _, addr := range slices.SortedFunc(maps.Keys(c.Owners), netip.Addr.Compare) {
			text += fmt.Sprintf(" %s=%s", addr, c.Owners[addr])
		}
		return text
	}
	text += " " + strings.Join(c.Pods, " ")
	switch {
	case c.Outcome == Refused:
		return text + " -> refused, it has one"
	case c.Outcome == Unknown:
		return text + " -> unknown"
	case c.Kind == Add:
		return text + " -> " + c.Addr.String()
	}
	return text + " -> done"
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
