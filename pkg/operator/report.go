package operator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/quota"
)

// ErrNotLeading: only the operator that leads knows.
var ErrNotLeading = errors.New("this operator does not lead")

// Report is what an operator knows in its term, in numbers.
type Report struct {
	Epoch     int64          `json:"epoch"`
	Observe   bool           `json:"observe,omitempty"`
	Nodes     map[string]int `json:"nodes"` // by mode: how many
	Satisfied int            `json:"satisfied"`
	Slots
	Queue       []Waiting  `json:"queue"` // by class, the most urgent first
	UnderWay    int        `json:"underWay"`
	Budget      []Tokens   `json:"budget"`
	DescribedAt *time.Time `json:"describedAt,omitempty"` // when the last describe of everything began
	Failing     string     `json:"failing,omitempty"`     // why describes fail
	Subnets     []Room     `json:"subnets"`
	Recent      []Ended    `json:"recent,omitempty"` // calls of this term, the newest first

	OtherCluster string `json:"otherCluster,omitempty"` // the name that most of the nodes' ENIs are tagged with, where that is not the cluster's
}

// Slots are sums over the nodes that the operator calls the cloud for.
type Slots struct {
	Short       int `json:"short"`   // slots that are asked for and not there
	Waiting     int `json:"waiting"` // pods without an address
	Quarantined int `json:"quarantined"`
}

// Waiting is how much of a class waits.
type Waiting struct {
	Class string `json:"class"`
	Count int    `json:"count"`
}

// Tokens is what is left of an action's budget.
type Tokens struct {
	Action    string  `json:"action"`
	Tokens    float64 `json:"tokens"`
	PerSecond float64 `json:"perSecond"`
	Usual     float64 `json:"usual"`            // per second, where the cloud has refused nothing lately
	Others    float64 `json:"others,omitempty"` // per second, what nodes send that call the cloud themselves: it is taken off Usual
	Closed    float64 `json:"closed,omitempty"` // for how many seconds nothing is sent
	Waiting   int     `json:"waiting"`
}

// Room is what a subnet has left.
type Room struct {
	ID    string `json:"id"`
	Zone  string `json:"zone,omitempty"`
	State string `json:"state,omitempty"`
	Free  int    `json:"free"`
	Room  int    `json:"room"`
	Owed  int    `json:"owed"`
}

// Report returns what this operator knows. ErrNotLeading: it knows nothing.
func (o *Operator) Report(ctx context.Context) (Report, error) {
	return askLoop(ctx, o, (*term).report)
}

// askLoop has the loop answer a question, between two things that it does.
func askLoop[T any](ctx context.Context, o *Operator, question func(*term) T) (answer T, err error) {
	o.mu.Lock()
	ended := o.ended
	o.mu.Unlock()
	if ended == nil {
		return answer, ErrNotLeading
	}
	got := make(chan T, 1)
	o.post(func(t *term) { got <- question(t) })
	select {
	case answer = <-got:
		return answer, nil
	case <-ended:
		return answer, ErrNotLeading
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}

func (t *term) report() Report {
	r := Report{Epoch: t.epoch, Observe: t.o.Observe, Nodes: map[string]int{}, OtherCluster: t.looks.otherCluster}
	for _, m := range t.members {
		if m.network == nil {
			continue
		}
		mode := modeOf(m.network)
		r.Nodes[string(mode)]++
		if mode != crd.Operator {
			continue // others call the cloud for it: how it is they know
		}
		spec, status := m.network.Spec, m.network.Status
		if isSatisfied(status) {
			r.Satisfied++
		}
		if !m.node.Cut { // which gets nothing more, and its pods wait for nothing that anybody could give them
			r.Short += int(max(0, spec.Slots-status.Slots))
			r.Waiting += int(spec.Waiting)
		}
		r.Quarantined += len(status.Quarantined)
	}
	r.Queue, r.UnderWay, r.Budget = t.o.Gate.report()
	for _, e := range slices.Backward(t.calls) {
		r.Recent = append(r.Recent, e)
	}
	if at := t.looks.shown; !at.IsZero() {
		r.DescribedAt = &at
	}
	switch { // people are told at once, objects are written later
	case t.looks.failed != nil:
		r.Failing = t.looks.failed.Words
	case t.looks.last != nil:
		r.Failing = "the last describe failed: " + t.looks.last.Error()
	}
	for _, id := range slices.Sorted(maps.Keys(t.subnets)) {
		r.Subnets = append(r.Subnets, t.roomOf(id))
	}
	return r
}

// modeOf returns who calls the cloud for a node. Nobody but its agent does where no status says so.
func modeOf(n *crd.NodeNetwork) crd.Mode {
	if n.Status.Mode == "" {
		return crd.Self
	}
	return n.Status.Mode
}

func isSatisfied(s crd.NodeNetworkStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c condition) bool { return c.Type == Satisfied && c.Status == "True" })
}

// roomOf returns what a subnet has left now, whatever its object says.
func (t *term) roomOf(id string) Room {
	s := t.subnets[id]
	r := Room{ID: id, Zone: s.place.Zone, State: missing}
	if s.object != nil {
		r.State = s.object.Status.State
	}
	if s.place.ID != "" {
		p := s.forPlacement(t.tally.targetsIn(id))
		r.Free, r.Room, r.Owed = p.Free, p.Room(), p.Owed()
	}
	return r
}

// report returns what waits and what may be sent.
func (g *Gate) report() (queue []Waiting, underWay int, budget []Tokens) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue == nil {
		return nil, 0, nil
	}
	of := g.queue.Waiting()
	for _, c := range quota.Classes() {
		queue = append(queue, Waiting{c.String(), of[c]})
	}
	waiting := g.queue.WaitingFor()
	for _, s := range g.budget.States(g.sinceOpen()) {
		budget = append(budget, Tokens{s.Action, s.Tokens, s.PerSecond, s.Nominal, g.others[s.Action], s.Closed.Seconds(), waiting[s.Action]})
	}
	return queue, g.queue.UnderWay(), budget
}
