package operator

import (
	"sync"
	"testing"
	"time"
)

// openBench begins a term that nobody ends.
func openBench(b *testing.B, o *Operator, now time.Time) *term {
	b.Helper()
	t := &term{Operator: o, lead: Lead{Acquired: now, Renewed: o.o.Clock.Now}, epoch: 1, ctx: b.Context(), stop: b.Context(), under: &sync.WaitGroup{}, members: map[string]*member{},
		nodes: map[string]Node{}, subnets: map[string]*subnet{}, dirty: map[string]bool{}, index: newIndex(), open: open{running: map[*job]bool{}, parked: map[string]bool{}}}
	o.o.Gate.openTerm(budgetOf(o.limits(nil), false), t.mayCall, t.stop.Done(), o.nudge)
	return t
}
