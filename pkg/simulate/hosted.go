package simulate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// Hosted says which pods of a fleet belong to topologies. Their addresses are asked for by name, of a subnet that is topologies' alone, on
// ENIs that carry no other pods. The zero Hosted is none.
type Hosted struct {
	Pods    int  // of each node, among all of its pods
	Places  int  // of each node, which its other pods never take: whole ENIs
	Keeps   bool // an address moves with the pod's name; else a pod gets another one on its next node
	Drained int  // nodes that are drained of them, DrainAfter all pods have addresses
}

// DrainAfter is how long after all pods have addresses nodes are drained.
const DrainAfter = time.Minute

// HostedResult is how pods of topologies fared.
type HostedResult struct {
	First Placed  `json:"first"`           // when they came
	Moved *Placed `json:"moved,omitempty"` // when nodes were drained; nil if none were, or not within the time
}

// Placed is pods that came to nodes, and the calls that brought them their addresses.
type Placed struct {
	Pods    int     `json:"pods"`
	Without int     `json:"without"` // an address, at the end
	P50     Seconds `json:"p50"`
	P99     Seconds `json:"p99"`
	Max     Seconds `json:"max"`

	Made       int            `json:"made"` // ENIs
	Assigned   int            `json:"assigned"`
	Unassigned int            `json:"unassigned"`
	Requests   map[string]int `json:"requests"` // to the cloud, by action
}

// Calls returns how many there were.
func (p Placed) Calls() int { return p.Made + p.Assigned + p.Unassigned }

// hosting is the pods of topologies of a fleet that is being served.
type hosting struct {
	Hosted
	perENI       int
	enis         int // of a node at most
	first, moved tally
	drains       bool // it has begun
}

// tally counts what becomes of some pods.
type tally struct {
	Placed
	began time.Duration
	waits []time.Duration
}

// guests are pods of topologies that came to a node together and have no address yet.
type guests struct {
	count int
	moved bool
	held  bool // another node has their addresses
}

// hostENIs are a node's ENIs for pods of topologies.
type hostENIs struct {
	list   []hostENI
	making bool
	guests []*guests
}

// hostENI is one of them. What leaves it goes back in one call, and pods wait until that is done.
type hostENI struct {
	fleetENI
	leaving int
	follow  []guestOn
}

// attached is how many ENIs for pods of topologies a node has, or is to have.
func (h hostENIs) attached() int {
	if h.making {
		return len(h.list) + 1
	}
	return len(h.list)
}

// guestOn is a pod that has moved, where it is now.
type guestOn struct {
	node *fleetNode
	of   *guests
}

// newHosting returns what is known of a fleet's pods of topologies.
func newHosting(h Hosted, l eni.Limits) hosting {
	per := max(1, l.PerENI(eni.IPv4)/max(1, l.Block(eni.IPv4).Size)) // they have single addresses, never prefixes
	return hosting{Hosted: h, perENI: per, enis: (h.Places + per - 1) / per, first: newTally(), moved: newTally()}
}

func newTally() tally { return tally{Placed: Placed{Requests: map[string]int{}}} }

// validate tells what can't be played.
func (h hosting) validate(fleet Fleet, l eni.Limits) error {
	room, others := h.enis*h.perENI, (l.ENIs-l.FirstIndex())*l.PerENI(eni.IPv4)-h.slots(l)
	switch {
	case h.Hosted == Hosted{}:
		return nil
	case others < fleet.Pods-h.Hosted.Pods:
		return fmt.Errorf("topology-places: %d: leave %d addresses of a node for its %d other pods", h.Places, max(0, others), fleet.Pods-h.Hosted.Pods)
	case h.Hosted.Pods < 1 || h.Hosted.Pods >= fleet.Pods:
		return fmt.Errorf("topology-share: %d of %d pods of a node: must be at least 1, and not all", h.Hosted.Pods, fleet.Pods)
	case h.Drained < 0 || h.Drained >= fleet.Nodes:
		return fmt.Errorf("drain: %d: must be less than the %d nodes", h.Drained, fleet.Nodes)
	}
	if most := h.Hosted.most(fleet.Nodes); most > room {
		return fmt.Errorf("topology-places: %d: a node has up to %d pods of topologies, and its kept ENIs carry %d", h.Places, most, room)
	}
	return nil
}

// most is how many of them a node has at once, after those that are drained.
func (h Hosted) most(nodes int) int {
	if rest := nodes - h.Drained; h.Drained > 0 && rest > 0 {
		return h.Pods + (h.Drained*h.Pods+rest-1)/rest
	}
	return h.Pods
}

// PlacesFor returns how many addresses of each node to keep for them: whole ENIs of an instance.
func (h Hosted) PlacesFor(nodes int, l eni.Limits) int {
	n := newHosting(Hosted{Places: h.most(nodes)}, l)
	return n.enis * n.perENI
}

// slots is how many addresses of a node its other pods never take: with prefixes more than those of topologies.
func (h hosting) slots(l eni.Limits) int { return h.enis * l.PerENI(eni.IPv4) }

// calls are what bring a node's pods of topologies their addresses when they come.
func (h hosting) calls() (list []part) {
	for left := h.Hosted.Pods; left > 0; left -= h.perENI {
		list = append(list, part{create, 0}, part{assign, min(left, h.perENI)})
	}
	return list
}

// tallyOf returns where something is counted.
func (h *hosting) tallyOf(moved bool) *tally {
	if moved {
		return &h.moved
	}
	return &h.first
}

// result is how the pods fared until now.
func (h *hosting) result(now time.Duration) *HostedResult {
	if h.Hosted == (Hosted{}) {
		return nil
	}
	r := &HostedResult{First: h.first.place(now)}
	if h.drains {
		moved := h.moved.place(now)
		r.Moved = &moved
	}
	return r
}

// place sums up. Pods without an address have waited until now.
func (t tally) place(now time.Duration) Placed {
	p, waits := t.Placed, slices.Clone(t.waits)
	p.Without = p.Pods - len(waits)
	for range p.Without {
		waits = append(waits, now-t.began)
	}
	slices.Sort(waits)
	p.P50, p.P99, p.Max = Seconds(quantile(waits, 50)), Seconds(quantile(waits, 99)), Seconds(quantile(waits, 100))
	p.Requests = maps.Clone(t.Requests)
	return p
}

// addGuests lets pods of topologies come to a node.
func (o *operated) addGuests(n *fleetNode, g *guests) {
	n.own.guests = append(n.own.guests, g)
	o.hosted.tallyOf(g.moved).Pods += g.count
}

// ownSteps returns what the operator does for a node's pods of topologies: each ENI gets what it is to carry in one call, and one is made where
// they have no room. Their claims say for whom addresses are, and cost nothing here.
func (o *operated) ownSteps(node *fleetNode) (list []fleetStep) {
	ready, all, moved := 0, 0, false
	for _, g := range node.own.guests {
		if all += g.count; !g.held {
			ready += g.count
		}
		moved = moved || g.moved
	}
	for i, e := range node.own.list {
		if e.leaving > 0 {
			list = append(list, fleetStep{Step: pool.Step{ENI: ownENI, Index: i, Count: e.leaving}, method: unassign, own: true, moved: true})
		}
		free := o.hosted.perENI - e.count - e.coming
		if all -= free; e.coming > 0 {
			all, ready = all-e.coming, ready-e.coming
			continue
		}
		if count := min(ready, free); count > 0 {
			list = append(list, fleetStep{Step: pool.Step{ENI: ownENI, Index: i, Count: count}, method: assign, own: true, moved: moved})
			ready -= count
		}
	}
	if all > 0 && !node.own.making && len(node.own.list) < o.hosted.enis {
		list = append(list, fleetStep{Step: pool.Step{Do: pool.Create}, method: create, own: true, moved: moved})
	}
	return list
}

// ownENI is the name of ENIs for pods of topologies, before their number.
const ownENI = "own-"

// beginOwn notes that a call for pods of topologies begins.
func (o *operated) beginOwn(n *fleetNode, s fleetStep) {
	t := o.hosted.tallyOf(s.moved)
	switch s.method {
	case create:
		n.own.making = true
		t.Made++
	case assign:
		n.own.list[s.Index].coming = s.Count
		t.Assigned++
	case unassign:
		n.own.list[s.Index].leaving = 0
		t.Unassigned++
	}
}

// endOwn lets pods of topologies have what a call has brought, or lets those go on that waited for its end.
func (o *operated) endOwn(node *fleetNode, step fleetStep) {
	m := o.meter
	m.sumUp()
	switch step.method {
	case create:
		node.own.list, node.own.making = append(node.own.list, hostENI{}), false
		m.enis++
	case assign:
		e := &node.own.list[step.Index]
		e.count, e.coming = e.count+step.Count, 0
		m.owned += step.Count
		o.serveGuests(node, step.Count)
	case unassign:
		m.owned -= step.Count
		for _, f := range node.own.list[step.Index].follow {
			f.of.held = false
			o.settle(f.node)
		}
	}
}

// serveGuests gives addresses to the pods that have waited longest.
func (o *operated) serveGuests(node *fleetNode, count int) {
	for i := 0; i < len(node.own.guests) && count > 0; {
		g := node.own.guests[i]
		if g.held {
			i++
			continue
		}
		got, t := min(count, g.count), o.hosted.tallyOf(g.moved)
		for range got {
			t.waits = append(t.waits, o.clock.now-t.began)
			o.meter.noteWait(o.clock.now - t.began)
		}
		o.meter.used, o.meter.waiting = o.meter.used+got, o.meter.waiting-got
		if count, g.count = count-got, g.count-got; g.count == 0 {
			node.own.guests = slices.Delete(node.own.guests, i, i+1)
		}
	}
}

// planDrain drains nodes once all pods have addresses.
func (o *operated) planDrain() {
	if h := &o.hosted; h.Drained > 0 && !h.drains {
		h.drains = true
		o.clock.planAt(o.clock.now+DrainAfter, o.drain)
	}
}

// drain moves the pods of topologies of some nodes to the others, by turns. Their other pods find addresses in the pools.
func (o *operated) drain() {
	hosted, meter := &o.hosted, o.meter
	hosted.moved.began = o.clock.now
	meter.sumUp()
	rest := o.nodes[hosted.Drained:]
	for k, n := range o.nodes[:hosted.Drained] {
		for i := range hosted.Hosted.Pods {
			to, g := rest[(k*hosted.Hosted.Pods+i)%len(rest)], &guests{count: 1, moved: true, held: hosted.Keeps}
			o.addGuests(to, g)
			e := &n.own.list[i/hosted.perENI]
			if e.leaving++; hosted.Keeps {
				e.follow = append(e.follow, guestOn{to, g})
			}
		}
	}
	moved := hosted.Drained * hosted.Hosted.Pods
	meter.used, meter.waiting = meter.used-moved, meter.waiting+moved
	meter.pods += moved
	meter.bin.Waiting = max(meter.bin.Waiting, meter.waiting)
	o.settleAll()
}
